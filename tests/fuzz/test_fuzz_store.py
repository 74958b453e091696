"""Files of the run store, damaged: they are known to be damaged, or say the same as before."""

from __future__ import annotations

import json
from pathlib import Path
from tokenize import TokenError

import numpy as np
import pytest

from fuzz.damage import DEEP, damaged
from fuzz.harness import Fuzz
from fuzz.right import sampled
from repro import lease
from repro.data import arrays, column
from repro.data.column import Column
from repro.store import Store, check
from repro.work import batches, explain, merge, plans, status
from repro.work.plans import Asked, Plan
from repro.work.queue import Sweep, Task

SPEC = {"set": "0123456789abcdef0123", "seed": 3, "lr": 1e-3}
PLAN = "study-apidocs"


def made(root: Path) -> tuple[Store, str, Path]:
    """A store with one result, its plan, a record of failure, a lease and a batch."""
    store = Store(root)

    def make(work: Path) -> None:
        (work / "values.json").write_text('{"mrr": 0.5, "digest": "ab"}', encoding="utf-8")
        arrays.save(work / "more", {"ids": np.arange(5, dtype=np.int32)})

    folder = store.make("measure", SPEC, make, {"label": "a run", "device": "cpu"})
    key = folder.name
    place = ("train", "f" * 20)
    asked = {
        ("measure", key): Asked("ranking", 1.5, ("grid",), after=place),
        place: Asked("2x64", 0.0, ("grid",)),
    }
    plans.write(store, Plan(PLAN, (root / "x.yaml",), True, "d", 2, asked, (), (3.0,)))
    task = Task("train", {"a": 1}, "2x64", 1e9)
    sweep = Sweep(store, [task], "sweep")
    sweep.fail(next(iter(sweep.tasks)), "ValueError: no\nmore")
    batches.plan(store, "sweep", [[(place, task)]])
    holder = {
        "token": "t",
        "host": "elsewhere",
        "boot": "b",
        "pid": 7,
        "started": "1",
        "since": 1.5,
    }
    (root / "train" / ".lease").mkdir(parents=True, exist_ok=True)
    (root / "train" / ".lease" / place[1]).write_text(json.dumps(holder), encoding="utf-8")
    return store, key, folder


def bases(data: bytes) -> list[bytes]:
    """What is damaged: the file, and once one that nests deeply."""
    return [data] * 7 + [b'{"a":' * DEEP]


@pytest.mark.parametrize("name", ["manifest.json", "values.json", "more/ids.npy"])
def test_results(name: str, fuzz: Fuzz) -> None:
    _, key, folder = made(fuzz.folder / "runs")
    whole = (folder / name).read_bytes()

    def check_it(data: bytes) -> bool:
        (folder / name).write_bytes(data)
        fault = check(folder)
        assert "\n" not in fault[:200] or name == "manifest.json"
        if name != "manifest.json":
            assert bool(fault) == (data != whole)
        elif not fault and sampled(data):
            assert json.loads(data)["files"].keys() <= {"manifest.json", *_files(folder)}
            assert isinstance(merge.unsound(folder, "measure", key), str)
        return not fault

    fuzz(damaged(bases(whole)), check_it, share=0.2)


def _files(folder: Path) -> list[str]:
    return [path.relative_to(folder).as_posix() for path in folder.rglob("*")]


@pytest.mark.parametrize(
    "pattern",
    ["train/.lease/*", "train/.failed/*.json", ".plans/*.json", ".slurm/*/plan.json",
     ".slurm/*/0.tasks.json", "measure/*/spec.json", "measure/*/provenance.json"],
)  # fmt: skip
def test_records(pattern: str, fuzz: Fuzz) -> None:
    """Status and explanation can be told, whatever a record has become."""
    store, key, _ = made(fuzz.folder / "runs")
    (path,) = store.root.glob(pattern)
    whole = path.read_bytes()
    before = _told(store, key)

    def check_it(data: bytes) -> bool:
        path.write_bytes(data)
        told = _told(store, key)
        assert data != whole or told == before
        try:
            return isinstance(json.loads(data), dict | list)
        except (ValueError, RecursionError):
            return False

    fuzz(damaged(bases(whole)), check_it, share=0.05)


def _told(store: Store, key: str) -> dict[str, str]:
    found = plans.load_all(store)
    stands = status.status(store, found)
    assert json.dumps(stands, allow_nan=False)
    why = explain.explain(store, ("measure", key), found)
    batch = next(iter((store.root / ".slurm").iterdir())).name
    known = batches.find(store, batch)
    for each in known.jobs if known else ():
        assert all(isinstance(part, str) for where in each for part in where)
    logs = batches.logs([known] if known else [], {("train", "f" * 20)})
    lines = [line for line in status.as_text(stands).splitlines() if "heard of" not in line]
    texts = {"status": "\n".join(lines), "why": explain.as_text(why), "logs": str(logs)}
    for text in texts.values():
        text.encode()
    return texts


def test_leases(fuzz: Fuzz) -> None:
    path = fuzz.folder / "lease"
    holder = {"token": "t", "host": "h", "boot": "b", "pid": 7, "started": "1", "since": 1.5}
    whole = json.dumps(
        {**holder, **{k: v for k, v in lease._me("t").items() if k in ("host", "boot")}}
    )

    def check_it(data: bytes) -> bool:
        path.write_bytes(data)
        found = lease.look(path, lease.clock(fuzz.folder))
        assert lease.alive(path) in (True, False)
        return found is not None and found.pid == 7

    fuzz(damaged(bases(whole.encode())), check_it, share=0.1)


@pytest.mark.filterwarnings("ignore:Reading `.npy`")
def test_columns(fuzz: Fuzz) -> None:
    """Texts on disk whose digest was not checked: read as they were, or an error of reading."""
    texts = ["one", "", "caf\u00e9 \U0001f600", "four"]
    column.save(fuzz.folder, "texts", texts)
    name = fuzz.folder / "texts_offsets.npy"
    whole = name.read_bytes()

    def check_it(data: bytes) -> bool:
        name.write_bytes(data)
        try:
            found = list(Column.load(fuzz.folder, "texts"))
        except (OSError, ValueError, EOFError, TypeError, OverflowError, TokenError):
            return False
        return found == texts

    fuzz(damaged([whole]), check_it, share=0.05)
