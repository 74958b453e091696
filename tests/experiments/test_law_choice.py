"""Pins: verdicts follow the law that made the data, and no data, or the wrong range, gives none."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.experiments import synthetic

from repro.experiments import law_choice, law_fits, rivals
from repro.experiments.regime import cells, find_regime, local_slopes
from repro.laws import holdout
from repro.show import claims


@cache
def answers(law: str, family: str = "WIDE", noise: float = 0.01) -> dict[str, Any]:
    table = synthetic.grid_table(getattr(synthetic, law), getattr(synthetic, family), noise=noise)
    return law_choice.answers(table)


def verdict(found: dict[str, Any], claim: str, kind: str = "qual") -> str:
    rows = claims.verdicts(found)
    return next(row["verdict"] for row in rows if row["id"] == claim and row["kind"] == kind)


def test_product_data_give_the_product_laws_exponents() -> None:
    parts = answers("product")["M6"]["parts"]
    for name, truth in (("alpha", 0.1), ("beta", 0.2)):
        low, high = parts[name]["ci95"]
        assert low < truth < high
    assert verdict(answers("product"), "M7") == "holds"


@pytest.mark.slow
def test_product_data_reject_the_additive_laws() -> None:
    assert verdict(answers("product", noise=0.005), "M5") == "holds"
    assert verdict(answers("product", noise=0.005), "M4") == "holds"
    assert answers("product", noise=0.005)["M5"]["value"] > 3


@pytest.mark.slow
def test_additive_data_do_not_give_the_product_law() -> None:
    found = answers("additive", noise=0.005)
    assert verdict(found, "M5") == "fails"
    assert verdict(found, "M4") == "fails"
    assert found["M4"]["parts"]["interaction"]["ci95"][0] > 0


def test_answers_are_plain_data_with_the_form_of_the_report() -> None:
    found = json.loads(json.dumps(answers("product"), allow_nan=False))
    assert set(found["laws"]) == set(law_fits.FORMS)
    wanted = ["params", "ci95", "aicc", "r2_log", "loo_model_mre", "loo_size_mre", "corner_mre"]
    assert all(set(wanted) <= set(law) for law in found["laws"].values())
    assert set(found["laws"]["product"]["params"]) == {"c", "alpha", "beta"}


@pytest.mark.slow
def test_slopes_that_grow_leave_no_product_verdict() -> None:
    table = synthetic.grid_table(
        synthetic.head_start, synthetic.MICRO, (320, 1280, 5120), noise=0.005
    )
    found = law_choice.answers(table)
    assert not found["regime"]["sizes"]
    for claim in ("M4", "M5", "M7", "M8", "M20"):
        assert verdict(found, claim) == "inconclusive"
    rows = claims.verdicts(found)
    assert all(
        "no power-law regime" in row["why"]
        for row in rows
        if row["id"] == "M7" and row["kind"] == "qual"
    )


def test_regime_is_the_longest_steady_range() -> None:
    def slopes(*values: float) -> pd.DataFrame:
        ends = [100.0 * 2**k for k in range(len(values) + 1)]
        return pd.DataFrame({"d_low": ends[:-1], "d_high": ends[1:], "slope": values})

    assert find_regime(slopes(0.04, 0.10, 0.15, 0.19)).sizes == (200, 400, 800, 1600)
    assert find_regime(slopes(0.15, 0.19, 0.16, 0.2)).whole
    assert not find_regime(slopes(0.04, 0.13, 0.27))
    assert not find_regime(slopes(-0.01, -0.01))
    assert not find_regime(slopes(0.2))
    assert find_regime(slopes(0.2)).reason.endswith("it takes 3 data sizes, here are 2")


def test_local_slopes_of_a_power_law_are_its_exponent() -> None:
    found = local_slopes(synthetic.grid_table(synthetic.product, noise=0))
    np.testing.assert_allclose(found["slope"], 0.2, atol=1e-12)
    np.testing.assert_allclose(found["high"] - found["low"], 0, atol=1e-12)


def test_censored_and_diverged_runs_are_no_measurements() -> None:
    table = synthetic.grid_table(synthetic.product, synthetic.MICRO)
    table["state"] = table["state"].astype(object)
    table.loc[0, ["state", "mael"]] = ["censored", 9.0]
    table.loc[1, ["state", "mael"]] = ["diverged", np.nan]
    grid = cells(table)
    assert np.isnan(grid.loc["1x32", 640])
    assert np.isnan(grid.loc["1x32", 1280])
    losses = law_fits.losses(table)
    assert len(losses) == len(table) - 1
    assert losses.bound.sum() == 1


@pytest.mark.parametrize("state", ["censored", "diverged"])
def test_a_grid_without_one_minimum_decides_nothing(state: str) -> None:
    table = synthetic.grid_table(synthetic.product, synthetic.FIVE)
    table["state"] = state
    if state == "diverged":
        table["mael"] = np.nan
    found = law_choice.answers(table)
    text = json.dumps(found, allow_nan=False)
    assert "nan" not in text
    rows = [row for row in claims.verdicts(found) if row["kind"] == "qual"]
    assert {row["verdict"] for row in rows} <= {"inconclusive", "not run"}
    assert verdict(found, "S3") == "inconclusive"


@pytest.mark.slow
def test_a_grid_in_which_every_line_lacks_a_cell_has_no_bend() -> None:
    table = synthetic.grid_table(synthetic.product, synthetic.FIVE)
    for model, d in zip(synthetic.FIVE, synthetic.SIZES, strict=True):
        table.loc[(table["model"] == model) & (table["d"] == d), "state"] = "censored"
    parts = law_choice.answers(table)["M4"]["parts"]
    assert parts["bend_d"]["value"] is None
    assert parts["bend_n"]["value"] is None
    assert parts["interaction"]["value"] is not None


def test_a_grid_of_two_by_two_decides_nothing() -> None:
    table = synthetic.grid_table(synthetic.product, {"1x32": 12_704, "2x64": 99_968}, (160, 320))
    found = law_choice.answers(table)
    json.dumps(found, allow_nan=False)
    rows = [row for row in claims.verdicts(found) if row["kind"] == "qual"]
    assert {row["verdict"] for row in rows} <= {"inconclusive", "not run"}


@pytest.mark.slow
def test_three_models_cannot_show_a_floor_in_n() -> None:
    assert verdict(answers("product", "MICRO"), "S3") == "inconclusive"
    assert "3 models" in answers("product", "MICRO")["S3"]["why"]


@pytest.mark.slow
def test_depth_is_read_between_models_of_one_width() -> None:
    rows = answers("product")["depth"]
    assert [row["models"] for row in rows] == [["1x64", "2x64"], ["2x128", "4x128"]]
    assert all(row["ci95"][0] < 0.1 < row["ci95"][1] for row in rows)
    assert not answers("product", "MICRO")["depth"]


def test_exponent_depends_on_what_n_counts() -> None:
    rows = {row["count"]: row for row in answers("product")["exponents_by_count"]}
    assert rows["n_total"]["alpha"]["value"] > 1.2 * rows["n_encoder"]["alpha"]["value"]


def test_corner_is_the_one_of_the_laws() -> None:
    table = law_fits.losses(synthetic.grid_table(synthetic.product, noise=0.01))
    n_max, d_max = rivals.corner_limits(table)
    ours = holdout.corner("product", table, n_max, d_max)
    np.testing.assert_array_equal(ours.predicted, holdout.corner("product", table).predicted)
    assert answers("product")["M8"]["value"] == pytest.approx(ours.mean)


@pytest.mark.slow
def test_the_evaluation_sample_widens_the_exponents() -> None:
    table = synthetic.grid_table(synthetic.product, synthetic.MICRO, (640, 2560))
    rng = np.random.default_rng(0)
    pairs = {
        (row.model, row.d, row.seed): row.mael * rng.exponential(size=40)
        for row in table.itertuples()
    }
    plain, wide = (law_choice.answers(table, losses)["M6"]["parts"] for losses in (None, pairs))
    for name in ("alpha", "beta"):
        assert np.ptp(wide[name]["ci95"]) > 1.1 * np.ptp(plain[name]["ci95"])
        assert wide[name]["value"] == plain[name]["value"]


def test_diverged_runs_alone_answer_nothing() -> None:
    table = synthetic.grid_table(synthetic.product, synthetic.MICRO, (160, 320))
    table["state"] = "diverged"
    found = law_choice.answers(table)
    json.dumps(found, allow_nan=False)
    assert set(found) == set(answers("product"))
    assert verdict(found, "M7") == "inconclusive"


@pytest.mark.slow
def test_three_models_cannot_tell_a_bend_in_n() -> None:
    bend = answers("product", "MICRO")["M4"]["parts"]["bend_n"]
    assert bend["endless"]
    assert verdict(answers("product", "MICRO"), "M4") == "inconclusive"


@pytest.mark.slow
def test_a_small_grid_is_judged_without_its_corner() -> None:
    table = synthetic.grid_table(synthetic.product, synthetic.MICRO, (640, 2560, 10240))
    found = law_choice.answers(table)
    assert len(found["duels"]) == 4
    assert not any(duel["corner"] for duel in found["duels"])
    assert "corner left aside" in found["M5"]["why"]
