"""The status of a store: told from names, leases, records and plans, in two seconds for 10,000 runs."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from repro import lease
from repro.files import write_json
from repro.store import Store
from repro.work import batches, plans
from repro.work.plans import Asked, makespan
from repro.work.queue import Task
from repro.work.status import as_text, status
from stored import add, lease_of, plan_of


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "runs")


def asked(store: Store, names: str) -> dict[tuple[str, str], Asked]:
    """A plan's tasks by one letter each, of 10 s; a capital stands for the ranking of a run."""
    found = {}
    for name in names:
        kind = "measure" if name.isupper() else "train"
        after = ("train", store.key("train", {"name": name.lower()})) if name.isupper() else None
        place = (kind, store.key(kind, {"name": name}))
        found[place] = Asked(f"run {name}", 10.0, ("grid",), after)
    return found


def test_a_plan_is_read_as_it_was_written(store: Store) -> None:
    plan = plan_of(
        "mini-apidocs", asked(store, "abA"), reads=(("splits", "s"),), later_seconds=(3.0,)
    )
    plans.write(store, plan)
    assert plans.load(store, "mini-apidocs") == plan
    assert plans.load_all(store) == [plan]
    assert plans.load(store, "other") is None


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"study": "s"}', '{"study": "s", "asked": 3}', "\0"]
)
def test_a_damaged_plan_is_none(store: Store, text: str) -> None:
    (store.root / ".plans").mkdir(parents=True)
    (store.root / ".plans" / "s.json").write_text(text)
    assert plans.load(store, "s") is None
    assert plans.load_all(store) == []
    assert status(store, [])["studies"] == []


def test_each_state_is_told(store: Store) -> None:
    """One task done, one running here, one failed with what needs it, one interrupted, one waiting."""
    tasks = asked(store, "abcCde")
    keys = {each.label[-1]: place for place, each in tasks.items()}
    add(store, "train", {"name": "a"})
    started = int(time.time()) - 4
    me = {"host": socket.gethostname(), "boot": lease._boot(), "pid": os.getpid()}
    lease_of(store, *keys["b"], **me, started=lease._started(os.getpid()), since=started)
    for name, record in (
        ("c", {"error": "ValueError: no\nTraceback ..."}),
        ("a", {"error": "old"}),
    ):
        path = store.root / "train" / ".failed" / f"{keys[name][1]}.json"
        path.parent.mkdir(exist_ok=True)
        write_json(path, {"sweep": "s", "label": f"run {name}", **record})
    (store.root / "train" / ".work" / f"{keys['d'][1]}.0a1b2c3d").mkdir(parents=True)
    found = status(store, [plan_of("s", tasks, later_seconds=(7.0, 5.0))])
    assert found["done"] == {"train": 1}
    (running,) = found["running"]
    assert (running["label"], running["pid"], running["alive"]) == ("run b", os.getpid(), True)
    assert running["since"] == time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started))
    (failed,) = found["failed"]
    assert (failed["label"], failed["reason"]) == ("run c", "ValueError: no")
    assert Path(failed["record"]).is_file()
    assert [each["label"] for each in found["interrupted"]] == ["run d"]
    (study,) = found["studies"]
    counts = {
        name: study[name] for name in ("asked", "done", "running", "waiting", "failed", "later")
    }
    assert counts == {"asked": 6, "done": 1, "running": 1, "waiting": 2, "failed": 2, "later": 2}
    assert study["seconds_left"] == pytest.approx(
        16.0 + 7.0, abs=3
    )  # d, e and what is left of b; later
    text = as_text(found)
    for part in (
        f"run b: {socket.gethostname()}, process {os.getpid()}",
        "run c: ValueError: no",
        "run d: the next sweep",
        "s: 1 of 6 done, 1 running, 2 waiting, 2 failed, 2 more to become known; about",
    ):
        assert part in text
    json.dumps(found, allow_nan=False)


def test_the_silent_and_the_dead_are_told_apart(store: Store) -> None:
    tasks = asked(store, "abc")
    near, far, dead = tasks
    lease_of(store, *near)
    lease_of(store, *far, stamp=time.time() - 3600)
    me = {"host": socket.gethostname(), "boot": lease._boot(), "pid": 2**22 + 1}
    lease_of(store, *dead, **me)
    found = status(store, [plan_of("s", tasks)])
    alive = {each["label"]: each["alive"] for each in found["running"]}
    assert alive == {"run a": True, "run b": False}
    assert found["studies"][0]["running"] == 1
    text = as_text(found)
    assert "silent       run b: far.example, process 7, heard of 60 min ago" in text
    assert "since" not in text


def test_a_worker_that_died_once_is_no_failure_but_twice_is(store: Store) -> None:
    for attempts in (1, 2):
        write = store.root / "train" / ".failed" / f"{attempts}.json"
        write.parent.mkdir(parents=True, exist_ok=True)
        write_json(write, {"sweep": "s", "label": f"died {attempts}", "attempts": attempts})
    (store.root / "train" / ".failed" / "broken.json").write_text("{")
    reasons = {each["label"]: each["reason"] for each in status(store, [])["failed"]}
    assert reasons == {"died 2": "the worker died 2 times", "broken": "its record cannot be read"}


def test_an_empty_store_has_a_status(store: Store) -> None:
    assert "nothing yet" in as_text(status(store, []))
    assert makespan([], 3) == 0


@pytest.mark.slow
def test_ten_thousand_runs_take_two_seconds(tmp_path: Path) -> None:
    """The whole command, start of Python included, in seconds of the processor."""
    store = Store(tmp_path / "runs")
    tasks = {}
    for index in range(12_000):
        place = ("train", store.key("train", {"index": index}))
        tasks[place] = Asked(f"run {index}", 10.0, ("grid",))
        if index < 10_000:
            folder = store.path(*place)
            folder.mkdir(parents=True)
            for name in ("manifest.json", "spec.json", "provenance.json", "summary.json"):
                (folder / name).write_text("{}")
    for place in list(tasks)[10_000:10_016]:
        lease_of(store, *place)
    plans.write(store, plan_of("many", tasks))
    code = "import resource, sys; from repro.app.cli import main; main(['store', 'status'])\n"
    code += "used = resource.getrusage(resource.RUSAGE_SELF); print(used.ru_utime + used.ru_stime)"
    env = {**os.environ, "REPRO_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    lines = done.stdout.splitlines()
    assert lines[1] == "  done         10,000 train"
    assert "many: 10000 of 12000 done, 16 running, 1984 waiting, 0 failed" in lines[-2]
    assert float(lines[-1]) < 2.0


def test_where_jobs_print_is_told_and_what_lies_beside_the_results(store: Store) -> None:
    place = ("train", store.key("train", {"name": "a"}))
    jobs = [[(place, Task("train", {"name": "a"}, "run a", 1.0))]]
    batch = batches.plan(store, "s", jobs)
    log = batch.folder / "7_0_log.err"
    log.write_text("")
    write_json(
        _made(store.root / "train" / ".failed") / f"{place[1]}.json", {"error": "E", "sweep": "s"}
    )
    _made(store.root / "converted" / "0123")
    found = status(store, [])
    assert found["failed"][0]["logs"] == [str(log)]
    assert f"log {log}" in as_text(found)
    assert "1 batches of cluster jobs, 1 models converted to safetensors" in as_text(found)
    (store.root / "train" / ".failed" / f"{place[1]}.json").unlink()
    lease_of(store, *place, time.time())
    assert f"log {log}" in as_text(status(store, []))


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder
