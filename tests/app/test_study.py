"""Pins what a study says of itself before anything runs."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from repro.app.named import files
from repro.app.study import Study
from repro.data.sources.pydocs import VERSIONS
from repro.errors import UserError
from repro.work import local
from repro.work.queue import Task


def test_a_text_read_from_other_versions_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REPRO_HOME", str(tmp_path))
    study = Study(*files("smoke:pydocs-numeric"))
    monkeypatch.setitem(VERSIONS, "numpy", "0.1")
    said = study.describe()
    assert "pydocs-numeric is read from numpy " in said
    assert "in place of 0.1" in said
    assert "recorded, not checked" in said
    assert "is read from" not in Study(*files("smoke:apidocs")).describe()


@pytest.mark.parametrize("key", ["query_tokens", "passage_tokens"])
def test_texts_longer_than_a_model_reads_are_refused(
    study_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    """They would end every run with an index out of range."""
    monkeypatch.setenv("REPRO_HOME", str(tmp_path))
    profile = json.loads(study_file.read_text())
    profile["texts"][key] = 129  # the tiny BERTs have 128 positions
    (tmp_path / "long.yaml").write_text(json.dumps(profile))
    with pytest.raises(UserError, match=f"texts.{key} is 129, but small reads 128 tokens") as error:
        Study(tmp_path / "long.yaml").planned()
    assert error.value.remedy == "use 128 or less"
    assert "long.yaml:1" in str(error.value.where)


def test_runs_that_follow_from_others_are_made_after_them(
    study_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Once the first runs are there the plan grows; what has grown is run too, and only that."""
    monkeypatch.setenv("REPRO_HOME", str(tmp_path))
    study = Study(study_file)
    first, later = ["grid 1", "grid 2"], ["control 1"]
    made: list[list[str]] = []

    def planned() -> list[SimpleNamespace]:
        names = [*first, *later] if made else first
        return [
            SimpleNamespace(tasks=(Task("train", {"name": name}, name, 1.0),)) for name in names
        ]

    def run(_store: object, tasks: list[SimpleNamespace], *_: object, **__: object) -> dict:
        made.append([task.label for task in tasks])
        return {}

    monkeypatch.setattr(study, "planned", planned)
    nothing = SimpleNamespace(total=SimpleNamespace(flop=0.0), wall_seconds=60.0, source="a guess")
    monkeypatch.setattr(study, "budget", lambda: nothing)
    monkeypatch.setattr(local, "run", run)
    assert study.sweep() == {}
    assert made == [first, later]
    said = capsys.readouterr().out.splitlines()
    assert [line.partition(": ")[2][:15] for line in said] == ["2 runs to train", "1 runs to train"]


def test_data_sizes_that_were_left_open_are_chosen_and_told(
    study_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REPRO_HOME", str(tmp_path))
    profile = json.loads(study_file.read_text())
    for sizes, found in (("auto from 30", [30, 60, 120, 240]), ("auto from 30 to 99", [30, 60])):
        profile["grid"]["sizes"] = sizes
        (tmp_path / "open.yaml").write_text(json.dumps(profile))
        study = Study(tmp_path / "open.yaml")
        assert study.profile.grid.sizes == found
        assert f"D chosen: {len(found)} doublings of 30, of the 260 pairs" in study.describe()
        listed = {**profile, "grid": {**profile["grid"], "sizes": found}}
        (tmp_path / "listed.yaml").write_text(json.dumps(listed))
        assert Study(tmp_path / "listed.yaml").digests() == study.digests()
    profile["grid"]["sizes"] = "auto from 300"
    (tmp_path / "open.yaml").write_text(json.dumps(profile))
    with pytest.raises(UserError, match="starts from 300 pairs, but there are 260") as caught:
        Study(tmp_path / "open.yaml").describe()
    assert caught.value.where == f"{tmp_path / 'open.yaml'}:1"
