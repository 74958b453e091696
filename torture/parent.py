"""One parent of a sweep: `python -m torture.parent PROFILE`.  Its workers import this module as well.

The environment variable TORTURE (JSON) says what is injected into all of them:
    clock      seconds that `time.time` is ahead
    memory_mb  more than the imports took is refused (as `ulimit -v` does)
    file_kb    a longer file is refused (as `ulimit -f` does)
    made       a file that gets a line for each result that is published
    hasty      leases are renewed and given up sooner, so that a dead host costs seconds
"""

from __future__ import annotations

import functools
import importlib
import json
import os
import re
import resource
import sys
import time
from pathlib import Path
from typing import Any

from torture.sweep import NAN

INJECTED: dict[str, Any] = json.loads(os.environ.get("TORTURE", "{}"))


def sweep(profile: Path) -> int:
    """Make what is missing; 1 where runs failed."""
    from repro.app.study import Study

    failed = Study.open(str(profile)).sweep()
    for label, reason in failed.items():
        print(f"missing: {label}: {reason.splitlines()[0]}", file=sys.stderr)
    return 1 if failed else 0


def inject() -> None:
    """Called in every process of the sweep, when this module is imported."""
    import torch

    from repro import lease
    from repro.store import Store
    from repro.train import loop

    # Before memory is limited: OpenBLAS, loaded under a limit, may wait for memory for ever.
    importlib.import_module("repro.app.study")
    step, make, now = loop.Trainer.step, Store.make, time.time

    @functools.wraps(step)
    def poisoned(trainer: loop.Trainer) -> torch.Tensor:
        loss = step(trainer)
        run = (trainer.size.layers, trainer.spec.pairs, trainer.done)
        if run == (NAN["layers"], NAN["pairs"], NAN["step"]):
            with torch.no_grad():
                trainer.encoder.projection.weight.fill_(float("nan"))
        return loss

    @functools.wraps(make)
    def counted(store: Store, kind: str, spec: Any, maker: Any, about: Any = None) -> Path:
        done = []
        final = make(store, kind, spec, lambda work: done.append(maker(work)), about)
        if done:
            with open(INJECTED["made"], "a", encoding="utf-8") as file:
                file.write(f"{kind}/{final.name}\n")
        return final

    loop.Trainer.step = poisoned  # type: ignore[method-assign, assignment]
    if "made" in INJECTED:
        Store.make = counted  # type: ignore[method-assign, assignment]
    if INJECTED.get("hasty"):
        lease.HEARTBEAT_SECONDS, lease.STALE_SECONDS, lease.WATCH_SECONDS = 0.5, 8.0, 2.0
    if ahead := INJECTED.get("clock"):
        time.time = lambda: now() + ahead
    if more := INJECTED.get("memory_mb"):
        held = re.search(r"VmSize:\s+(\d+)", Path("/proc/self/status").read_text(encoding="utf-8"))
        limit = (int(held[1]) if held else 0) * 1024 + more * 2**20
        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
    if most := INJECTED.get("file_kb"):
        resource.setrlimit(resource.RLIMIT_FSIZE, (most * 1024, resource.RLIM_INFINITY))


if INJECTED:
    inject()
if __name__ == "__main__":
    from repro.app import cli

    raise SystemExit(cli.told("sweep", lambda: sweep(Path(sys.argv[1]))))
