"""The store with many runs: `repro store status`, and the start of a sweep that finds all of them there.

    python benchmarks/store.py [--quick]

Seconds of the wall and of the processor, start of Python included; and the ratio to a store of half as
many runs (2: linear).  The runs are made up: five files each, with digests that match.
"""

from __future__ import annotations

import hashlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import common
import numpy as np

from repro.store import Store
from repro.work import plans
from repro.work.plans import Asked, Plan

SIZES = (2_500, 5_000, 10_000)
START = """
import sys
from pathlib import Path
from repro.store import Store
from repro.work.queue import Sweep, Task
tasks = [Task("train", {"index": index}, str(index), 1.0) for index in range(int(sys.argv[2]))]
assert Sweep(Store(Path(sys.argv[1])), tasks, "s").waiting() == []
"""


def main() -> None:
    """Measure every size and print the table."""
    given = common.options(__doc__).parse_args()
    rows, before = [], {}
    for n in [size // 50 for size in SIZES] if given.quick else SIZES:
        with tempfile.TemporaryDirectory() as name:
            fill(Path(name) / "runs", n)
            commands = {
                "store status": [sys.executable, "-m", "repro.app.cli", "store", "status"],
                "start, all there": [sys.executable, "-c", START, str(Path(name) / "runs"), str(n)],
            }
            for what, command in commands.items():
                spent = [timed(command, name) for _ in range(common.rounds(given))]
                wall, core = np.median(spent, axis=0)
                ratio = f"{core / before[what]:.2f}" if what in before else ""
                before[what] = core
                rows.append([what, f"{n:,}", f"{wall:.2f}", f"{core:.2f}", ratio])
    columns = ["what", "runs", "wall, s", "processor, s", "processor, to half as many"]
    common.show("Store", columns, rows, [], "Medians.")


def fill(root: Path, n: int) -> None:
    """So many finished runs, and the plan of a study that asks for them and a fifth more."""
    store, asked = Store(root), {}
    for index in range(n + n // 5):
        place = ("train", store.key("train", {"index": index}))
        asked[place] = Asked(f"run {index}", 10.0, ("grid",))
        if index < n:
            folder = store.path(*place)
            folder.mkdir(parents=True)
            entries = {}
            for name in ("spec.json", "provenance.json", "summary.json", "validation.npy"):
                data = f"{name} {index}".encode() * 100
                (folder / name).write_bytes(data)
                entries[name] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
            (folder / "manifest.json").write_text(json.dumps({"files": entries}))
    files = (Path("profile.yaml"), Path("dataset.yaml"))
    plans.write(store, Plan("many", files, True, "x", 2, asked, ()))


def timed(command: list[str], home: str) -> tuple[float, float]:
    """Seconds of the wall and of the processor that a command takes."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    env = {**os.environ, "REPRO_HOME": home}
    subprocess.run(command, env=env, check=True, stdout=subprocess.DEVNULL)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
