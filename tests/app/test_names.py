"""Pins what a name or a path on the command line means, and what is said of the wrong kind of file."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from repro import params
from repro.app.named import files
from repro.data.dataset import DatasetParams, load_dataset_params
from repro.errors import UserError, nearest
from repro.experiments.profile import Profile
from repro.places import ROOT
from repro.store import Store
from repro.work import plans
from repro.work.plans import Plan

PARAMS = ROOT / "params"


def test_a_dataset_file_is_no_profile_and_is_told_so() -> None:
    with pytest.raises(
        UserError, match="this is a dataset file, and a profile is wanted"
    ) as caught:
        params.load(PARAMS / "datasets" / "template.yaml", Profile)
    assert "DATASET=" in caught.value.remedy


def test_a_profile_is_no_dataset_file_and_is_told_so() -> None:
    with pytest.raises(
        UserError, match="this is a profile, and a dataset file is wanted"
    ) as caught:
        load_dataset_params(str(PARAMS / "first.yaml"))
    assert "PROFILE=" in caught.value.remedy


@pytest.mark.parametrize("path", sorted(PARAMS.rglob("*.yaml")), ids=lambda path: path.stem)
def test_every_file_here_is_taken_for_what_it_is(path: Path) -> None:
    for model in (Profile, DatasetParams):
        try:
            params.load(path, model)
        except UserError as error:
            wrong = "is wanted here" in error.what
            assert wrong == (path.parent.name == "datasets") or model is DatasetParams


@pytest.mark.parametrize("name", ["zebra", "x", "training-data", "kangaroo"])
def test_no_unrelated_word_is_suggested(name: str) -> None:
    assert "did you mean" not in nearest(name, ["mini", "smoke", "paper", "apidocs", "team"])


@pytest.mark.parametrize(
    ("name", "near"), [("mni", "mini"), ("apidoc", "apidocs"), ("papper", "paper")]
)
def test_a_slip_of_the_pen_is_understood(name: str, near: str) -> None:
    assert near in nearest(name, ["mini", "smoke", "paper", "apidocs", "team"])


def test_a_study_may_be_called_as_it_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REPRO_HOME", str(tmp_path))
    assert files("mini-apidocs") == files("mini:apidocs")
    assert files("mini+drscale-pydocs-learning") == files("mini+drscale:pydocs-learning")
    mine = tmp_path / "far-away.yaml"
    shutil.copy(PARAMS / "datasets" / "template.yaml", mine)
    plan = Plan("first-far-away", (PARAMS / "first.yaml", mine), False, "d", 1, {}, ())
    plans.write(Store(tmp_path / "runs"), plan)
    assert files("first-far-away") == (PARAMS / "first.yaml", mine, [])
    with pytest.raises(UserError, match="there is no profile `first-nothing`"):
        files("first-nothing")


@pytest.mark.parametrize(
    ("sizes", "chosen"),
    [
        ([320, 640, 1280, 2560, 5120, 10240], [320, 1280, 5120]),
        ([320, 640, 1280, 2560], [320, 1280]),
        ([160, 320], [160]),
        ([160], [160]),
    ],
)
def test_the_sizes_of_the_lr_study_follow_the_grid(sizes: list[int], chosen: list[int]) -> None:
    study = params.load(PARAMS / "team.yaml", Profile).lr_study
    assert study is not None
    settled = study.settled(sizes)
    assert settled.sizes == chosen
    assert "automatic" not in settled.model_dump()
    assert settled.settled([1]) == settled


def test_make_takes_a_dataset_from_where_it_was_called(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").touch()
    call = ["make", "-n", "-C", str(ROOT), "check", "DATASET=mine.yaml", "PROFILE=first"]
    shown = subprocess.run(
        call, cwd=tmp_path, env={"PATH": "/usr/bin:/bin", "PWD": str(tmp_path)},
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert f"first:{tmp_path}/mine.yaml" in shown
    call = ["make", "-n", "-f", str(ROOT / "Makefile"), "check", "DATASET=apidocs"]
    shown = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert f"{ROOT}/bootstrap.py" in shown
    assert "mini:apidocs" in shown


def test_make_refuses_a_variable_in_small_letters() -> None:
    call = ["make", "-n", "-C", str(ROOT), "reproduce", "profile=smoke"]
    done = subprocess.run(call, capture_output=True, text=True)
    assert done.returncode == 2
    assert "write PROFILE=smoke, in capitals" in done.stderr


@pytest.mark.parametrize("target", ["reproduce", "check", "tune", "publish", "site", "stability"])
@pytest.mark.parametrize("where", [[], ["-C", str(ROOT)]])
def test_make_without_a_dataset_names_none(target: str, where: list[str]) -> None:
    call = ["make", "-n", *where, target, "PROFILE=smoke"]
    shown = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert f"repro.app.cli {target} 'smoke'" in shown
    assert "--dataset" not in shown
