"""A turn of a benchmark in a process of its own: what it says of itself, and the memory it takes.

Nothing heavy is imported here: a turn imports this file too, and its memory counts.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

POLL_SECONDS = 0.05


def start(script: str, *arguments: str, **more: str) -> subprocess.Popen[str]:
    """`script turn ARGUMENTS`, which prints a line of JSON at last; more: of its environment."""
    one_thread = {"TOKENIZERS_PARALLELISM": "false", "RAYON_NUM_THREADS": "1"}
    environment = os.environ | one_thread | more
    return subprocess.Popen(
        [sys.executable, script, "turn", *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )


def watched(started: subprocess.Popen[str]) -> dict[str, Any]:
    """What a turn says of itself, and `bytes`: the most that it and its workers had resident."""
    most = 0
    while started.poll() is None:
        most = max(most, resident(started.pid))
        time.sleep(POLL_SECONDS)
    out, _ = started.communicate()
    if started.returncode:
        sys.exit("benchmarks: a turn failed (its words are above)")
    return {**json.loads(out.splitlines()[-1]), "bytes": most}


def resident(pid: int) -> int:
    """Bytes that a process and its children have resident, what they share counted for each."""
    import psutil

    try:
        top = psutil.Process(pid)
        tree = [top, *top.children(recursive=True)]
    except psutil.NoSuchProcess:
        return 0
    total = 0
    for process in tree:
        try:
            total += process.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return total


def stopwatch() -> Callable[[], dict[str, float]]:
    """Gives what was spent since: wall time, and processor time of this process and of its workers."""
    import resource

    def processor() -> float:
        parts = [
            resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        ]
        return sum(part.ru_utime + part.ru_stime for part in parts)

    began, used = time.perf_counter(), processor()
    return lambda: {"seconds": time.perf_counter() - began, "processor": processor() - used}
