"""Seconds and budget: units are kept apart, shared cells count once, finished runs correct."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repro.app.study import Study
from repro.errors import UserError
from repro.experiments.budget import budget, distinct, makespan
from repro.experiments.effort import Effort, Finished, effort, setting
from repro.experiments.estimate import Estimator
from repro.experiments.runs import Runs, Trained
from repro.provenance import surroundings
from repro.work.pace import GUESS, GUESS_EACH, Pace, Rates, model_key

RATES = Rates(step=1e-9, reading=2e-9, ranking=3e-9, keep=0.5, start=7.0)
HERE = (surroundings()["machine"], surroundings()["cores"])


def timed(cell: Trained, seconds: float, began: str, **values: object) -> Finished:
    spec = cell.spec
    place = {"weights": spec.weights, "machine": HERE} | values
    return Finished(
        pairs=spec.pairs, lr=spec.lr, setting=setting(spec), steps=30.0, flop=30e6,
        seconds=seconds, began=began, spec=spec, **place,
    )  # fmt: skip


def test_each_kind_of_work_has_its_own_rate(cell: Trained) -> None:
    pace = Pace({model_key(cell.spec): RATES}, search=11.0, at="2026-01-01T00:00:00Z")
    found, work = Estimator((), pace), Effort(10, 3, 1e9, 2e9)
    assert found.training(cell.spec, work) == pytest.approx(10 * 1 + 3 * (4 + 0.5) + 7)
    assert found.ranking(cell.spec, work, 5e9) == pytest.approx(15 + 11 + 7)
    other = cell.spec.model_copy(update={"weights": "another"})
    assert found.training(other, work) == found.training(cell.spec, work)  # the mean of one
    assert Estimator().training(cell.spec, work) == pytest.approx(16e9 * GUESS + 10 * GUESS_EACH)


def test_finished_runs_correct_their_model_since_the_calibration(cell: Trained) -> None:
    pace = Pace({model_key(cell.spec): RATES}, at="2026-01-02T00:00:00Z")
    expected = effort(cell.spec, 30.0, 1e6, 2e6)
    seconds = 30 * 1e6 * 1e-9 + expected.readings * (2e6 * 2e-9 + 0.5)
    after = timed(cell, 2 * seconds, "2026-01-03T00:00:00Z")
    assert Estimator([after], pace).factor(cell.spec.weights, 2.0) == pytest.approx(2.0)
    for ignored in (
        replace(after, began="2026-01-01T00:00:00Z"),  # before it
        replace(after, machine=("another", 1)),
        replace(after, weights="another"),  # a model that was measured stands for itself
        replace(after, seconds=0.0),
    ):
        assert Estimator([ignored], pace).factor(cell.spec.weights, 2.0) == 1.0
    unmeasured = Estimator([replace(after, weights="another")])
    assert unmeasured.factor(cell.spec.weights, 2.0) > 1.0
    assert "finished" in unmeasured.source()
    assert "calibrated" in Estimator([after], pace).source()
    assert "guess" in Estimator().source()


def test_a_shared_cell_counts_once_and_is_shown(study: Study) -> None:
    pace = Pace({}, boot=5.0)
    plan = Runs(study.profile, study.dataset, study.store, Estimator((), pace))
    runs = [
        plan.trained(model, pairs=pairs, seed=9)
        for model in ("small", "large")
        for pairs in (32, 160)
    ]
    whole = budget(plan, {"grid": runs}, 2)
    split = budget(plan, {"grid": runs[:3], "labels": runs[1:], "none": []}, 2)
    assert [line.shared for line in split.lines.values()] == [0, 2, 0]
    assert [line.runs for line in split.lines.values()] == [3, 3, 0]
    assert split.total.seconds == pytest.approx(whole.total.seconds)
    assert split.wall_seconds == pytest.approx(whole.wall_seconds)
    assert whole.wall_seconds > pace.boot
    line = whole.lines["grid"]
    tasks = [task for run in runs for task in run.tasks]
    assert line.seconds == pytest.approx(sum(task.seconds for task in tasks))
    assert line.flop == pytest.approx(sum(task.flop for task in tasks))
    assert min(line.training, line.reading, line.ranking) > 0
    assert len(distinct({"grid": runs[:3], "labels": runs[1:]})) == 4


def test_a_record_of_a_tune_stands_in_for_an_empty_store(fresh: Study) -> None:
    rows = [{"model": "small", "rate": 2e-3, "pairs": 160, "spent": 20.0, "state": "turned"}]
    train = fresh.profile.train.model_dump(mode="json")
    record = {"train": train, "weights": {"small": "digest"}, "runs": rows}
    fresh.build.mkdir(parents=True)
    (fresh.build / "tuned.json").write_text(json.dumps(record))
    (known,) = fresh.estimator().known
    assert (known.pairs, known.steps) == (160, 20.0)
    (fresh.build / "tuned.json").write_text("{}")
    with pytest.raises(UserError, match="no record of `repro tune`"):
        fresh.estimator()


@pytest.mark.slow
def test_what_is_stored_is_free(study: Study) -> None:
    assert study.sweep() == {}
    found = study.budget()
    assert found.total.stored == found.total.runs == 4
    assert found.total.seconds == found.wall_seconds == 0.0


@given(st.lists(st.floats(0, 1e4), max_size=30), st.integers(1, 9))
def test_workers_share_the_work(seconds: list[float], workers: int) -> None:
    wall = makespan(seconds, workers)
    least = max([sum(seconds) / workers, *seconds])
    assert least * 0.999 <= wall <= (sum(seconds) / workers + max(seconds, default=0)) * 1.001
    assert makespan(seconds, 1) == pytest.approx(sum(seconds))
