"""`repro store`: its commands over a real study, as a user types them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from repro import store as stores
from repro.app import planned
from repro.app.cli import main
from repro.app.study import Study
from repro.store import Store
from repro.work import plans


@pytest.fixture(scope="module")
def swept(study: Study) -> Study:
    """The study of seconds, all of it made."""
    assert study.sweep() == {}
    return study


@pytest.fixture
def home(swept: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of its store, which a test may harm."""
    shutil.copytree(swept.store.root, tmp_path / "runs")
    monkeypatch.setenv("REPRO_HOME", str(tmp_path))
    return tmp_path


def say(*arguments: str) -> list[str]:
    return ["store", *arguments]


def test_a_sweep_leaves_its_plan(swept: Study, home: Path) -> None:
    plan = plans.load(Store(home / "runs"), swept.name)
    assert plan is not None
    assert plan.asked.keys() == swept.tasks().keys()
    assert {each.experiments for each in plan.asked.values()} == {("grid",)}
    assert {kind for kind, _ in plan.reads} == {"collection", "splits", "tokens"}
    assert plan.later_seconds == ()


def test_the_plan_is_used_while_its_files_are_the_same(
    swept: Study, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, name = Store(home / "runs"), str(swept.profile_file)

    def refuse(name: str) -> Study:
        raise AssertionError("it opened the study")

    with monkeypatch.context() as patch:
        patch.setattr(planned, "open_study", refuse)
        assert planned.load(name, store).study == swept.name
        with pytest.raises(AssertionError):
            planned.load("mini", store)
    other = tmp_path / swept.profile_file.name
    other.write_text(swept.profile_file.read_text().replace('"seed": 1', '"seed": 2'))
    changed = planned.load(str(other), store)
    assert changed.study == swept.name
    assert not changed.asked.keys() & swept.tasks().keys()


def test_an_overlay_is_one_of_the_files_of_a_plan(swept: Study, home: Path, tmp_path: Path) -> None:
    over = tmp_path / "over.yaml"
    over.write_text("seed: 2\n")
    store, name = Store(home / "runs"), f"{swept.profile_file}+{over}"
    first = planned.load(name, store)
    assert first.files[2:] == (over,)
    assert planned.load(first.study, store).asked.keys() == first.asked.keys()  # as it is printed
    over.write_text("seed: 3\n")
    changed = planned.load(first.study, store)
    assert changed.study == first.study
    assert not changed.asked.keys() & first.asked.keys()


def test_status_of_a_study(home: Path, swept: Study, capsys: pytest.CaptureFixture[str]) -> None:
    name = str(swept.profile_file)
    assert main(say("status")) == 0
    assert f"{swept.name}: 8 of 8 done, 0 running, 0 waiting, 0 failed\n" in capsys.readouterr().out
    store = Store(home / "runs")
    gone = store.keys("train")[0]
    shutil.rmtree(store.path("train", gone))
    assert main(say("status", name, "--json")) == 0
    (found,) = json.loads(capsys.readouterr().out)["studies"]
    assert (found["done"], found["waiting"], found["missing"][0]["key"]) == (7, 1, gone)
    assert found["seconds_left"] > 0


def test_status_is_watched_until_nothing_is_left(
    home: Path, swept: Study, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(home / "runs")
    place = store.path("train", store.keys("train")[0])
    away = home / "away"
    place.rename(away)
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            away.rename(place)  # another process has made it

    monkeypatch.setattr(time, "sleep", pause)
    assert main(say("status", "--watch", "3")) == 0
    said = capsys.readouterr().out
    assert pauses == [3, 3]
    assert said.count("7 of 8 done, 0 running, 1 waiting") == 2
    assert said.count("8 of 8 done") == 1
    assert "\x1b" not in said  # no terminal
    assert main(say("status", "--watch")) == 0
    assert len(pauses) == 2
    assert main(say("status", "--watch", "0")) == 2


def test_status_loads_neither_models_nor_data(home: Path, swept: Study) -> None:
    code = "import sys; from repro.app.cli import main\n"
    code += f"assert main(['store', 'status', {str(swept.profile_file)!r}]) == 0\n"
    code += "print({'torch', 'transformers', 'pandas', 'numpy', 'pyarrow'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "set()"


@pytest.mark.slow
def test_verify_makes_a_sample_again_bit_for_bit(
    home: Path, swept: Study, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(str(path) for path in home.rglob("*"))
    assert main(say("verify", "--sample", "4", "--seed", "1")) == 0
    text = capsys.readouterr().out
    assert "0 were damaged" in text
    assert text.count("right: ") == 4
    assert text.count("on the same machine: the same") == 4
    assert "4 of 4 runs were made again, 0 of them wrong" in text
    assert sorted(str(path) for path in home.rglob("*")) == before, "it wrote into the store"


@pytest.mark.slow
def test_verify_finds_numbers_that_do_not_come_again(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Wrong from the start: files and manifest agree, and only a second run can tell."""
    store = Store(home / "runs")
    for key in store.keys("measure"):
        folder = store.path("measure", key)
        losses = np.load(folder / "test.npy")
        np.save(folder / "test.npy", losses * (1 + 1e-9))
        (folder / "manifest.json").write_text(json.dumps(stores._manifest(folder)))
    assert main(say("verify", "--sample", "8")) == 1
    text = capsys.readouterr().out
    assert text.count("WRONG: ranking of ") == 4
    assert text.count("right: ") == 4
    record = store.path("measure", key) / "provenance.json"
    about = json.loads(record.read_text())
    record.write_text(json.dumps({**about, "processor": "another"}))
    (folder / "manifest.json").write_text(json.dumps(stores._manifest(folder)))
    assert main(say("verify", "--sample", "8")) == 1
    text = capsys.readouterr().out
    assert text.count("WRONG: ") == 3, "on another machine the last digits may differ"
    assert "made on another machine or version" in text


def test_verify_sets_damage_aside_and_says_what_it_cannot_make(
    home: Path, swept: Study, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Store(home / "runs")
    splits = store.path("splits", store.keys("splits")[0])
    os.truncate(splits / "train.npy", 5)
    old = store.path("train", store.keys("train")[0])
    about = json.loads((old / "provenance.json").read_text())
    del about["inputs"]
    (old / "provenance.json").write_text(json.dumps(about))
    (old / "manifest.json").write_text(json.dumps(stores._manifest(old)))
    assert main(say("verify", "--sample", "8")) == 1
    text = capsys.readouterr().out
    assert "1 were damaged" in text
    assert f"splits/{splits.name} is damaged (train.npy does not match its digest)" in text
    assert list((home / "runs" / "splits" / ".aside").iterdir())
    assert f"splits/{splits.name} is not in the store" in text
    assert "name its profile" in text
    assert "0 of 8 runs were made again" in text


def test_gc_keeps_what_is_asked_for(
    home: Path, swept: Study, capsys: pytest.CaptureFixture[str]
) -> None:
    store, name = Store(home / "runs"), str(swept.profile_file)
    stray = store.get_or_make("train", {"stray": 1}, lambda f: (f / "x").write_text("y") and None)
    assert main(say("gc")) == 0
    assert "nothing\n" in capsys.readouterr().out
    assert main(say("gc", name)) == 0
    text = capsys.readouterr().out
    assert "1        0.0 MB  results that no named or planned study asks for" in text
    assert "nothing was removed: --yes does that" in text
    assert stray.exists()
    assert main(say("gc", name, "--yes")) == 0
    assert not stray.exists()
    fresh = Study(swept.profile_file)
    assert fresh.missing() == 0
    assert {kind: len(store.keys(kind)) for kind in ("collection", "splits", "tokens")} == {
        "collection": 1, "splits": 1, "tokens": 1,
    }  # fmt: skip


def test_gc_lets_no_result_go_while_a_study_is_unfinished(
    home: Path, swept: Study, capsys: pytest.CaptureFixture[str]
) -> None:
    store, name = Store(home / "runs"), str(swept.profile_file)
    stray = store.get_or_make("train", {"stray": 1}, lambda f: (f / "x").write_text("y") and None)
    shutil.rmtree(store.path("measure", store.keys("measure")[0]))
    assert main(say("gc", name, "--yes")) == 0
    assert "is not finished (1 runs are missing)" in capsys.readouterr().out
    assert stray.exists()


def test_explain_says_why_a_run_exists(
    home: Path, swept: Study, capsys: pytest.CaptureFixture[str]
) -> None:
    run = swept.planned()[0]
    key = swept.store.key("train", run.train.spec)
    assert main(say("explain", key[:12])) == 0
    text = capsys.readouterr().out
    for part in (f"train/{key}  {run.train.label}", f"by {swept.name}: grid", "(splits/", "(tokens/",
                 "used by     measure/", "seeds       seed 1", "device      cpu"):  # fmt: skip
        assert part in text
    assert main(say("explain", key, "--json")) == 0
    assert json.loads(capsys.readouterr().out)["spec"] == run.train.spec


def test_merge_fills_an_empty_store(
    home: Path, swept: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    empty = tmp_path / "empty"
    (empty / "runs").mkdir(parents=True)
    monkeypatch.setenv("REPRO_HOME", str(empty))
    assert main(say("merge", str(home))) == 0
    assert "11 results taken over, 0 were here" in capsys.readouterr().out
    assert Study(swept.profile_file).missing() == 0
    assert main(say("merge", str(home))) == 0
    assert "0 results taken over, 11 were here and are equal" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["explain", "zzz"], "no result"),
        (["explain", ""], "no result"),
        (["merge", "nowhere"], "this is no store"),
        (["merge", "."], "the store itself"),
        (["verify", "--sample", "-1"], "write 1 or more"),
        (["gc", "--older", "-1"], "an age is not negative"),
        (["status", "smok"], "did you mean `smoke`?"),
    ],
)
def test_what_cannot_be_is_refused(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    arguments: list[str], part: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(home)
    assert main(say(*arguments)) == 2
    text = capsys.readouterr().err
    assert part in text
    assert "Traceback" not in text


def test_where_there_is_no_store_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("REPRO_HOME", str(tmp_path))
    assert main(say("status")) == 2
    assert "there is no store yet" in capsys.readouterr().err
