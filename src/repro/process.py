"""What worker processes have in common: how many there are, one thread each, no orphans."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator

ORPHAN_POLL_SECONDS = 0.5


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """OMP_NUM_THREADS=1 for processes started inside: torch reads it when it is imported."""
    old = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = "1"
    try:
        yield
    finally:
        if old is None:
            del os.environ["OMP_NUM_THREADS"]
        else:
            os.environ["OMP_NUM_THREADS"] = old


def serve_parent() -> None:
    """To be called first in a worker: leave Ctrl-C to the parent, and end when the parent has ended.

    The parent is the one that started us, also where it has ended before we came this far.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent, which ends us
    starter = multiprocessing.parent_process()
    parent = os.getppid() if starter is None or starter.pid is None else starter.pid
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(ORPHAN_POLL_SECONDS)
    os._exit(1)
