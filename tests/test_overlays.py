"""An overlay: one YAML laid over a profile, in the study's name, with faults named in its own lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from repro import params
from repro.app.named import files
from repro.app.study import Study
from repro.document import read
from repro.errors import UserError
from repro.experiments.profile import Profile
from repro.places import ROOT, absolute


def write(folder: Path, name: str, text: str) -> Path:
    (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    return folder / f"{name}.yaml"


def test_mappings_merge_by_key_and_all_else_is_replaced(tmp_path: Path) -> None:
    below = write(tmp_path, "below", "a: {x: 1, y: 2}\nb: [1, 2]\nc: {z: 3}\nd: 4\n")
    above = write(tmp_path, "above", "a: {y: 5}\nb: [9]\nc: null\n")
    last = write(tmp_path, "last", "a: {y: 6}\n")
    found = read(below, above, last)
    assert found.data == {"a": {"x": 1, "y": 6}, "b": [9], "c": None, "d": 4}
    assert found.place(("a", "x")) == f"{below}:1"
    assert found.place(("a", "y")) == f"{last}:1"
    assert found.place(("b", 0)) == f"{above}:2"
    assert read(below).data["a"] == {"x": 1, "y": 2}


def test_a_study_is_called_by_its_overlays_and_runs_under_them(
    study_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REPRO_HOME", str(tmp_path))
    half = write(tmp_path, "half", "grid: {models: [small]}\ntrain: {schedule: linear}\n")
    study = Study(*files(f"{study_file}+{half}"))
    assert study.name == "study+half-tiny"
    assert study.build.name == study.name
    assert [run.model for run in study.planned()] == ["small", "small"]
    assert {run.spec.train.schedule for run in study.planned()} == {"linear"}
    assert half.resolve() in study.depends_on()
    keys = {run.spec.model_dump_json() for run in study.planned()}
    plain = {run.spec.model_dump_json() for run in Study(*files(str(study_file))).planned()}
    assert not keys & plain
    assert study.changed("again").profile == study.profile


def test_a_fault_in_an_overlay_is_named_by_its_own_line(
    study_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REPRO_HOME", str(tmp_path))
    wrong = write(tmp_path, "wrong", "# two lines\ntrain:\n  batch_pair: 8\n")
    with pytest.raises(UserError, match=f"{wrong}:3.*batch_pair") as fault:
        Study(*files(f"{study_file}+{wrong}"))
    assert "batch_pairs" in fault.value.remedy
    large = write(tmp_path, "large", "grid:\n  sizes: [32, 900000]\n")
    with pytest.raises(UserError, match="900,000") as fault:
        Study(*files(f"{study_file}+{large}")).planned()
    assert fault.value.where == f"{large}:2"


def test_names_of_overlays_are_files_of_params_or_paths(tmp_path: Path) -> None:
    profile, dataset, overlays = files("paper+drscale")
    assert (profile, dataset) == (ROOT / "params" / "paper.yaml", None)
    assert overlays == [ROOT / "params" / "overlays" / "drscale.yaml"]
    whole = absolute("params/paper.yaml+params/overlays/drscale.yaml:params/datasets/x.yaml")
    parts = [Path.cwd() / name for name in ("params/paper.yaml", "params/overlays/drscale.yaml")]
    assert whole == f"{parts[0]}+{parts[1]}:{Path.cwd() / 'params/datasets/x.yaml'}"
    assert absolute("paper+drscale:msmarco") == "paper+drscale:msmarco"
    with pytest.raises(UserError, match="no overlay `drscal`") as fault:
        files("paper+drscal")
    assert "drscale" in fault.value.remedy
    plus = write(tmp_path, "a+b", "x: 1\n")  # a plus in the name of a file is no overlay
    assert files(str(plus))[0] == plus
    assert absolute(str(plus)) == str(plus)


@pytest.mark.parametrize("profile", ["paper", "sigir24", "t2ranking"])
def test_the_code_of_the_paper_is_one_overlay(profile: str) -> None:
    _, _, (overlay,) = files(f"{profile}+drscale")
    found = params.validate(read(ROOT / "params" / f"{profile}.yaml", overlay), Profile)
    assert (found.texts.train_query_tokens, found.texts.query_tokens) == (25, 32)
    assert (found.train.schedule, found.curve.most_passes) == ("linear", 80)
    assert (found.ranking.passages, found.n, found.seed) == (1_000_000, "drscale_mebi", 521)
    assert not found.train.negatives.in_batch
    assert found.encoder.precision == "float32"
    plain = params.load(ROOT / "params" / f"{profile}.yaml", Profile)
    assert found.models == plain.models
    assert "schedule" not in json.loads(plain.train.model_dump_json())
