"""Small stores without models or data, for what looks at a store from outside."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from repro.store import Store
from repro.work.plans import Asked, Place, Plan

ELSEWHERE = {"token": "t", "host": "far.example", "boot": "b", "pid": 7, "started": "1"}


def add(
    store: Store, kind: str, spec: dict[str, Any], loss: float = 1.5, seconds: float = 2.0
) -> str:
    """A finished result that holds a few numbers; returns its key."""

    def make(folder: Path) -> None:
        np.save(folder / "validation.npy", np.array([loss, 2.5]))
        (folder / "summary.json").write_text(json.dumps({"mael": loss, "seconds": seconds}))

    return store.get_or_make(kind, spec, make).name


def lease_of(store: Store, kind: str, key: str, stamp: float | None = None, **about: Any) -> Path:
    """A lease on a result, as a holder on another host would leave it."""
    path = store.root / kind / ".lease" / key
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**ELSEWHERE, **about}))
    if stamp is not None:
        os.utime(path, (stamp, stamp))
    return path


def plan_of(study: str, asked: dict[Place, Asked], **about: Any) -> Plan:
    """A plan by hand."""
    given: dict[str, Any] = {
        "files": (Path("p.yaml"), Path("d.yaml")), "own": True, "made_from": "x", "workers": 2,
        "reads": (), **about,
    }  # fmt: skip
    return Plan(study=study, asked=asked, **given)
