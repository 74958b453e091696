"""Batches of cluster jobs: as they lie beside the results, and as the queue of Slurm shows them.

    runs/.slurm/<batch>/plan.json        whose sweep it is, and what each job makes; written first
    runs/.slurm/<batch>/<job>.tasks.json the tasks of a job
    runs/.slurm/<batch>/<job>.now.json   what the job does, or did last
    runs/.slurm/<batch>/*_log.out, .err  what it printed

A job has the name of its batch in Slurm, so that whoever comes later finds the jobs again.
"""

from __future__ import annotations

import dataclasses
import json
import os
import socket
import subprocess
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from repro.errors import UserError
from repro.files import read_json, write_json
from repro.store import Store
from repro.work.queue import Task

PREFIX = "repro-"
COMMAND_SECONDS = 60.0
OVER = {
    "BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY",
    "PREEMPTED", "REVOKED", "TIMEOUT",
}  # fmt: skip
Where = tuple[str, str]  # kind and key of a result


@dataclass(frozen=True)
class Batch:
    """Jobs that were submitted together."""

    folder: Path
    sweep: str
    jobs: list[list[Where]]

    @property
    def name(self) -> str:
        """Its name, here and in Slurm."""
        return self.folder.name

    def tasks(self, index: int) -> list[Task]:
        """The tasks of a job."""
        text = (self.folder / f"{index}.tasks.json").read_text(encoding="utf-8")
        return [
            Task(**{**one, "after": tuple(one["after"]) if one["after"] else None})
            for one in json.loads(text)
        ]

    def tell(self, index: int, event: str, where: Where | None, done: float, note: str) -> None:
        """Called in a job: note what it does."""
        now = {"event": event, "where": where, "done": done, "note": note}
        number = os.environ.get("SLURM_ARRAY_JOB_ID") or os.environ.get("SLURM_JOB_ID", "")
        about = {"host": socket.gethostname(), "job": number}
        write_json(self.folder / f"{index}.now.json", {**now, **about})

    def told(self, index: int) -> dict[str, Any]:
        """What the job noted last; an empty event where it noted nothing yet."""
        try:
            now = read_json(self.folder / f"{index}.now.json")
            where = tuple(now["where"]) if now["where"] else None
            return {**now, "where": where, "event": now["event"]}
        except (OSError, ValueError, KeyError, TypeError):
            return {"event": "", "where": None, "done": 0.0, "note": "", "host": "", "job": ""}

    def logs(self, index: int) -> list[Path]:
        """What the job printed, and its errors; the latest last."""
        name = f"*_{index}_0_log.*" if len(self.jobs) > 1 else "*_0_log.*"
        return sorted(self.folder.glob(name), key=_changed)


def folder(store: Store) -> Path:
    """Where the batches of a store lie."""
    return store.root / ".slurm"


def plan(store: Store, sweep: str, jobs: list[list[tuple[Where, Task]]]) -> Batch:
    """Write down a new batch: for each job its tasks, and where their results will lie."""
    made = folder(store) / f"{PREFIX}{uuid.uuid4().hex[:10]}"
    if "%" in str(made):
        raise UserError(
            "Slurm gives `%` in a path of its own a meaning",
            where=str(store.root),
            remedy="set REPRO_HOME to a folder without it",
        )
    made.mkdir(parents=True)
    for index, tasks in enumerate(jobs):
        plain = [dataclasses.asdict(task) for _, task in tasks]
        write_json(made / f"{index}.tasks.json", plain)
    batch = Batch(made, sweep, [[where for where, _ in tasks] for tasks in jobs])
    write_json(made / "plan.json", {"sweep": sweep, "jobs": batch.jobs})
    return batch


def find(store: Store, name: str) -> Batch | None:
    """The batch of that name; None where it is not of this store."""
    try:
        known = read_json(folder(store) / name / "plan.json")
        jobs = [[(str(kind), str(key)) for kind, key in job] for job in known["jobs"]]
        return Batch(folder(store) / name, str(known["sweep"]), jobs)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def find_all(store: Store) -> list[Batch]:
    """All batches of a store, by name."""
    names = sorted(path.name for path in folder(store).glob(f"{PREFIX}*"))
    return [batch for name in names if (batch := find(store, name))]


def logs(batches: list[Batch], wanted: set[Where]) -> dict[Where, list[Path]]:
    """What the jobs that made a result, or tried to, have printed: result -> files, the latest last."""
    found: dict[Where, list[Path]] = {}
    for batch in batches:
        for index, job in enumerate(batch.jobs):
            for where in wanted.intersection(job):
                found.setdefault(where, []).extend(batch.logs(index))
    return {where: sorted(paths, key=_changed) for where, paths in found.items()}


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


@dataclass(frozen=True)
class Seen:
    """A job as Slurm shows it: batch, place in it, number, state and why it waits."""

    name: str
    index: int
    number: str
    state: str
    reason: str

    @property
    def active(self) -> bool:
        """Whether it waits, runs, or will run again."""
        return self.state not in OVER


def look() -> list[Seen] | str:
    """All jobs of this user that the queue shows, the recently ended too; its words where it is silent."""
    command = ["squeue", "--me", "--array", "--noheader", "--states=all"]
    command += ["--format=%K|%i|%T|%r|%j"]
    env = {name: value for name, value in os.environ.items() if not name.startswith("SQUEUE_")}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=COMMAND_SECONDS, env=env
        )
    except subprocess.TimeoutExpired:
        return f"no answer in {COMMAND_SECONDS:.0f} s"
    if done.returncode != 0:
        return done.stderr.strip() or f"squeue ends with {done.returncode}"
    return [seen for line in done.stdout.splitlines() if (seen := _seen(line))]


def _seen(line: str) -> Seen | None:
    parts = line.strip().split("|", 4)
    if len(parts) != 5 or not parts[4].startswith(PREFIX):
        return None
    index, number, state, reason, name = parts
    return Seen(name, int(index) if index.isdigit() else 0, number, state, reason)
