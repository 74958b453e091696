"""The short form of `make torture`: nothing lost, wrong or made twice; and that it would be seen."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from random import Random

import pytest

from repro.store import Store
from stored import add
from torture import faults, run
from torture.scene import Parent, Scene
from torture.sweep import digests

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux only")


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """A scene of a store with three results, and no process."""
    store = Store(tmp_path / "home" / "runs")
    for name in "abc":
        add(store, "train", {"name": name})
    return Scene(tmp_path / "p.yaml", tmp_path / "home", list(digests(store.root)))


@pytest.mark.parametrize("name", faults.DAMAGES)
def test_each_damage_is_done_once_and_noted(scene: Scene, name: str) -> None:
    before = {path: path.read_bytes() for path in scene.store.root.rglob("*") if path.is_file()}
    scene.act(name, Random(3))
    after = {path: path.read_bytes() for path in scene.store.root.rglob("*") if path.is_file()}
    changed = [path for path in before if after.get(path) != before[path]]
    assert len(changed) == 1
    ((_, noted, words),) = scene.done
    assert noted == name
    assert str(changed[0].relative_to(scene.store.root)) in words
    assert scene.harmed == ["/".join(changed[0].relative_to(scene.store.root).parts[:2])]


def test_times_are_no_numbers_and_a_bit_is_one(scene: Scene) -> None:
    before = digests(scene.store.root)
    summary = next(scene.store.root.glob("train/*/summary.json"))
    told = json.loads(summary.read_text())
    summary.write_text(json.dumps({**told, "seconds": 99.0}))
    assert digests(scene.store.root) == before
    summary.write_text(json.dumps({**told, "mael": told["mael"] + 1e-15}))
    assert digests(scene.store.root) != before


@pytest.mark.parametrize(
    ("code", "said", "ended_by", "fault"),
    [
        (0, "all well", 0, ""),
        (1, "missing: run a: memory ran out", 0, ""),
        (1, "", 0, "said not why"),
        (2, "sweep: x\n  remedy: y", 0, ""),
        (130, "stopped; the same command goes on from here", 2, ""),
        (1, "missing: a\nTraceback (most recent call last)", 0, "traceback"),
        (-11, "", 0, "ended with -11"),
        (-9, "", 9, ""),
        (-9, "", 0, "ended with -9"),
    ],
)
def test_how_a_parent_may_end(
    scene: Scene, code: int, said: str, ended_by: int, fault: str
) -> None:
    class Ended:
        returncode = code

    log = scene.home / "log"
    log.write_text(said)
    scene.look(Parent(Ended(), log, {}, ended_by))  # type: ignore[arg-type]
    assert len(scene.faults) == bool(fault)
    assert fault in "".join(scene.faults)


@pytest.mark.slow
def test_a_minute_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = run.main(["--minutes", "0.6", "--seed", "7", "--folder", str(tmp_path / "torture")])
    assert code == 0, capsys.readouterr().out
    report = json.loads((tmp_path / "torture" / "report.json").read_text())
    assert report["faults"] == 0
    assert sum(report["by fault"].values()) > 5
    assert not list((tmp_path / "torture").glob("kept-*"))
