"""`repro export`: a run is found by its key or its name, and what cannot be found is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from repro.app import export
from repro.app.cli import main
from repro.app.study import Study
from repro.model import pretrained
from repro.work.makers import Makers


@pytest.fixture
def made(fresh: Study) -> tuple[Study, str]:
    """A study with one finished run, and its key."""
    run = next(run for run in fresh.planned() if (run.model, run.pairs) == ("small", 32))
    makers = Makers(fresh.store, "cpu")
    folder = fresh.store.get_or_make(
        "train",
        run.train.spec,
        lambda work: makers.make(run.train, work, lambda flop, note: None),
    )
    return fresh, folder.name


def weights_of(study: Study) -> str:
    return study.profile.models["small"].weights


def test_by_name_and_by_key_are_the_same(made: tuple[Study, str], tmp_path: Path) -> None:
    study, key = made
    by_name, by_key = tmp_path / "by name", tmp_path / "by key"
    assert main(["export", str(study.profile_file), "small", "32", "1", "--out", str(by_name)]) == 0
    assert main(["export", key[:8], "--weights", weights_of(study), "--out", str(by_key)]) == 0
    for part in ("model.safetensors", "2_Dense/model.safetensors", "README.md", "modules.json"):
        assert (by_name / part).read_bytes() == (by_key / part).read_bytes()
    spec = json.loads((by_name / "repro-spec.json").read_text())
    assert (spec["kind"], spec["spec"]["pairs"]) == ("train", 32)
    text = (by_name / "README.md").read_text()
    assert f"| run | {key} |" in text
    assert f"{weights_of(study)}, stored as F32, trained in float32" in text
    assert {path.name for path in by_name.iterdir()} >= {
        "config.json", "tokenizer.json", "tokenizer_config.json", "1_Pooling", "2_Dense",
        "3_Normalize", "config_sentence_transformers.json", "sentence_bert_config.json",
    }  # fmt: skip


def test_the_best_checkpoint_is_what_is_written(made: tuple[Study, str], tmp_path: Path) -> None:
    from safetensors.torch import load_file

    study, key = made
    main(["export", key, "--weights", weights_of(study), "--out", str(tmp_path / "out")])
    best = load_file(study.store.path("train", key) / "best.safetensors")
    body = load_file(tmp_path / "out" / "model.safetensors")
    start = load_file(pretrained.load(weights_of(study)).folder / "model.safetensors")
    assert body.keys() == start.keys()
    for name, weights in body.items():
        assert weights.equal(best[f"backbone.{name}"])
    moved = sum(not weights.equal(start[name]) for name, weights in body.items())
    assert moved > len(body) / 2


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["zzzz"], "0 of the 1 runs begin with `zzzz`"),
        (["{key}"], "started from none of the shipped models"),
        (["{key}", "--weights", "micro/1x32"], "`micro/1x32` is not the model"),
        (["{profile}", "smal", "32", "1"], "did you mean `small`"),
        (["{profile}", "small", "160", "1"], "is not in the store"),
        (["{profile}", "small", "160", "1"], r"those that are (pairs, seed): 32 1"),
        (["{profile}", "small", "32", "7"], "with seed 7 is not in the store"),
        (["{profile}", "small", "many", "1"], "`many` and `1` are to be"),
        (["{profile}", "small"], "2 given"),
    ],
)
def test_what_cannot_be_found_is_said(
    made: tuple[Study, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    says: str,
) -> None:
    study, key = made
    told = [word.format(key=key, profile=study.profile_file) for word in words]
    assert main(["export", *told, "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert "remedy" in error
    assert not (tmp_path / "out").exists()


def test_a_folder_that_is_there_is_not_touched(
    made: tuple[Study, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study, key = made
    (tmp_path / "out").mkdir()
    assert (
        main(["export", key, "--weights", weights_of(study), "--out", str(tmp_path / "out")]) == 2
    )
    assert "there already" in capsys.readouterr().err
    assert list((tmp_path / "out").iterdir()) == []


def test_a_damaged_run_is_not_exported(
    made: tuple[Study, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study, key = made
    folder = study.store.path("train", key)
    (folder / "best.safetensors").write_bytes(b"cut")
    assert main(["export", key, "--out", str(tmp_path / "out")]) == 2
    assert "damaged" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_shipped_model_is_found_by_its_digest() -> None:
    source = pretrained.load("micro/1x64")
    assert export._source(source.digest, None).name == "micro/1x64"
