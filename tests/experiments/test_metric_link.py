"""Pins: correlations by construction; a kink is found where it is, and not asked where it cannot be."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.experiments import synthetic

from repro.experiments import metric_link
from repro.show import claims


def test_metrics_linear_in_the_loss_correlate() -> None:
    found = metric_link.answers(synthetic.grid_table(synthetic.product))
    json.dumps(found, allow_nan=False)
    assert found["M9"]["value"] < -0.99
    assert found["S1"]["value"] > 0.99
    assert _verdict(found, "M9") == _verdict(found, "S1") == "holds"


def test_metrics_of_chance_do_not() -> None:
    table = synthetic.grid_table(synthetic.product)
    rng = np.random.default_rng(0)
    for metric in metric_link.METRICS:
        table[metric] = rng.random(len(table))
    found = metric_link.answers(table)
    assert _verdict(found, "M9") == _verdict(found, "S1") == "fails"


def test_correlation_inside_columns_sees_through_a_monotone_grid() -> None:
    table = synthetic.grid_table(synthetic.product, noise=0)
    # The metric rises with D as MAEL falls with it, but does not know the model.
    chance = np.random.default_rng(1).random(len(table))
    table["mrr10"] = np.log(table["d"]) + 0.1 * chance
    found = metric_link.answers(table)
    row = next(r for r in found["correlations"] if r["metric"] == "mrr10")
    assert row["pearson"] < -0.7
    inside = [r for r in found["within"] if r["metric"] == "mrr10"]
    assert max(r["pearson"] for r in inside if r["inside"] == "model") < -0.95
    assert max(r["pearson"] for r in inside if r["inside"] == "D") > -0.5
    assert found["M9"]["parts"]["within_size"]["value"] > -0.5


def test_kink_is_out_of_range_above_a_quarter_nat() -> None:
    found = metric_link.answers(synthetic.grid_table(synthetic.product))
    assert _verdict(found, "S2") == "inconclusive"
    assert "out of range" in found["S2"]["why"]


@pytest.mark.parametrize(("kinked", "verdict"), [(True, "holds"), (False, "fails")])
def test_kink_is_told_from_a_curve(kinked: bool, verdict: str) -> None:
    table = synthetic.grid_table(synthetic.product)
    x = np.linspace(0.05, 0.6, len(table))
    noise = 0.003 * np.random.default_rng(2).standard_normal(len(table))
    table["test_entropy"] = x
    table["mrr10"] = (
        0.4 - 0.1 * x + (1.5 * np.maximum(0.25 - x, 0) if kinked else 0.5 * x**2) + noise
    )
    assert _verdict(metric_link.answers(table), "S2") == verdict


def test_two_runs_are_too_few() -> None:
    found = metric_link.answers(
        synthetic.grid_table(synthetic.product, {"1x32": 12_704}, (64, 128))
    )
    assert _verdict(found, "M9") == "inconclusive"


def _verdict(found: dict, claim: str) -> str:
    rows = claims.verdicts(found)
    return next(r["verdict"] for r in rows if r["id"] == claim and r["kind"] == "qual")
