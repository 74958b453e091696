"""What each study asks of the store: its plan, kept beside the results as runs/.plans/<study>.json.

Every stage of a sweep that has something to make writes it, so that who asks for what, and what is still
to do, can be told in a second, without loading a model or the data.
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from repro.files import digest, read_json, write_json
from repro.store import VERSIONS, Store

Place = tuple[str, str]  # kind and key of a result


@dataclass(frozen=True)
class Asked:
    """A result that a study asks for."""

    label: str
    seconds: float  # on one worker, estimated; 0: not known
    experiments: tuple[str, ...]
    after: Place | None = None  # what must be there first


@dataclass(frozen=True)
class Plan:
    """All that a study is known to ask for."""

    study: str
    files: tuple[Path, ...]  # profile, dataset, and overlays
    own: bool  # the dataset is the one that the profile names
    made_from: str  # see `made_from`
    workers: int
    asked: Mapping[Place, Asked]
    reads: tuple[Place, ...]  # collections, splits and tokens that the runs stand on
    later_seconds: tuple[float, ...] = ()  # of runs that are known only when others are there


def made_from(files: Iterable[Path]) -> str:
    """Digest of the files that a plan was read from, and of the result versions."""
    texts = [hashlib.sha256(path.read_bytes()).hexdigest() for path in files]
    return digest({"files": texts, "versions": VERSIONS})


def write(store: Store, plan: Plan) -> None:
    """Keep the plan; it replaces the study's plan before."""
    asked = {
        "/".join(place): {
            "label": each.label,
            "seconds": round(each.seconds, 3),
            "experiments": each.experiments,
            **({"after": "/".join(each.after)} if each.after else {}),
        }
        for place, each in plan.asked.items()
    }
    record = {
        "study": plan.study,
        "files": [str(path) for path in plan.files],
        "own": plan.own,
        "made_from": plan.made_from,
        "workers": plan.workers,
        "asked": asked,
        "reads": ["/".join(place) for place in plan.reads],
        "later_seconds": [round(seconds, 3) for seconds in plan.later_seconds],
    }
    path = _file(store, plan.study)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, record)


def load(store: Store, study: str) -> Plan | None:
    """The plan of a study; None where none is kept, or it cannot be read."""
    try:
        record = read_json(_file(store, study))
        return _plan(record) if record["study"] == study else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError):
        return None


def load_all(store: Store) -> list[Plan]:
    """The plans of all studies that have one, by name."""
    names = sorted(path.stem for path in (store.root / ".plans").glob("[!.]*.json"))
    return [plan for name in names if (plan := load(store, name))]


def makespan(seconds: Iterable[float], workers: int) -> float:
    """Seconds until so many workers have done all tasks, each taking the longest that is left."""
    busy = [0.0] * workers
    for task in sorted(seconds, reverse=True):
        heapq.heapreplace(busy, busy[0] + task)
    return max(busy)


def _plan(record: dict[str, Any]) -> Plan:
    asked = {
        _place(place): Asked(
            str(each["label"]),
            float(each["seconds"]),
            tuple(each["experiments"]),
            _place(each["after"]) if "after" in each else None,
        )
        for place, each in record["asked"].items()
    }
    return Plan(
        record["study"],
        tuple(Path(path) for path in record["files"]),
        bool(record["own"]),
        record["made_from"],
        int(record["workers"]),
        asked,
        tuple(_place(text) for text in record["reads"]),
        tuple(float(each) for each in record["later_seconds"]),
    )


def _place(text: str) -> Place:
    kind, key = text.split("/")
    if kind not in VERSIONS:
        raise ValueError(f"there is no kind `{kind}`")
    return kind, key


def _file(store: Store, study: str) -> Path:
    return store.root / ".plans" / f"{study}.json"
