"""What may go from a store, and what never does."""

from __future__ import annotations

import json
import os
import shutil
import socket
import time
from pathlib import Path

import pytest

from repro import lease
from repro import store as stores
from repro.store import Store, check
from repro.work import batches, garbage
from repro.work.queue import Task
from stored import add, lease_of

DAYS = 7.0


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "runs")


def sorts(store: Store, keep: set | None = None, *, only_kept: bool = False) -> dict[str, int]:
    found: dict[str, int] = {}
    for item in garbage.find(store, keep or set(), only_kept=only_kept, older_days=DAYS):
        found[item.sort] = found.get(item.sort, 0) + 1
    return found


def aged(path: Path, days: float) -> Path:
    """Set back the times of a folder and all in it."""
    for each in [*path.rglob("*"), path]:
        os.utime(each, (time.time() - 86_400 * days,) * 2)
    return path


def work_of(store: Store, key: str, days: float = 0.0) -> Path:
    folder = store.root / "train" / ".work" / f"{key}.0a1b2c3d"
    folder.mkdir(parents=True)
    (folder / "last.safetensors").write_text("x" * 1000)
    return aged(folder, days)


def test_a_result_of_this_version_stays_whoever_asks_for_it(store: Store) -> None:
    add(store, "train", {"a": 1})
    assert sorts(store) == {}
    assert garbage.as_text([]) == "  nothing"


def test_an_old_result_version_may_go_unless_it_is_asked_for(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = add(store, "train", {"a": 1})
    monkeypatch.setitem(stores.VERSIONS, "train", stores.VERSIONS["train"] + 1)
    new = add(store, "train", {"a": 1})
    assert sorts(store) == {"old version": 1}
    assert sorts(store, {("train", key)}) == {}
    items = garbage.find(store, set(), only_kept=False, older_days=DAYS)
    assert items[0].bytes == sum(path.stat().st_size for path in items[0].path.iterdir())
    assert garbage.remove(store, items) == []
    assert store.keys("train") == [new]
    assert not list((store.root / "train" / ".trash").iterdir())
    assert not list((store.root / "train" / ".lease").iterdir())


def test_of_whole_studies_what_they_do_not_ask_for_may_go(store: Store) -> None:
    mine, other = add(store, "train", {"a": 1}), add(store, "train", {"a": 2})
    assert sorts(store, {("train", mine)}) == {}
    assert sorts(store, {("train", mine)}, only_kept=True) == {"not asked for": 1}
    garbage.remove(store, garbage.find(store, {("train", mine)}, only_kept=True, older_days=DAYS))
    assert (store.has("train", mine), store.has("train", other)) == (True, False)


def test_finished_results_stay_while_a_sweep_is_at_work(store: Store) -> None:
    add(store, "train", {"a": 1})
    items = garbage.find(store, set(), only_kept=True, older_days=DAYS)
    lease_of(store, "measure", "0" * 20)  # somebody alive, who may be reading it
    assert garbage.remove(store, items) == items
    assert len(store.keys("train")) == 1


@pytest.mark.parametrize("days", [1.0, 8.0])
@pytest.mark.parametrize("holder", ["none", "dead", "alive"])
def test_unfinished_work_waits_its_time_and_for_its_holder(
    store: Store, days: float, holder: str
) -> None:
    key = store.key("train", {"a": 1})
    folder = work_of(store, key, days)
    pid = {"dead": 2**22 + 1, "alive": os.getpid()}.get(holder)
    if pid:
        me = {"host": socket.gethostname(), "boot": lease._boot(), "pid": pid}
        lease_of(store, "train", key, **me, started=lease._started(os.getpid()))
    goes = days > DAYS and holder != "alive"
    assert sorts(store).get("unfinished", 0) == goes
    garbage.remove(store, garbage.find(store, set(), only_kept=True, older_days=DAYS))
    assert folder.exists() != goes
    assert lease.alive(store.root / "train" / ".lease" / key) == (holder == "alive")


def test_work_on_a_result_that_is_there_need_not_wait(store: Store) -> None:
    work_of(store, add(store, "train", {"a": 1}))
    assert sorts(store) == {"unfinished": 1}


def test_a_holder_that_came_back_meanwhile_keeps_its_work(store: Store) -> None:
    key = store.key("train", {"a": 1})
    folder = work_of(store, key, 8.0)
    items = garbage.find(store, set(), only_kept=False, older_days=DAYS)
    with store.claim("train", key):
        assert garbage.remove(store, items) == items
    assert (folder / "last.safetensors").exists()


def test_what_faults_left_may_go(store: Store) -> None:
    key = add(store, "train", {"a": 1})
    store.set_aside("train", key, "damaged")
    failed = store.root / "train" / ".failed"
    failed.mkdir()
    for name, days in (("new", 1), ("old", 8)):
        aged((failed / f"{name}.json"), 0) if (failed / f"{name}.json").write_text("{}") else None
        os.utime(failed / f"{name}.json", (time.time() - 86_400 * days,) * 2)
    (store.root / "train" / ".incoming" / "half").mkdir(parents=True)
    aged(store.root / "train" / ".incoming" / "half", 2)
    assert sorts(store) == {"set aside": 1, "failure": 1, "remains": 1}
    items = garbage.find(store, set(), only_kept=False, older_days=DAYS)
    assert garbage.remove(store, items) == []
    assert sorts(store) == {}
    assert [path.name for path in failed.iterdir()] == ["new.json"]


def test_a_silent_lease_of_another_host_is_watched_before_it_goes(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = lease_of(store, "train", "0" * 20, stamp=1.0)
    assert sorts(store) == {}, "one look proves nothing"
    slept: list[float] = []
    steady = time.monotonic()
    monkeypatch.setattr(garbage.time, "sleep", slept.append)
    garbage.settle(store)
    assert slept == [lease.WATCH_SECONDS + 1]
    monkeypatch.setattr(lease.time, "monotonic", lambda: steady + lease.WATCH_SECONDS + 60)
    assert sorts(store) == {"remains": 1}
    garbage.remove(store, garbage.find(store, set(), only_kept=False, older_days=DAYS))
    assert not path.exists()


def test_a_result_that_does_not_tell_its_version_is_left_to_verify(store: Store) -> None:
    key = add(store, "train", {"a": 1})
    (store.path("train", key) / "spec.json").write_text(json.dumps({"version": "x"}))
    assert check(store.path("train", key))
    assert sorts(store, only_kept=True) == {}


def test_what_lies_beside_the_results_may_go_when_it_is_old(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Converted models; batches whose results are all there, or that the queue shows no more."""
    spec = {"a": 1}
    place = ("train", store.key("train", spec))
    made = {
        name: batches.plan(store, "s", [[(where, Task("train", {}, name, 1.0))]])
        for name, where in (("done", place), ("open", ("train", "x")), ("over", ("train", "y")))
    }
    add(store, "train", spec)
    (store.root / "converted" / "0123").mkdir(parents=True)
    (store.root / "converted" / "0123" / "model.safetensors").write_text("x")
    assert sorts(store) == {}
    for folder in (*store.root.glob("converted/*"), *store.root.glob(".slurm/*")):
        aged(folder, 8)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert sorts(store) == {"converted": 1, "batch": 1}  # without a queue: only what is done
    monkeypatch.setattr(shutil, "which", lambda name: name)
    active = batches.Seen(made["open"].name, 0, "7_0", "PENDING", "Priority")
    monkeypatch.setattr(batches, "look", lambda: [active])
    items = garbage.find(store, set(), only_kept=False, older_days=DAYS)
    assert {item.path.name for item in items} == {"0123", made["done"].name, made["over"].name}
    with store.claim(*place):  # a sweep may be reading a converted model
        assert [item.sort for item in garbage.remove(store, items)] == ["converted"]
    assert garbage.remove(store, items[:1]) == []
    assert not list(store.root.glob("converted/[!.]*"))
    assert [path.name for path in store.root.glob(".slurm/[!.]*")] == [made["open"].name]
