"""The queue without processes: what is made, what is set aside, and that it always ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from repro import store as store_room
from repro.store import Store
from repro.work.queue import Sweep, Task, work


def write(task: Task, folder: Path) -> None:
    (folder / "made.txt").write_text(task.label)


def task(name: str, after: tuple[str, str] | None = None) -> Task:
    return Task("train", {"name": name}, name, 1.0, {}, after=after)


def test_a_result_version_raised_during_a_sweep_ends_it_with_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep = Sweep(Store(tmp_path), [task("a"), task("b")], "s")
    monkeypatch.setitem(store_room.VERSIONS, "train", store_room.VERSIONS["train"] + 1)
    reasons: list[str] = []
    work(sweep, write, lambda where: None, lambda where, error: reasons.append(error))
    assert len(reasons) == 2
    assert all("the code was changed while the sweep ran" in reason for reason in reasons)
    assert not list(tmp_path.glob("train/*/manifest.json"))


def test_what_needs_a_failed_task_fails_with_it_and_the_rest_is_made(tmp_path: Path) -> None:
    store = Store(tmp_path)
    first = task("first")
    key = ("train", store.key("train", first.spec))
    sweep = Sweep(store, [first, task("second", after=key), task("third")], "s")

    def make(one: Task, folder: Path) -> None:
        if one.label == "first":
            raise ValueError("no")
        write(one, folder)

    ended: dict[str, str] = {}
    work(sweep, make, lambda where: None, lambda where, error: ended.update({where[1]: error}))
    assert ended[key[1]] == "ValueError: no"
    assert sweep.waiting() == []
    assert len(list(tmp_path.glob("train/*/made.txt"))) == 1
