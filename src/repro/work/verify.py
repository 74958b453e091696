"""Is the store what it says?  Every file against its digest, and a sample of runs made again."""

from __future__ import annotations

import functools
import hashlib
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from repro.errors import UserError
from repro.provenance import surroundings
from repro.store import VERSIONS, Store
from repro.work.compare import Likeness, compare
from repro.work.merge import unsound
from repro.work.plans import Place
from repro.work.queue import Task

SAMPLED = ("train", "measure", "labels")
REPEATABLE = ("ict", "extracted", "wrong")  # kinds of labels that no model or service writes
MACHINE = ("machine", "processor", "packages", "python", "threads")  # and the device


@dataclass(frozen=True)
class Again:
    """A run that was made again, or why it could not be."""

    place: Place
    label: str
    likeness: Likeness | None
    same_machine: bool = False
    why_not: str = ""

    @property
    def right(self) -> bool:
        """The same numbers: to the last bit on the same machine, up to rounding on another."""
        assert self.likeness is not None
        return self.likeness.same if self.same_machine else self.likeness.close


def rehash(store: Store, say: Callable[[str], None]) -> tuple[int, dict[Place, str]]:
    """Read every result and set damaged ones aside; returns how many are sound, and the faults."""
    sound, faults = 0, {}
    for kind in VERSIONS:
        folders = sorted(path for path in (store.root / kind).glob("[!.]*") if path.is_dir())
        for index, folder in enumerate(folders):
            if index and index % 1000 == 0:
                say(f"{kind}: {index:,} of {len(folders):,} read")
            fault = unsound(folder, kind, folder.name)
            if not fault:
                sound += 1
                continue
            try:
                store.set_aside(kind, folder.name, fault)
            except OSError as error:  # a store that may only be read
                say(
                    f"{kind}/{folder.name} is damaged ({fault}); {error.strerror}: it lies there still"
                )
            faults[kind, folder.name] = fault
    return sound, faults


def sample(store: Store, n: int, seed: int, known: Mapping[Place, Task]) -> Iterator[Again]:
    """Make `n` runs again, in a temporary folder, and compare the numbers.

    Which ones, hangs on `seed` alone.  Those whose inputs are not all here are told of, and do not
    count.  known: how to make results that do not say so themselves (made before it was recorded).
    """
    places = [(kind, key) for kind in SAMPLED for key in store.keys(kind)]
    places.sort(key=lambda place: hashlib.sha256(f"{seed} {place}".encode()).hexdigest())
    made = 0
    for place in places:
        if made == n:
            return
        again = _again(store, place, known)
        made += again.likeness is not None
        yield again


class _Inputs(Store):
    """A store that is only read: what it lacks is not made."""

    def get_or_make(
        self,
        kind: str,
        spec: dict[str, Any],
        make: Callable[[Path], None],
        *,
        poll_seconds: float = 0.2,
    ) -> Path:
        found = self.find(kind, self.key(kind, spec))
        if found is None:
            raise FileNotFoundError(f"{kind}/{self.key(kind, spec)} is not in the store")
        return found


def _again(store: Store, place: Place, known: Mapping[Place, Task]) -> Again:
    folder = store.find(*place)
    if folder is None:
        return Again(place, "/".join(place), None, why_not="it was damaged, and is set aside")
    record = json.loads((folder / "provenance.json").read_text(encoding="utf-8"))
    task = known.get(place) or _task(folder, place, record)
    if task is None:
        why = "its record does not say from which files it was made: name its profile"
        return Again(place, "/".join(place), None, why_not=why)
    if store.key(task.kind, task.spec) != place[1]:
        return Again(place, task.label, None, why_not="it is of another result version")
    if task.kind == "labels" and task.inputs["labels"]["kind"]["kind"] not in REPEATABLE:
        return Again(place, task.label, None, why_not="a model wrote these labels: that costs")
    makers, device = _makers(store.root, "cpu" if record.get("device", "cpu") == "cpu" else "auto")
    here = {**surroundings(), "device": device}
    same = all(record.get(name) == here[name] for name in (*MACHINE, "device"))
    with tempfile.TemporaryDirectory() as name:
        try:
            makers.make(task, Path(name), lambda flop, note: None)
        except (FileNotFoundError, UserError, ValueError, KeyError) as error:
            return Again(place, task.label, None, why_not=str(error).splitlines()[0])
        return Again(place, task.label, compare(folder, Path(name)), same)


def _task(folder: Path, place: Place, record: dict[str, Any]) -> Task | None:
    """The task that made a result, by its own record; None where that does not tell."""
    spec = json.loads((folder / "spec.json").read_text(encoding="utf-8"))["spec"]
    inputs = record.get("inputs")
    if not isinstance(inputs, dict):
        return None
    return Task(place[0], spec, str(record.get("label", "/".join(place))), 1.0, inputs)


@functools.lru_cache(maxsize=2)
def _makers(root: Path, device: str) -> tuple[Any, str]:
    """What makes runs from the inputs in the store, and the name of its device."""
    from repro.work.makers import Makers, device_name

    makers = Makers(_Inputs(root), device)
    return makers, device_name(makers.device)
