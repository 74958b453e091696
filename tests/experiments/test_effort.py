"""The work of a run, told before: steps from runs like it, readings by the loop's own rule."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from repro.app.study import Study
from repro.experiments import costs
from repro.experiments.effort import (
    PASSES,
    PAST,
    Finished,
    effort,
    expected_steps,
    finished,
    setting,
    tuned,
)
from repro.experiments.runs import Trained
from repro.train.loop import RunSpec
from repro.work.makers import Makers


def changed(cell: Trained, **values: Any) -> RunSpec:
    curve = cell.spec.curve.model_copy(update={"max_steps": 10_000, "least_passes": 0.0})
    return cell.spec.model_copy(update={"curve": curve, **values})


def known(spec: RunSpec, passes: float, **values: Any) -> Finished:
    pairs = values.pop("pairs", spec.pairs)
    place = {"weights": spec.weights, "lr": spec.lr, "setting": setting(spec)} | values
    return Finished(pairs=pairs, steps=passes * pairs / spec.train.batch_pairs, **place)


def test_without_runs_it_is_a_number_of_passes(cell: Trained) -> None:
    spec = changed(cell)
    steps = PAST * PASSES * spec.pairs / spec.train.batch_pairs
    assert expected_steps(spec, []) == pytest.approx(steps)
    least = spec.curve.model_copy(update={"least_passes": 9.0})
    more = spec.model_copy(update={"curve": least})
    assert expected_steps(more, []) == pytest.approx(9.0 * spec.pairs / spec.train.batch_pairs)


def test_the_nearest_runs_weigh_most(cell: Trained) -> None:
    spec = changed(cell)

    def passes(*runs: Finished) -> float:
        return expected_steps(spec, list(runs)) * spec.train.batch_pairs / spec.pairs

    usual = PAST * PASSES
    assert 0.8 * usual < passes(known(spec, 3.0, weights="other")) < usual
    here = known(spec, 3.0)
    for far in (
        known(spec, 9.0, pairs=16 * spec.pairs),
        known(spec, 9.0, lr=spec.lr / 8),
        known(spec, 9.0, weights="other"),
        known(spec, 9.0, setting=(7, 7, False)),
    ):
        assert 3.0 <= passes(here, far) < 3.2
    assert 5.0 < passes(known(spec, 3.0, lr=spec.lr / 2), known(spec, 9.0, lr=2 * spec.lr)) < 5.4


@given(passes=st.lists(st.floats(0.5, 50), min_size=1, max_size=5))
def test_the_guess_lies_among_the_runs_and_within_the_limit(
    cell: Trained, passes: list[float]
) -> None:
    spec = changed(cell)
    runs = [known(spec, each, pairs=spec.pairs * 2**i) for i, each in enumerate(passes)]
    found = expected_steps(spec, runs) * spec.train.batch_pairs / spec.pairs
    usual = PAST * PASSES
    assert min(*passes, usual) * 0.999 <= found <= max(*passes, usual) * 1.001
    limited = spec.curve.model_copy(update={"max_steps": 3})
    assert expected_steps(spec.model_copy(update={"curve": limited}), runs) <= 3


def test_a_finished_run_is_told_as_it_was(cell: Trained, makers: Makers, fresh: Study) -> None:
    """The readings of the loop and the ones that are told agree; what is damaged is left out."""
    task = cell.train
    folder = fresh.store.make(
        "train", task.spec, lambda work: makers.make(task, work, lambda flop, note: None)
    )
    curve = pd.read_parquet(folder / "curve.parquet")
    (found,) = finished(fresh.store)
    assert found.steps == pytest.approx(curve["step"].iloc[-1], rel=0.05)
    assert found.spec == cell.spec
    step = found.flop / found.steps
    plan = costs.effort(fresh.runs, cell.spec, task.inputs["weights"])
    told = effort(cell.spec, found.steps, step, plan.reading_flop)
    assert abs(told.readings - 1 - len(curve)) <= 1
    assert plan.step_flop == pytest.approx(step, rel=0.15)
    assert expected_steps(cell.spec, [found]) == pytest.approx(found.steps, rel=0.1)
    (folder / "summary.json").write_text("{")
    assert finished(fresh.store) == []


def test_a_tune_record_is_read_where_the_store_is_empty(cell: Trained, tmp_path: Path) -> None:
    rows = [
        {"model": "small", "rate": 1e-3, "pairs": 32, "spent": 20.0, "state": "turned"},
        {"model": "small", "rate": 1e-1, "pairs": 32, "spent": None, "state": "diverged"},
    ]
    train = cell.spec.train.model_dump(mode="json")
    record = {"train": train, "weights": {"small": "digest"}, "runs": rows}
    (found,) = tuned(json.loads(json.dumps(record)))
    assert (found.weights, found.pairs, found.lr, found.steps) == ("digest", 32, 1e-3, 20.0)
    assert found.setting == setting(cell.spec)
