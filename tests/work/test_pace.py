"""The calibration: it measures every model of a study in seconds, and is kept with what it fits."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from repro.app.cli import main
from repro.app.study import Study
from repro.experiments import costs
from repro.work import pace
from repro.work.local import ExecuteParams
from repro.work.pace import GUESS_EACH, Pace, Rates, load, model_key, place


@pytest.mark.slow
def test_it_measures_each_kind_of_work_of_each_model(
    study: Study, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    runs = {run.model: run for run in study.planned()}
    measured = [(run.train, costs.searched(study.runs)) for run in runs.values()]
    path = tmp_path / "pace.json"
    found = pace.calibrate(study.store, measured, study.profile.execute, path, seconds=1.0)
    assert set(found.models) == {model_key(run.spec) for run in runs.values()}
    for rates in found.models.values():
        kinds = dataclasses.asdict(rates)
        assert kinds.pop("each") == 0  # `step` was measured on whole steps
        assert all(value > 0 for value in kinds.values())
    assert found.boot > 0 < found.search
    assert load(path) == found
    again = pace.calibrate(study.store, measured[:1], study.profile.execute, path, seconds=0.1)
    assert set(again.models) == set(found.models)


def test_it_is_kept_under_the_machine_the_workers_and_the_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = place(tmp_path, ExecuteParams(workers=1))
    assert one == place(tmp_path, ExecuteParams(workers=1))
    others = {
        place(tmp_path, ExecuteParams(workers=2)),
        place(tmp_path, ExecuteParams(workers=1, device="cpu")),
    }
    monkeypatch.setattr(pace, "code", lambda: "changed")
    others.add(place(tmp_path, ExecuteParams(workers=1)))
    monkeypatch.undo()
    monkeypatch.setattr(pace.platform, "node", lambda: "elsewhere")
    others.add(place(tmp_path, ExecuteParams(workers=1)))
    assert len(others | {one}) == 5


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"models": {"a": {"stride": 1}}}', '{"models": 3}', "{}"]
)
def test_a_damaged_file_is_no_calibration(tmp_path: Path, text: str) -> None:
    (tmp_path / "pace.json").write_text(text)
    assert load(tmp_path / "pace.json") == Pace({})
    assert load(tmp_path / "missing.json") == Pace({})


def test_a_model_that_was_not_measured_has_the_mean(study: Study) -> None:
    spec = study.planned()[0].spec
    two = Pace({"a": Rates(step=1.0, start=4.0), "b": Rates(step=3.0, start=2.0)})
    assert (two.of(spec).step, two.of(spec).start) == (2.0, 3.0)
    assert Pace({}).of(spec) == Rates(each=GUESS_EACH)


@pytest.mark.slow
def test_check_calibrates_and_the_sweep_tells_how_right_it_was(
    fresh: Study, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("repro.app.study.pace.SECONDS", 2.0)
    assert main(["check", str(fresh.profile_file), "--calibrate"]) == 0
    assert "(calibrated " in capsys.readouterr().out
    assert fresh.sweep() == {}
    assert "estimated" in capsys.readouterr().out
    assert main(["check", str(fresh.profile_file)]) == 0
    text = capsys.readouterr().out
    assert "the last sweep was estimated at" in text
    assert "corrected by 4 runs since" in text
