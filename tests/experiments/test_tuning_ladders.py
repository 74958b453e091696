"""The ladders on the tuning split: what they run, that they go on where they were stopped."""

from __future__ import annotations

from pathlib import Path

import pytest

import tiny
from repro.app.study import Study
from repro.errors import UserError
from repro.experiments.tuning import TuneParams, Tuning
from repro.work.makers import Makers
from repro.work.queue import Task


@pytest.fixture(scope="module")
def tunable(study_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Study:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REPRO_HOME", str(tmp_path_factory.mktemp("home")))
        return Study(tiny.write_tunable(study_file, tmp_path_factory.mktemp("tunable")))


class Here:
    """Makes tasks in this process; stops after `most` of them."""

    def __init__(self, study: Study, most: int = 100) -> None:
        self.study, self.most, self.made = study, most, []

    def __call__(self, tasks: list[Task]) -> dict[str, str]:
        makers = Makers(self.study.store, "cpu")
        for task in tasks:
            if len(self.made) == self.most:
                raise KeyboardInterrupt
            self.made.append(self.study.store.key(task.kind, task.spec))
            self.study.store.make(
                task.kind, task.spec, lambda folder, task=task: makers.make(task, folder, print)
            )
        return {}


def tuning(study: Study, asked: TuneParams) -> Tuning:
    return Tuning(study.profile, study.dataset, study.store, asked)


@pytest.mark.slow
def test_it_runs_on_tuning_pairs_alone_and_goes_on_where_it_was_stopped(
    tunable: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, study_file: Path
) -> None:
    asked = TuneParams(models=("small",), rates=(1e-3, 4e-3), pairs=(32,), seeds=2)
    whole = tuning(tunable, asked)
    once = Here(tunable)
    whole.run(once)
    record = whole.record()
    assert record["chosen"]["small"]["rate"] in asked.rates
    assert list(record["predicted"]) == ["large"]
    assert len(set(once.made)) == len(once.made) == len(record["runs"])
    for row in record["runs"]:
        text = (tunable.store.path("train", row["run"]) / "spec.json").read_text()
        assert whole.view.splits.digest in text
        assert tunable.dataset.splits.digest not in text
        assert tunable.dataset.evaluation("validation").digest not in text

    monkeypatch.setenv("REPRO_HOME", str(tmp_path))
    again = Study(tunable.profile_file)
    stopped = [Here(again, most) for most in (1, 1, 100)]
    for each in stopped[:2]:
        with pytest.raises(KeyboardInterrupt):
            tuning(again, asked).run(each)
    last = tuning(again, asked)
    last.run(stopped[2])
    assert sorted(key for each in stopped for key in each.made) == sorted(once.made)
    drop = ("provenance",)
    assert {k: v for k, v in last.record().items() if k not in drop} == {
        k: v for k, v in record.items() if k not in drop
    }


def test_what_is_not_asked_for_is_chosen(tunable: Study) -> None:
    plain = tuning(tunable, TuneParams())
    assert plain.models == ["small", "large"]
    smallest, middle = plain.sizes
    assert smallest == 32 < middle <= len(plain.view.splits.train) < 160
    assert plain.ladders["large"].rates == (5e-4, 1e-3, 2e-3)
    assert tuning(tunable, TuneParams(every=True)).models == ["small", "large"]


def test_a_failed_run_ends_it(tunable: Study) -> None:
    asked = TuneParams(models=("large",), rates=(1e-3,), pairs=(32,))
    with pytest.raises(UserError, match=r"1 runs of the ladders failed: .*: no memory"):
        tuning(tunable, asked).run(lambda tasks: {tasks[0].label: "no memory"})
