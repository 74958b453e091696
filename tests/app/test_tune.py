"""`repro tune` on a study of seconds: it chooses, runs nothing twice, refuses what cannot be tuned."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tiny
from repro.app.cli import main


@pytest.fixture(scope="module")
def profile(study_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny study with room in its tuning split."""
    return tiny.write_tunable(study_file, tmp_path_factory.mktemp("tune"))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(autouse=True)
def at_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPRO_HOME", str(home))


def tuned(profile: Path, *options: str) -> dict[str, Any]:
    assert main(["tune", str(profile), "--models", "small", "--seeds", "2", *options]) == 0
    path = profile.parent / "record.json"
    return json.loads(path.read_text()) if path.exists() else {}


@pytest.mark.slow
def test_it_chooses_and_says_why_and_runs_nothing_twice(
    profile: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--rates", "1e-3", "4e-3", "--pairs", "32", "--json")
    record = tuned(profile, *options, str(profile.parent / "record.json"))
    text = capsys.readouterr().out
    choice = record["chosen"]["small"]
    assert choice["rate"] in (1e-3, 4e-3)
    assert choice["reason"] in text
    assert (
        f"small: {{weights: {json.loads(profile.read_text())['models']['small']['weights']}, lr: "
        in text
    )
    assert set(record["predicted"]) == {"large"}
    assert json.loads((home / "build" / "study-tiny" / "tuned.json").read_text()) == record
    runs = {path.name: path.stat().st_mtime_ns for path in (home / "runs" / "train").glob("[!.]*")}
    assert {row["run"] for row in record["runs"]} == set(runs)
    assert len({(row["rate"], row["pairs"], row["seed"]) for row in record["runs"]}) == len(runs)
    again = tuned(profile, *options, str(profile.parent / "record.json"))
    assert again["runs"] == record["runs"]
    assert runs == {
        path.name: path.stat().st_mtime_ns for path in (home / "runs" / "train").glob("[!.]*")
    }


@pytest.mark.parametrize(
    ("options", "what", "remedy"),
    [
        (["--models", "smal"], "no model `smal`", "did you mean `small`?"),
        (["--rates", "-0.1"], "-0.1 is no learning rate", "positive"),
        (["--rates", "0"], "0 is no learning rate", "positive"),
        (["--rates", "nan"], "nan is no learning rate", "positive"),
        (["--pairs", "99999"], "99,999 pairs", "to "),
        (["--pairs", "1"], "1 pairs", "16 (the batch)"),
        (["--seeds", "1"], "seed sd", "2 or more"),
        (["--json", "."], "directory", "name a file"),
    ],
)
def test_what_cannot_be_tuned_is_refused(
    profile: Path, options: list[str], what: str, remedy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tune", str(profile), *options]) == 2
    text = capsys.readouterr().err
    assert what in text
    assert remedy in text


@pytest.mark.parametrize(
    ("dataset", "what"), [("tiny2", "none is left to train on"), ("tiny3", "no tuning set")]
)
def test_a_dataset_without_room_for_tuning_is_refused(
    profile: Path, dataset: str, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = profile.with_name(f"{dataset}.yaml")
    assert main(["tune", f"{profile}:{path}"]) == 2
    assert what in capsys.readouterr().err
