"""The queue: a list of tasks, and a store that says which are done, taken or failed.

There is no server.  Every worker walks the same list and takes the first task that is ready and
that nobody holds; the lease in the store decides between two who try at once.
"""

from __future__ import annotations

import functools
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from repro.errors import UserError, hidden, of_machine
from repro.files import read_json, write_json
from repro.store import Spoilt, Store, Superseded

IDLE_SECONDS = 0.3
MAX_ATTEMPTS = 2  # in one sweep, when a worker dies while it holds the task


@dataclass(frozen=True)
class Task:
    """One result to be made.

    `spec` determines the result and so its key; `inputs` say where to find what the digests in
    `spec` name (they are not part of the key); `flop` (as its maker reports them: for
    the share that is done) and `seconds` (on one worker; 0: not known) are estimates.  `parameters`:
    of the model that it trains or measures with (0: none, or not known).
    """

    kind: str
    spec: dict[str, Any]
    label: str
    flop: float
    inputs: dict[str, Any] = field(default_factory=dict)
    after: tuple[str, str] | None = None  # (kind, key) of a result that must be there first
    seconds: float = 0.0
    parameters: int = 0

    @property
    def cost(self) -> float:
        """What it weighs beside others: seconds, or FLOPs where these are not known."""
        return self.seconds or self.flop


class Sweep:
    """The tasks of one call, and the failures met in it."""

    def __init__(self, store: Store, tasks: list[Task], name: str) -> None:
        self.store, self.name = store, name
        unique = {(task.kind, store.key(task.kind, task.spec)): task for task in tasks}
        self.tasks = dict(sorted(unique.items(), key=lambda item: -item[1].cost))

    def waiting(self) -> list[tuple[str, str]]:
        """Kind and key of the tasks that are neither done nor failed, longest first.

        A result whose files do not match their digests is not done (each is checked once).
        """
        return [
            where for where in self.tasks if not self.store.find(*where) and not self.failed(where)
        ]

    def failed(self, where: tuple[str, str]) -> str:
        """Why the task failed for good in this sweep, or an empty text."""
        after = self.tasks[where].after
        record = self._record(where)
        if record.get("error") or record.get("attempts", 0) >= MAX_ATTEMPTS:
            last = f" (the last time: {record['died']})" if record.get("died") else ""
            return str(
                record.get("error") or f"the worker died {record['attempts']} times{last}"
            ).splitlines()[0]
        if after and after in self.tasks and self.failed(after):
            return f"it needs {after[0]}/{after[1]}, which failed"
        return ""

    def faults(self) -> dict[str, str]:
        """Label -> reason of the tasks that failed for good."""
        reasons = {task.label: self.failed(where) for where, task in self.tasks.items()}
        return {label: reason for label, reason in reasons.items() if reason}

    def fail(self, where: tuple[str, str], error: str) -> None:
        """Set the task aside for this sweep; the text is kept beside the results."""
        self._write(where, {**self._record(where), "error": hidden(error)})

    def died(self, where: tuple[str, str], how: str = "") -> None:
        """Count a worker that died while it held the task; how: in words, where that is known."""
        record = self._record(where)
        self._write(where, {**record, "attempts": record.get("attempts", 0) + 1, "died": how})

    def inherit(self, where: tuple[str, str], name: str) -> None:
        """Take over the error that the sweep of that name recorded, if it recorded one."""
        record = Sweep(self.store, [self.tasks[where]], name)._record(where)
        if record.get("error"):
            self.fail(where, record["error"])

    def failure_path(self, where: tuple[str, str]) -> Path:
        """The file that records the failures of a task."""
        return self.store.root / where[0] / ".failed" / f"{where[1]}.json"

    def _record(self, where: tuple[str, str]) -> dict[str, Any]:
        try:
            record = read_json(self.failure_path(where))
            mine = record["sweep"] == self.name and isinstance(record.get("attempts", 0), int)
            mine = mine and isinstance(record.get("error", ""), str)
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            mine = False
        return record if mine else {"sweep": self.name}

    def _write(self, where: tuple[str, str], record: dict[str, Any]) -> None:
        path = self.failure_path(where)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, {**record, "label": self.tasks[where].label})


def work(
    sweep: Sweep,
    make: Callable[[Task, Path], None],
    started: Callable[[tuple[str, str]], None],
    ended: Callable[[tuple[str, str], str], None],
    device: str = "cpu",
    forget: Callable[[], None] = lambda: None,
) -> None:
    """Make what is ready until nothing is left; `ended` gets "" or the reason of a failure.

    device: what `make` computes on, for the provenance of the results.  forget: called where data that
    `make` has loaded are no longer what they were.
    """
    for where in _ready(sweep):
        with sweep.store.claim(*where) as mine:
            if not mine or sweep.store.has(*where):
                continue
            task = sweep.tasks[where]
            started(where)
            error = ""
            try:
                if sweep.store.key(task.kind, task.spec) != where[1]:
                    raise RuntimeError("the code was changed while the sweep ran; start it again")
                about = {"label": task.label, "device": device, "inputs": task.inputs}
                sweep.store.make(task.kind, task.spec, functools.partial(make, task), about)
            except Superseded:
                pass  # it is another's now, and is waited for like any other
            except Spoilt as fault:
                sweep.died(where, str(fault))
                forget()
            except Exception as fault:
                if task.after in sweep.tasks and not sweep.store.has(*task.after):
                    pass  # set aside meanwhile, and made again first
                else:
                    error = in_words(fault)
                    sweep.fail(where, f"{error}\n{traceback.format_exc()}")
            else:
                sweep.failure_path(where).unlink(missing_ok=True)
            ended(where, error)


def in_words(fault: Exception) -> str:
    """A failure in one line: memory and disk by what to do, others by their own words."""
    named = "" if isinstance(fault, UserError) else f"{type(fault).__name__}: "
    text = f"{named}{fault}".rstrip(": ")
    found = of_machine(fault)
    return f"{found[0]}: {found[1]} ({text})" if found else text


def _ready(sweep: Sweep) -> Iterator[tuple[str, str]]:
    """Tasks to try, one at a time, from the longest; waits where all are held by others."""
    while waiting := sweep.waiting():
        tried = False
        for where in waiting:
            after = sweep.tasks[where].after
            if after and after not in sweep.tasks and not sweep.store.has(*after):
                sweep.fail(where, f"it needs {'/'.join(after)}, which is not there any more")
            if (after and not sweep.store.has(*after)) or sweep.store.held(*where):
                continue
            tried = True
            yield where
            break  # the list may have changed: start from the longest again
        if not tried:
            time.sleep(IDLE_SECONDS)
