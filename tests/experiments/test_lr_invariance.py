"""The learning-rate study on tables and curves whose answers are known, and on runs of seconds.

Pins: the ratio by hand; what counts as a minimum; a perfect collapse, none, and one against the truth;
likeness above and below its nulls; one size, one rate, runs that diverged; what a profile may ask for.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from repro import params
from repro.app.study import Study
from repro.errors import UserError
from repro.experiments import collapse, likeness, lr_invariance
from repro.experiments.profile import Profile
from repro.show import claims

OWN, FACTORS, SIZES = 1e-3, (0.5, 1.0, 2.0, 4.0), (320, 1280, 5120)
START = 2.3


def row(d: int, factor: float, mael: float, seed: int = 1, **changes: Any) -> dict[str, Any]:
    found = {
        "model": "2x64", "d": d, "seed": seed, "lr": OWN * factor, "factor": factor, "mael": mael,
        "zero_shot": START, "state": "turned", "at_first": False, "role": "rate", "steps": 0.1 * d,
        "lr_steps": 0.1 * d, "run": f"{d}-{factor}-{seed}",
    }  # fmt: skip
    return found | changes


def made(rows: list[dict[str, Any]]) -> pd.DataFrame:
    table = pd.DataFrame(rows)
    return table.assign(reached=lr_invariance.reached(table))


def study_table(spread: float = 0.01, seed: int = 0) -> pd.DataFrame:
    """MAEL falls by .2 a size; the rates scatter around it."""
    rng = np.random.default_rng(seed)
    return made([
        row(d, factor, 2.0 - 0.2 * k + spread * rng.standard_normal())
        for k, d in enumerate(SIZES)
        for factor in FACTORS
    ])  # fmt: skip


def curves_of(table: pd.DataFrame, power: float = 1.0, noise: float = 0.0) -> pd.DataFrame:
    """Curves that hang on steps x factor^power: 1 is a perfect collapse over lr-steps, 0 over steps."""
    rng = np.random.default_rng(1)
    rows = []
    for run in table.to_dict("records"):
        lr_steps = 2 * 1.15 ** np.arange(60)
        steps = lr_steps / run["factor"]
        at = steps * run["factor"] ** power / (0.1 * run["d"])
        loss = START - (START - run["mael"]) * (1 - np.log(np.maximum(at, 0.02)) ** 2 / 16)
        loss += noise * rng.standard_normal(len(loss))
        frame = pd.DataFrame({"step": steps, "lr_steps": lr_steps, "loss": loss})
        rows.append(frame.assign(d=run["d"], seed=run["seed"], lr=run["lr"], role=run["role"]))
    return pd.concat(rows, ignore_index=True)


def verdict(found: dict[str, Any], claim: str, kind: str = "qual") -> dict[str, Any]:
    rows = claims.verdicts({"lr_invariance": found}, comparable=tuple(claims.SOURCES))
    (one,) = [r for r in rows if r["id"] == claim and r["kind"] == kind]
    return one


# ---------------------------------------------------------------- M1: how low


def test_the_ratio_by_hand() -> None:
    table = made([row(320, 1, 2.0), row(320, 2, 2.2), row(640, 1, 1.0), row(640, 2, 1.4)])
    found = lr_invariance.spread(table)
    assert found["df"] == 2
    assert found["sd"] == pytest.approx(((0.02 + 0.08) / 2) ** 0.5)
    assert found["range"] == pytest.approx(2.1 - 1.2)
    assert found["ratio"] == pytest.approx(found["sd"] / 0.9)


def test_seeds_are_not_taken_for_rates() -> None:
    """Two seeds that differ by 1 nat, rates by nothing: the sd over rates is 0."""
    rows = [
        row(d, f, d / 320 + seed, seed=seed) for d in (320, 640) for f in (1, 2) for seed in (1, 2)
    ]
    assert lr_invariance.spread(made(rows))["sd"] == pytest.approx(0.0)


def test_the_interval_covers_what_made_the_table() -> None:
    inside = 0
    for seed in range(200):
        low, high = lr_invariance.spread(study_table(0.02, seed))["ci95"]
        inside += low <= 0.02 / 0.4 <= high
    assert inside >= 188


def test_small_and_large_spreads_hold_and_fail() -> None:
    for spread, said in ((0.004, "holds"), (0.2, "fails")):
        table = study_table(spread)
        found = lr_invariance.answers(table, curves_of(table), [])
        assert verdict(found, "M1")["verdict"] == said, found["M1"]
    assert verdict(found, "M1", "num")["verdict"] == "differs"


def test_runs_without_a_minimum_are_told_and_left_out_of_the_ratio() -> None:
    table = study_table(0.004).drop(columns="reached")
    slow = (table["factor"] == 0.5) & (table["d"] == 5120)
    first = (table["factor"] == 4) & (table["d"] == 320)
    table.loc[slow, ["state", "mael"]] = ["censored", 1.9]
    table.loc[first, "at_first"] = True
    table.loc[(table["factor"] == 4) & (table["d"] == 1280), "state"] = "plateau"
    table = table.assign(reached=lr_invariance.reached(table))
    found = lr_invariance.answers(table, curves_of(table), [])
    count = found["counts"]
    assert (count["runs"], count["reached"], count["rates"], count["reached_everywhere"]) == (
        12, 10, 4, 2,
    )  # fmt: skip
    assert [run["state"] for run in count["lacking"]] == ["lowest at its first reading", "censored"]
    assert "10 of 12 runs (83 %)" in found["M1"]["why"]
    assert found["spread"]["reached"]["n"] == 10
    assert found["M1"]["parts"]["ratio_all"]["value"] > 5 * found["M1"]["value"]
    assert verdict(found, "M1")["verdict"] == "holds"
    json.dumps(found, allow_nan=False)


def test_a_diverged_run_counts_only_among_all_and_only_with_a_loss() -> None:
    table = study_table(0.004).drop(columns="reached")
    fast = table["factor"] == 4
    table.loc[fast, "state"] = "diverged"
    table.loc[fast, "mael"] = [2.2, np.nan, np.nan]
    table = table.assign(reached=lr_invariance.reached(table))
    found = lr_invariance.answers(table, curves_of(table), [])
    assert found["spread"]["all"]["n"] == 10
    assert found["spread"]["reached"]["n"] == 9
    json.dumps(found, allow_nan=False)


@pytest.mark.parametrize(
    "rows",
    [
        [row(320, 1, 2.0), row(320, 2, 2.1)],  # one size
        [row(320, 1, 2.0), row(640, 1, 1.9)],  # one rate
        [row(320, 1, 2.0)],
        [row(320, 1, 2.0, state="censored"), row(640, 2, 1.9, state="diverged")],
        [row(320, 1, np.nan, state="diverged")],
        [row(d, f, 2.0) for d in (320, 640) for f in (1, 2)],  # no range
    ],
)
def test_too_little_for_a_ratio_blocks_and_says_why(rows: list[dict[str, Any]]) -> None:
    table = made(rows)
    found = lr_invariance.answers(table, curves_of(table), [])
    assert verdict(found, "M1")["verdict"] == "inconclusive"
    assert "too few sizes or rates" in verdict(found, "M1")["why"]
    assert verdict(found, "M3")["verdict"] == "inconclusive"
    json.dumps(found, allow_nan=False)


def test_no_finished_run_blocks_everything() -> None:
    found = lr_invariance.answers(pd.DataFrame(), pd.DataFrame(), [])
    for claim in ("M1", "M2", "M3"):
        assert verdict(found, claim)["verdict"] == "inconclusive"


def test_without_the_section_the_claims_are_not_run_and_say_why() -> None:
    rows = [r for r in claims.verdicts({}) if r["id"] in ("M1", "M2", "M3")]
    assert {r["verdict"] for r in rows} == {"not run"}
    assert all("no section lr_study" in r["why"] for r in rows)


def test_other_seeds_tell_the_noise_and_are_no_rates() -> None:
    again = [row(320, 1, 5.0 + 0.1 * seed, seed=seed, role="seed") for seed in (2, 3)]
    table = made([*study_table(0.004).drop(columns="reached").to_dict("records"), *again])
    found = lr_invariance.answers(table, curves_of(table), [])
    assert found["counts"]["runs"] == 12
    assert found["spread"]["all"]["sd"] < 0.02
    assert "sd between seeds of one cell" in found["M1"]["why"]
    assert {r["curves"] for r in found["collapse"] if r["of"] == "seeds"} == {3}


# ---------------------------------------------------------------- M2: how fast


@pytest.mark.parametrize(
    ("power", "least", "most", "said"),
    [(1.0, 0.0, 0.02, "holds"), (0.5, 0.7, 1.4, None), (0.0, 20, 1e3, "fails")],
)
def test_a_collapse_its_half_and_its_opposite(
    power: float, least: float, most: float, said: str | None
) -> None:
    table = study_table(0.0)
    found = lr_invariance.answers(table, curves_of(table, power, 1e-4), [])
    assert least <= found["M2"]["value"] <= most
    assert said is None or verdict(found, "M2")["verdict"] == said


def test_the_spread_by_hand() -> None:
    """Two straight lines in log x, half a nat apart at every x."""
    x = np.geomspace(1, 100, 9)
    low, high = (
        collapse.Curve({"step": x}, level - 0.1 * np.log(x), level) for level in (1.0, 1.5)
    )
    assert collapse.spread([low, high], "step") == pytest.approx(0.5 / 2**0.5)
    assert collapse.spread([low, low], "step") == pytest.approx(0.0)


def test_before_its_first_reading_a_curve_comes_straight_from_the_start() -> None:
    curve = collapse.Curve({"step": np.array([10.0, 20.0])}, np.array([1.0, 0.8]), 2.0)
    assert curve.at("step", np.array([1.0, 5.0, 10.0])) == pytest.approx([1.9, 1.5, 1.0])


def test_nothing_after_the_first_minimum_counts() -> None:
    table = study_table(0.0)
    curves = curves_of(table)
    after = curves["lr_steps"] > 0.1 * curves["d"] * 1.2
    wild = curves.assign(loss=curves["loss"].where(~after, curves["loss"] + curves["lr"] * 1e3))
    assert collapse.spreads(table, curves) == collapse.spreads(table, wild)


def test_one_size_gives_a_number_and_no_verdict() -> None:
    table = study_table(0.0)
    table = table[table["d"] == 1280]
    found = lr_invariance.answers(table, curves_of(table), [])
    assert found["M2"]["value"] < 0.02
    assert found["M2"]["ci95"] is None
    assert verdict(found, "M2")["verdict"] == "inconclusive"
    assert "no interval" in verdict(found, "M2")["why"]


def test_curves_of_one_reading_or_none_are_left_out() -> None:
    table = study_table(0.0)
    curves = curves_of(table)
    lone = (curves["lr"] == OWN) & (curves["lr_steps"] > 2)
    lost = curves["lr"] == 2 * OWN
    rows = collapse.spreads(table, curves[~lone].assign(loss=curves["loss"].mask(lost)))
    assert {r["curves"] for r in rows} == {2}


# ---------------------------------------------------------------- M3: to the same place


def compared(**values: float) -> list[dict[str, Any]]:
    """Rows of `likeness`: a value a kind at each size, queries a little less alike than passages."""
    return [
        {"kind": kind.replace("_", " "), "d": d, "text": text, "lr": [OWN, 2 * OWN], "n": 900,
         "reached": True, "debiased": value - 0.002 * k - 0.01 * (text == "queries"), "biased": 0.99}
        for kind, value in values.items()
        for k, d in enumerate(SIZES)
        for text in likeness.TEXTS
    ]  # fmt: skip


def test_likeness_above_its_nulls_holds_by_the_less_alike_of_both_texts() -> None:
    found = likeness.claim(compared(rates=0.97, seeds=0.98, start=0.7, noise=0.0, other_D=0.8))
    assert found["value"] == pytest.approx(0.97 - 0.002 - 0.01)
    assert found["parts"]["cka"]["ci95"][0] > 0.9
    assert found["parts"]["biased"]["value"] == pytest.approx(0.99)
    assert "queries" in found["why"]
    assert verdict({"M3": found}, "M3")["verdict"] == "holds"
    low = likeness.claim(compared(rates=0.6, start=0.3, noise=0.0))
    assert verdict({"M3": low}, "M3")["verdict"] == "fails"


@pytest.mark.parametrize(("null", "said"), [("start", "the start"), ("other_D", "another D")])
def test_likeness_that_a_null_has_too_decides_nothing(null: str, said: str) -> None:
    found = likeness.claim(compared(rates=0.97, noise=0.0, **{null: 0.98}))
    row = verdict({"M3": found}, "M3")
    assert row["verdict"] == "inconclusive"
    assert row["why"].startswith(f"no more alike than {said}")


def test_likeness_of_rates_without_a_minimum_stands_beside() -> None:
    rows = compared(rates=0.97, noise=0.0)
    rows += [dict(r, reached=False, debiased=0.5) for r in rows if r["kind"] == "rates"]
    found = likeness.claim(rows)
    assert found["value"] == pytest.approx(0.958)
    assert found["parts"]["cka_all"]["value"] < 0.8


def test_likeness_at_one_size_has_no_interval_and_unknown_values_no_say() -> None:
    rows = [r for r in compared(rates=0.97, noise=0.0) if r["d"] == 320]
    rows.append(dict(rows[0], debiased=None, biased=None))
    found = likeness.claim(rows)
    assert verdict({"M3": found}, "M3")["verdict"] == "inconclusive"
    assert likeness.claim([])["blocked"]


# ---------------------------------------------------------------- what a profile may ask for


def profile(study_file: Path, **section: Any) -> dict[str, Any]:
    asked = {"model": "small", "factors": [0.5, 1, 2], "sizes": [32, 160]}
    return {**json.loads(study_file.read_text()), "lr_study": asked | section}


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"model": "smal"}, "lr_study.model names `smal`.*\n.*small"),
        ({"factors": [0.5, 2]}, "1 is missing"),
        ({"factors": [1]}, "at least 2 items"),
        ({"factors": [1, 1, 2]}, "stands twice"),
        ({"factors": [1, -2]}, "greater than 0"),
        ({"factors": [1, float("nan")]}, "greater than 0|finite|nan"),
        ({"factors": [1, 1000], "model": "fast"}, "ask for a rate of 20; at most 10"),
        ({"sizes": []}, "at least 1 item"),
        ({"sizes": [8]}, "larger than the smallest size of lr_study, 8"),
        ({"rates": [1e-3]}, "rates"),
    ],
)
def test_what_cannot_be_studied_is_refused(
    study_file: Path, tmp_path: Path, changes: dict[str, Any], fault: str
) -> None:
    asked = profile(study_file, **changes)
    asked["models"]["fast"] = asked["models"]["small"] | {"lr": 0.02}
    (tmp_path / "p.yaml").write_text(json.dumps(asked).replace("NaN", ".nan"))
    with pytest.raises(UserError, match=f"(?s){fault}"):
        params.load(tmp_path / "p.yaml", Profile)


def test_decay_at_the_largest_rate_is_looked_at(study_file: Path, tmp_path: Path) -> None:
    asked = profile(study_file, factors=[1, 10])
    asked["train"] |= {"weight_decay": 60}
    (tmp_path / "p.yaml").write_text(json.dumps(asked))
    with pytest.raises(UserError, match=r"largest rate of lr_study, 0\.02, is 1 or more"):
        params.load(tmp_path / "p.yaml", Profile)


def test_sizes_beyond_the_data_are_refused(
    study_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REPRO_HOME", str(tmp_path))
    (tmp_path / "p.yaml").write_text(json.dumps(profile(study_file, sizes=[32, 5000])))
    with pytest.raises(UserError, match=r"lr_study\.sizes asks for 5,000 pairs"):
        Study(tmp_path / "p.yaml").planned()


def test_the_own_rate_is_the_grids_run(
    study_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REPRO_HOME", str(tmp_path))
    (tmp_path / "p.yaml").write_text(json.dumps(profile(study_file)))
    opened = Study(tmp_path / "p.yaml")
    assert len(lr_invariance.runs(opened.runs)) == 6
    assert len(opened.planned()) == 4 + 4
    line = opened.budget().lines["lr_study"]
    assert (line.runs, line.shared, line.ranking) == (6, 2, 0)
    ranked = {run.train.label for run in opened.planned() if run.ranking is not None}
    assert len(ranked) == 4


# ---------------------------------------------------------------- on runs of seconds


@pytest.mark.slow
def test_a_study_of_seconds_end_to_end(
    study_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REPRO_HOME", str(tmp_path))
    asked = profile(study_file)
    asked["grid"] |= {"seeds": [0, 1]}
    (tmp_path / "p.yaml").write_text(json.dumps(asked))
    opened = Study(tmp_path / "p.yaml")
    assert opened.sweep() == {}
    table = lr_invariance.table(opened.runs)
    assert table["role"].tolist() == ["rate"] * 6 + ["seed"] * 2
    assert sorted(table["factor"].unique()) == [0.5, 1.0, 2.0]
    assert len(opened.grid()) == 8
    assert len(opened.pair_losses()) == 8
    for run in lr_invariance.again(opened.runs):
        assert (run.spec.lr, run.seed) == (2e-3, 2)
    rows = lr_invariance.alike(opened.runs)
    kinds = pd.Series([r["kind"] for r in rows]).value_counts().to_dict()
    assert kinds == {
        "rates": 2 * 2 * 3, "seeds": 2 * 2, "other D": 2 * 4, "start": 2 * 6, "noise": 2 * 6,
    }  # fmt: skip
    assert rows == lr_invariance.alike(opened.runs)  # nothing in it is left to luck
    found = {r["kind"]: r["debiased"] for r in rows}
    assert abs(found["noise"]) < 0.5 < found["rates"] < 1
    answers = opened.answers()
    assert answers["lr_invariance"]["counts"]["runs"] == 6
    assert json.loads(json.dumps(answers["lr_invariance"])) == opened.answers()["lr_invariance"]


def test_a_minimum_within_the_warm_up_is_not_one_of_its_rate() -> None:
    table = pd.DataFrame(
        {"state": ["turned"] * 3, "at_first": [False] * 3, "steps": [20.0, 32.0, 33.0]}
    )
    assert lr_invariance.reached(table, 32).tolist() == [False, False, True]
    assert lr_invariance.reached(table).all()
