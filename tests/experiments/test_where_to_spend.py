"""Pins: exponents and ratios come back under each reading of a step, whatever the runs lack.

The rates of the MAEL paper fall with N, so its readings are apart; bounds are no measurements; a grid
that cannot tell says why, in plain data.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.experiments import synthetic

from repro.experiments import allocation, published, steps_law
from repro.experiments.steps_law import MOST
from repro.show import claims

RHO = 0.522  # of rates that halve at each of the five BERT sizes
ASKED = ("M10", "M11", "M12", "M14", "M15", "M21")


def product(alpha: float, beta: float) -> synthetic.Law:
    return lambda n, d: 40 * n**-alpha * d**-beta


def grid(
    alpha: float = 0.161, beta: float = 0.206, seeds: int = 1, noise: float = 0.003
) -> pd.DataFrame:
    return synthetic.grid_table(product(alpha, beta), synthetic.FIVE, noise=noise, seeds=seeds)


def found(table: pd.DataFrame) -> dict[str, Any]:
    answers = allocation.answers(table)
    json.dumps(answers, allow_nan=False)
    return answers


def verdict(answers: dict[str, Any], claim: str, *, kind: str = "qual") -> str:
    rows = claims.verdicts(answers)
    return next(row["verdict"] for row in rows if row["id"] == claim and row["kind"] == kind)


def by_name(answers: dict[str, Any]) -> dict[str, Any]:
    return {row["name"]: row for row in answers["readings"]}


def covers(part: dict[str, Any], truth: float) -> bool:
    return bool(part["ci95"][0] <= truth <= part["ci95"][1])


def test_each_reading_gives_its_own_exponent_and_ratio() -> None:
    """The paper's steps law, taken as raw steps: the ratio is 1.46, and at a common rate endless."""
    answers = found(synthetic.with_steps(grid(), 0.5064, 0.9231, RHO))
    rows = by_name(answers)
    for name, a in (("raw", 0.5064), ("lr_steps", 1.028), ("common", 1.028), ("flop", 0.5064)):
        assert covers(rows[name]["a"], a), name
        assert covers(rows[name]["b"], 0.9231), name
        assert covers(rows[name]["cost_n"], 1 - a), name
    assert covers(rows["raw"]["ratio"], 1.4616)
    assert rows["common"]["ratio"]["value"] == MOST
    assert rows["common"]["model"]["value"] is None
    assert verdict(answers, "M10") == verdict(answers, "M12") == "holds"
    assert answers["rates"]["rho"] == pytest.approx(RHO)


def test_the_headline_turns_where_the_steps_are_lr_steps() -> None:
    answers = found(synthetic.with_steps(grid(), 0.5064 - RHO, 0.9231, RHO))
    rows = by_name(answers)
    assert rows["raw"]["ratio"]["ci95"][1] < 1 < rows["lr_steps"]["ratio"]["ci95"][0]
    assert verdict(answers, "M12") == "fails"
    assert verdict(answers, "M21") == "holds"


def test_one_rate_for_all_leaves_nothing_to_turn() -> None:
    answers = found(synthetic.with_steps(grid(), 0.5064, 0.9231, 0.0))
    rows = by_name(answers)
    assert rows["raw"]["ratio"]["value"] == pytest.approx(rows["lr_steps"]["ratio"]["value"])
    assert "5 models that were trained at 0.001" in rows["common"]["how"]
    assert verdict(answers, "M21") == "fails"


def test_a_common_rate_is_measured_on_the_models_that_share_one() -> None:
    table = synthetic.with_steps(grid(), 0.3, 0.9, RHO)
    shared = table["model"].isin(["2x64", "1x128", "2x128"])
    table.loc[shared, "lr"] = 2e-4
    row = by_name(found(table))["common"]
    assert (row["models"], row["n"]) == (3, 15)
    assert "3 models that were trained at 0.0002" in row["how"]
    assert covers(row["a"], 0.3)


def test_the_interval_of_the_ratio_covers() -> None:
    """Models with steps of their own (20 %), 40 grids: the model effect is inside the interval."""
    inside = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        table = synthetic.with_steps(grid(noise=0.01), 0.3, 0.9, noise=0.1, seed=seed)
        effect = dict(zip(synthetic.FIVE, np.exp(0.2 * rng.standard_normal(5)), strict=True))
        table["counted"] = table["steps"] * table["model"].map(effect)
        row = steps_law.fitted(steps_law.Reading("raw", "", "", table))
        inside += covers(row["ratio"], (0.161 / 0.7) / (0.206 / 0.9))
    assert inside >= 35


def test_bounds_count_as_bounds_and_are_named() -> None:
    table = synthetic.with_steps(grid(), 0.3, 0.9, noise=0.0)
    late, early = table["d"] == 10240, (table["d"] == 640) & (table["model"] == "2x128")
    table.loc[late & (table["model"] == "1x32"), "state"] = "censored"
    table.loc[late & (table["model"] == "1x32"), "steps"] /= 3
    table.loc[early, ["steps", "at_first"]] = [table.loc[early, "steps"].iloc[0] * 3, True]
    answers = found(table)
    row = by_name(answers)["raw"]
    assert row["a"]["value"] == pytest.approx(0.3, abs=1e-4)
    assert row["b"]["value"] == pytest.approx(0.9, abs=1e-4)
    assert answers["bounds"]["censored"] == ["1x32 D=10,240 seed 0"]
    assert answers["bounds"]["at_first"] == ["2x128 D=640 seed 0"]
    assert "1 runs censored" in answers["M10"]["why"]
    taken = table.assign(
        state="turned", at_first=False
    )  # the premise: as measurements they mislead
    assert abs(by_name(found(taken))["raw"]["b"]["value"] - 0.9) > 0.02


def test_a_seed_with_its_minimum_replaces_the_bound_of_another() -> None:
    table = synthetic.with_steps(grid(seeds=2), 0.3, 0.9, noise=0.0)
    first = table["seed"] == 0
    table.loc[first, "at_first"] = True
    table.loc[first, "steps"] *= 5
    assert by_name(found(table))["raw"]["a"]["value"] == pytest.approx(0.3, abs=1e-4)


def test_missing_cells_leave_the_exponents() -> None:
    table = synthetic.with_steps(grid(), 0.4, 0.9, RHO).drop(index=[0, 7, 13, 24])
    row = by_name(found(table))["raw"]
    assert covers(row["a"], 0.4)
    assert "not balanced" in row["note"]


def test_a_plateau_is_a_minimum() -> None:
    table = synthetic.with_steps(grid(), 0.5064, 0.9231).assign(state="plateau")
    assert verdict(found(table), "M12") == "holds"


@pytest.mark.parametrize("state", ["diverged", "censored"])
def test_runs_without_a_minimum_answer_nothing(state: str) -> None:
    answers = found(synthetic.with_steps(grid(), 0.5, 0.9).assign(state=state))
    assert set(answers) >= set(ASKED)
    assert {verdict(answers, claim) for claim in ("M12", "M14", "M15", "M21")} == {"inconclusive"}
    assert answers["dollars"] is None or state == "censored"


@pytest.mark.parametrize("keep", [["1x32"], ["1x32", "2x128"]], ids=["one model", "two models"])
def test_few_models_decide_nothing(keep: list[str]) -> None:
    table = synthetic.with_steps(grid(), 0.5, 0.9)
    answers = found(table[table["model"].isin(keep)])
    for claim in ("M10", "M12", "M21"):
        assert verdict(answers, claim) == "inconclusive", claim


def test_one_size_and_one_run() -> None:
    table = synthetic.with_steps(grid(), 0.5, 0.9)
    for part in (table[table["d"] == 640], table.head(1)):
        answers = found(part)
        assert {verdict(answers, claim) for claim in ("M10", "M12", "M15")} == {"inconclusive"}


def test_a_table_without_the_first_reading_is_read() -> None:
    table = synthetic.with_steps(grid(), 0.5, 0.9).drop(columns="at_first")
    assert found(table)["bounds"]["at_first"] == []


def test_no_regime_no_ratio() -> None:
    table = synthetic.grid_table(synthetic.head_start, synthetic.FIVE, synthetic.SIX, 0.002)
    answers = found(synthetic.with_steps(table, 0.5, 0.9))
    assert "no power-law regime" in answers["M12"]["blocked"]
    assert verdict(answers, "M12") == verdict(answers, "M21") == "inconclusive"
    assert verdict(answers, "M10") == "holds"  # steps are asked on their own


def test_what_the_printed_law_may_mean() -> None:
    rows = {(row["printed"], row["reading"]): row for row in published.ratios(MOST)}
    assert rows["raw", "raw"]["ratio"] == pytest.approx(1.46, abs=0.005)
    assert rows["lr_steps", "raw"]["ratio"] == pytest.approx(0.72, abs=0.02)
    assert rows["raw", "common"]["ratio"] == MOST


def test_flops_are_counted_both_ways() -> None:
    table = synthetic.with_steps(grid(), 0.3, 0.9, noise=0.0)
    rows = {row["count"]: row for row in found(table)["flops"]}
    assert rows["n_encoder"]["low"] == pytest.approx(1.1)  # 6.6 N a token were spent
    assert rows["n_encoder"]["exponent"]["value"] == pytest.approx(0.7, abs=1e-6)
    assert rows["n_total"]["high"] < 1.1
    assert rows["n_total"]["exponent"]["value"] > 0.9


def test_seeds_of_the_control_are_several_and_distinct() -> None:
    with pytest.raises(ValueError, match="stands twice"):
        allocation.AllocationParams(seeds=[1, 1])
    with pytest.raises(ValueError, match="at least 2"):
        allocation.AllocationParams(seeds=[1])
