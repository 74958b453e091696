"""The workers of this machine: persistent processes, one thread each on a CPU.

A worker that dies (killed, out of memory) is replaced, and its task goes on from its last
evaluation; a task on which workers die repeatedly is set aside and the others go on.  Workers end
by themselves when their parent is gone.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.queues
import os
import queue
import signal
import threading
import time
import traceback
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from repro.params import Params
from repro.store import Store
from repro.work.progress import Progress
from repro.work.queue import Sweep, Task, work

ORPHAN_POLL_SECONDS = 0.5
STOP_SECONDS = 10.0


class ExecuteParams(Params):
    """Where and how runs are executed; none of it changes a result."""

    backend: Literal["local"] = "local"
    workers: Annotated[int, Field(ge=1, le=1024)] | Literal["auto"] = "auto"
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"


def run(store: Store, tasks: list[Task], params: ExecuteParams, *, title: str) -> dict[str, str]:
    """Make all tasks that are not in the store; returns label -> reason of those that failed."""
    sweep = Sweep(store, tasks, uuid.uuid4().hex[:8])
    waiting = sweep.waiting()
    if waiting:
        progress = Progress(title, {where: sweep.tasks[where].flop for where in waiting})
        with _pool(sweep, min(workers(params), len(waiting)), params) as pool:
            pool.watch(progress)
        progress.close()
    faults = {task.label: sweep.failed(where) for where, task in sweep.tasks.items()}
    return {label: reason for label, reason in faults.items() if reason}


def workers(params: ExecuteParams) -> int:
    """How many worker processes run at once."""
    if params.workers != "auto":
        return params.workers
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Pool:
    """Worker processes over one sweep, and their messages."""

    def __init__(self, sweep: Sweep, n: int, params: ExecuteParams) -> None:
        self.sweep, self.params = sweep, params
        self.context = multiprocessing.get_context("spawn")
        self.messages: Any = self.context.Queue()
        self.holding: dict[int, tuple[str, str] | None] = {}
        self.processes: dict[int, Any] = {}
        for index in range(n):
            self._start(index)

    def watch(self, progress: Progress) -> None:
        """Show messages until every worker has ended; replace those that died."""
        while self.processes:
            try:
                index, event, where, detail = self.messages.get(timeout=0.2)
                self._take(index, event, where, detail, progress)
                continue
            except queue.Empty:
                pass
            progress.show()
            for index, process in list(self.processes.items()):
                if process.is_alive():
                    continue
                del self.processes[index]
                if process.exitcode != 0:
                    self._replace(index, process.exitcode, progress)

    def stop(self) -> None:
        """End what still runs: ask, then kill."""
        for process in self.processes.values():
            process.terminate()
        deadline = time.monotonic() + STOP_SECONDS
        for process in self.processes.values():
            process.join(max(0.0, deadline - time.monotonic()))
            if process.is_alive():
                process.kill()
        self.messages.cancel_join_thread()

    def _start(self, index: int) -> None:
        process = self.context.Process(
            target=_worker,
            args=(index, self.sweep, self.params.device, self.messages),
            daemon=True,
        )
        with _one_thread():
            process.start()
        self.processes[index] = process
        self.holding[index] = None

    def _take(self, index: int, event: str, where: Any, detail: Any, progress: Progress) -> None:
        if event == "start":
            self.holding[index] = where
            progress.start(where, self.sweep.tasks[where].label)
        elif event == "share":
            progress.share(where, **detail)
        elif event == "end":
            self.holding[index] = None
            progress.end(where)
            if detail:
                progress.say(f"failed: {self.sweep.tasks[where].label}: {detail}")

    def _replace(self, index: int, code: int, progress: Progress) -> None:
        where = self.holding[index]
        if where is None:
            progress.say(f"worker {index} ended with code {code} before it took a task")
            raise RuntimeError(
                f"worker {index} cannot start (exit code {code}); see the text above"
            )
        self.sweep.died(where)
        progress.say(
            f"worker {index} died (exit code {code}) on {self.sweep.tasks[where].label}: "
            + ("set aside" if self.sweep.failed(where) else "going on from its last evaluation")
        )
        self._start(index)


@contextlib.contextmanager
def _pool(sweep: Sweep, n: int, params: ExecuteParams) -> Iterator[_Pool]:
    pool = _Pool(sweep, n, params)
    try:
        yield pool
    finally:
        pool.stop()


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
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


def _worker(index: int, sweep: Sweep, device: str, messages: Any) -> None:
    parent = os.getppid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent, which ends us
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    try:
        from repro.work.makers import Makers

        makers = Makers(sweep.store, device)

        def make(task: Task, folder: Path) -> None:
            where = (task.kind, sweep.store.key(task.kind, task.spec))

            def report(flop: float, note: str) -> None:
                messages.put((index, "share", where, {"done": flop / task.flop, "note": note}))

            makers.make(task, folder, report)

        work(
            sweep,
            make,
            started=lambda where: messages.put((index, "start", where, None)),
            ended=lambda where, error: messages.put((index, "end", where, error)),
        )
    except Exception:
        traceback.print_exc()
        raise SystemExit(1) from None


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(ORPHAN_POLL_SECONDS)
    os._exit(1)
