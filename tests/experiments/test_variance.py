"""Pins: components of MAEL's noise recovered where they are known, and what their runs change."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from repro.app.study import Study
from repro.errors import UserError
from repro.experiments import grid, variance
from repro.experiments.variance import COMPONENTS, VarianceParams
from repro.show import reading_variance
from repro.show.figures import variance as figures

SD = {"subset": 0.03, "order": 0.01, "dropout": 0.02}  # of log MAEL


def noisy(
    rng: np.random.Generator, sizes: tuple[int, ...] = (640, 2560), draws: int = 5
) -> pd.DataFrame:
    """Runs whose log MAEL is the sum of three effects; a run differs from the base run in one."""
    rows = []
    for d in sizes:
        base = {name: sd * rng.normal() for name, sd in SD.items()}
        for name in ("base", *(name for name in COMPONENTS for _ in range(draws))):
            own = base | ({name: SD[name] * rng.normal()} if name != "base" else {})
            mael = 6 * d**-0.2 * np.exp(sum(own.values()))
            rows.append(
                {
                    "component": name, "pool": 12_000, "model": "2x64", "d": d, "mael": mael,
                    "mael_se": 0.05 * mael, "state": "turned",
                }
            )  # fmt: skip
    return pd.DataFrame(rows)


@pytest.mark.slow
def test_intervals_cover_the_components_their_shares_and_what_reseeding_leaves_out() -> None:
    squares = {name: sd**2 for name, sd in SD.items()}
    whole = sum(squares.values())
    factor = (whole / (squares["order"] + squares["dropout"])) ** 0.5
    rng = np.random.default_rng(0)
    inside: dict[str, list[bool]] = {}

    def note(what: str, given: dict[str, list[float]], true: float) -> None:
        inside.setdefault(what, []).append(given["ci95"][0] <= true <= given["ci95"][1])

    for _ in range(200):
        pooled = variance.answers(noisy(rng))["pooled"]
        for row in pooled["components"]:
            note(f"sd of {row['component']}", row["relative"], SD[row["component"]])
            note(f"share of {row['component']}", row["share"], squares[row["component"]] / whole)
            assert row["df"] == 10
        note("understated", pooled["understated"], factor)
        note("total", pooled["total"], whole**0.5)
    assert len(inside) == 8
    for what, hits in inside.items():
        assert 0.90 <= np.mean(hits) <= 0.995, what


def test_many_draws_give_the_components_themselves() -> None:
    found = variance.answers(noisy(np.random.default_rng(1), sizes=(640,), draws=4000))
    (row,) = found["sizes"]
    level = noisy(np.random.default_rng(1), (640,), 4000)["mael"].iloc[0]
    for each in row["components"]:
        sd = SD[each["component"]]
        assert each["relative"]["value"] == pytest.approx(sd, rel=0.05)
        assert each["sd"]["value"] == pytest.approx(sd * level, rel=0.1)
        assert each["share"]["value"] == pytest.approx(sd**2 / 0.0014, rel=0.1)
    assert row["understated"]["value"] == pytest.approx((14 / 5) ** 0.5, rel=0.05)
    assert row["validation"]["relative"] == pytest.approx(0.05)
    assert sum(each["share"]["value"] for each in row["components"]) == pytest.approx(1)


def test_two_runs_are_checked_by_hand() -> None:
    table = noisy(np.random.default_rng(2), sizes=(640,), draws=1)
    table["mael"] = [2.0, 2.2, 2.0, 2.4]
    row = variance.answers(table)["sizes"][0]
    sds = [each["sd"]["value"] for each in row["components"]]
    assert sds == pytest.approx([0.2 / 2**0.5, 0, 0.4 / 2**0.5])
    assert [each["df"] for each in row["components"]] == [1, 1, 1]
    assert row["components"][1]["relative"] == {"value": 0, "ci95": [0, 0], "endless": False}


def test_runs_without_a_minimum_are_left_out_and_named() -> None:
    table = noisy(np.random.default_rng(3))
    table.loc[table["component"] == "dropout", "state"] = "censored"
    found = variance.answers(table)
    assert len(found["lacking"]) == 10
    assert [row["df"] for row in found["pooled"]["components"]] == [10, 10, 0]
    assert found["pooled"]["components"][2]["relative"]["value"] is None
    assert found["pooled"]["understated"]["value"] is None
    said = reading_variance.summary(found)
    assert "dropout at D = 640 (censored)" in said
    assert "cannot be told apart" in said
    figures.components(found)
    lost = variance.answers(table.assign(state="diverged"))
    assert lost["sizes"] == []
    assert reading_variance.summary(lost)
    assert figures.components(lost)["alt"]


def test_runs_that_are_all_alike_have_no_shares() -> None:
    found = variance.answers(noisy(np.random.default_rng(4)).assign(mael=2.0))
    assert found["pooled"]["total"]["value"] == 0
    assert [row["share"]["value"] for row in found["pooled"]["components"]] == [None] * 3


def test_words_and_figure_hold_the_numbers() -> None:
    found = variance.answers(noisy(np.random.default_rng(5)))
    said = reading_variance.summary(found)
    assert f"multiplied by {found['pooled']['understated']['value']:.2f}" in said
    assert "Every run reached its minimum" in said
    assert "share 21.3 %" in said
    shown = reading_variance.components(found)
    assert shown["D"].tolist() == 4 * ["640"] + 4 * ["2,560"] + 4 * ["pooled"]
    assert "draw of the pairs" in figures.components(found)["alt"]
    assert reading_variance.summary(None) == reading_variance.NOT_RUN
    assert "No run" in reading_variance.summary(variance.answers(pd.DataFrame()))
    assert reading_variance.components({"runs": 0}).empty
    assert figures.components({"runs": 0})["alt"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"draws": 1}, "greater than or equal to 2"),
        ({"draws": 100}, "less than 100"),
        ({"sizes": [320, 320]}, "do not rise"),
        ({"sizes": []}, "at least 1"),
    ],
)
def test_what_cannot_be_run_is_refused(change: dict[str, object], message: str) -> None:
    good = {"model": "small", "sizes": [32, 64], "draws": 2}
    VarianceParams.model_validate(good)
    with pytest.raises(ValueError, match=message):
        VarianceParams.model_validate(good | change)


def asking(study: Study, **asked: object) -> Study:
    """The study with this section."""
    section = VarianceParams.model_validate({"model": "small", "sizes": [32], "draws": 2} | asked)
    study.profile = study.profile.model_copy(update={"variance": section})
    study.__dict__.pop("runs", None)  # kept from another section
    return study


def test_a_model_or_a_size_that_the_study_has_not_is_refused(fresh: Study) -> None:
    asked = VarianceParams(model="other", sizes=[32], draws=2)
    with pytest.raises(ValueError, match=r"variance.model names `other`"):
        asked.check({"small": 1e-3}, fresh.profile.train)
    with pytest.raises(ValueError, match="smallest size of variance, 8"):
        VarianceParams(model="small", sizes=[8], draws=2).check(
            {"small": 1e-3}, fresh.profile.train
        )
    with pytest.raises(UserError, match=r"variance.sizes asks for 50,000"):
        asking(fresh, sizes=[50_000]).planned()
    all_there_are = len(fresh.dataset.splits.train)
    with pytest.raises(UserError, match="no others can be drawn"):
        asking(fresh, sizes=[32, all_there_are]).planned()
    assert asking(fresh, sizes=[32, all_there_are - 1]).planned()


def test_one_thing_differs_in_each_run(fresh: Study) -> None:
    """And no two runs are one; raising `draws` keeps the runs that are there."""
    few = variance.runs(asking(fresh, draws=2).runs)
    plan = asking(fresh, draws=40).runs
    parts = variance.parts(plan)
    (base,) = parts["base"]
    assert base.spec in [run.spec for run in grid.runs(plan)]
    root = fresh.profile.seed
    changed = {"subset": {"subset_seed"}, "dropout": {"dropout_seed"}}
    changed["order"] = {"seed", "dropout_seed"}
    for name in COMPONENTS:
        for run in parts[name]:
            differs = {k for k, v in run.spec if v != getattr(base.spec, k)}
            assert differs == changed[name]
            assert run.ranking is None
            # The dropout of a run is seeded by `dropout_seed`, or by `seed` where there is none.
            used = run.spec.seed if run.spec.dropout_seed is None else run.spec.dropout_seed
            assert (used != root) == (name == "dropout")
    every = variance.runs(plan)
    assert len({run.spec.model_dump_json() for run in every}) == len(every) == 121
    seeds = [
        v for run in every for k, v in run.spec if k.endswith("seed") and v not in (None, root)
    ]
    assert len(set(seeds)) == 120
    assert {run.spec.model_dump_json() for run in few} < {
        run.spec.model_dump_json() for run in every
    }


@pytest.mark.slow
def test_a_study_of_seconds_end_to_end(fresh: Study) -> None:
    asking(fresh)
    line = fresh.budget().lines["variance"]
    assert (line.runs, line.shared, line.ranking) == (7, 1, 0)
    assert fresh.sweep() == {}
    table = variance.table(fresh.runs)
    assert table["component"].tolist() == ["base", *(n for n in COMPONENTS for _ in range(2))]
    assert table["mael"].nunique() == 7  # each seed reaches the training
    found = fresh.answers()["variance"]
    assert found == json.loads(json.dumps(variance.answers(table)))
    assert found["pool"] == len(fresh.dataset.splits.train)
    assert found["runs"] == 7
    for row in found["sizes"][0]["components"]:
        assert row["sd"]["value"] > 0
