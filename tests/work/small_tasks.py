"""Small tasks without a model, and needs of a cluster, for the tests of this room."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from repro.store import Store
from repro.work.batches import Where
from repro.work.cluster import SlurmParams
from repro.work.queue import Task


def asked(**more: Any) -> SlurmParams:
    return SlurmParams.model_validate({"backend": "slurm", **more})


def task(name: str, kind: str = "train", after: Where | None = None, **more: Any) -> Task:
    return Task(kind, {"name": name}, name, 1.0, {}, after, **more)


def place(store: Store, one: Task) -> Where:
    return one.kind, store.key(one.kind, one.spec)


def write(one: Task, folder: Path) -> None:
    (folder / "made.txt").write_text(one.label)
