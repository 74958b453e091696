"""The queue without processes: what is made, what is set aside, and that it always ends."""

from __future__ import annotations

import errno
import json
from pathlib import Path

import pytest

from repro import store as store_room
from repro.errors import UserError
from repro.store import Spoilt, Store
from repro.work.queue import MAX_ATTEMPTS, Sweep, Task, in_words, work


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


@pytest.mark.parametrize("times", [1, MAX_ATTEMPTS])
def test_what_rests_on_spoilt_data_is_begun_again_but_not_for_ever(
    tmp_path: Path, times: int
) -> None:
    sweep, calls, forgotten = Sweep(Store(tmp_path), [task("a")], "s"), [], []

    def make(one: Task, folder: Path) -> None:
        calls.append(one.label)
        if len(calls) <= times:
            raise Spoilt("collection/c was changed on disk while it was read")
        write(one, folder)

    work(sweep, make, lambda where: None, lambda *_: None, forget=lambda: forgotten.append(1))
    assert len(forgotten) == times
    if times < MAX_ATTEMPTS:
        assert sweep.faults() == {}
        assert not list(tmp_path.glob("train/.failed/*"))
    else:
        assert "collection/c was changed on disk" in sweep.faults()["a"]


def test_what_needs_a_result_that_is_set_aside_meanwhile_waits_for_it(tmp_path: Path) -> None:
    store, first = Store(tmp_path), task("first")
    place = ("train", store.key("train", first.spec))
    second = Task("measure", {"name": "second"}, "second", 1.0, {}, after=place)
    made: list[str] = []

    def make(one: Task, folder: Path) -> None:
        made.append(one.label)
        if made.count("second") == 1 and one is second:
            store.set_aside(*place, "damaged")
            raise FileNotFoundError("the run is not in the store")
        write(one, folder)

    sweep = Sweep(store, [first, second], "s")
    work(sweep, make, lambda where: None, lambda *_: None)
    assert made == ["first", "second", "first", "second"]
    assert sweep.faults() == {}


def test_what_needs_a_result_that_nobody_makes_fails(tmp_path: Path) -> None:
    sweep = Sweep(Store(tmp_path), [task("second", after=("train", "gone"))], "s")
    work(sweep, write, lambda where: None, lambda *_: None)
    assert sweep.faults() == {"second": "it needs train/gone, which is not there any more"}


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"attempts": 3}', '{"sweep": "s", "attempts": "x"}']
)
def test_a_damaged_record_of_a_failure_is_none(tmp_path: Path, text: str) -> None:
    sweep = Sweep(Store(tmp_path), [task("a")], "s")
    (where,) = sweep.tasks
    sweep.fail(where, "no")
    assert sweep.failed(where) == "no"
    sweep.failure_path(where).write_text(text)
    assert sweep.failed(where) == ""
    sweep.died(where)
    assert json.loads(sweep.failure_path(where).read_text())["attempts"] == 1


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (MemoryError(), "memory ran out: use fewer execute.workers"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"), "memory ran out"),
        (RuntimeError("CUDA out of memory. Tried to allocate"), "memory ran out"),
        (OSError(errno.ENOSPC, "No space left on device", "x"), "the disk is full: make room"),
        (RuntimeError("I/O error: No space left on device (os error 28)"), "the disk is full"),
        (OSError(errno.EFBIG, "File too large"), "raise `ulimit -f`"),
        (UserError("no such thing", remedy="look"), "no such thing"),
        (ValueError("no"), "ValueError: no"),
    ],
)
def test_a_failure_is_told_in_words(fault: Exception, words: str) -> None:
    assert words in in_words(fault)
    assert not in_words(fault).startswith("UserError")
