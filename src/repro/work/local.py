"""The workers of this machine: persistent processes, one thread each on a CPU.

A worker that dies (killed, out of memory) is replaced, and its task goes on from its last
evaluation; a task on which workers die repeatedly is set aside and the others go on.  Workers end
by themselves when their parent is gone.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.connection
import os
import time
import traceback
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from repro.errors import UserError
from repro.params import Params
from repro.process import cores, one_thread, serve_parent
from repro.progress import Progress
from repro.store import Store
from repro.work.queue import Sweep, Task, in_words, work

STOP_SECONDS = 10.0
MAX_BARREN = 3


class WorkersParams(Params):
    """The worker processes of this machine, and the device of a run; neither changes a result."""

    workers: Annotated[int, Field(ge=1, le=1024)] | Literal["auto"] = "auto"
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"


class ExecuteParams(WorkersParams):
    """Runs on this machine."""

    backend: Literal["local"] = "local"


def run(store: Store, tasks: list[Task], params: ExecuteParams, *, title: str) -> dict[str, str]:
    """Make all tasks that are not in the store; returns label -> reason of those that failed."""
    sweep = Sweep(store, tasks, uuid.uuid4().hex[:8])
    waiting = sweep.waiting()
    if waiting:
        progress = Progress(title, {where: sweep.tasks[where].cost for where in waiting})
        with _pool(sweep, min(workers(params), len(waiting)), params) as pool:
            pool.watch(progress)
        for where in waiting:
            progress.end(where)  # those that another process made are not heard of
        progress.close()
    return sweep.faults()


def workers(params: WorkersParams) -> int:
    """How many worker processes run at once on this machine."""
    return cores() if params.workers == "auto" else params.workers


class _Pool:
    """Worker processes over one sweep, each with a pipe of its own.

    Not one queue for all: a worker that is killed while it holds the queue's lock would silence the
    others for ever.  A pipe that ends tells of a worker that has ended, well or not.
    """

    def __init__(self, sweep: Sweep, n: int, params: ExecuteParams) -> None:
        self.sweep, self.params = sweep, params
        self.context = multiprocessing.get_context("spawn")
        self.holding: dict[int, tuple[str, str] | None] = {}
        self.processes: dict[int, Any] = {}
        self.pipes: dict[int, Any] = {}
        self.barren = 0  # workers that died before they took a task
        for index in range(n):
            self._start(index)

    def watch(self, progress: Progress) -> None:
        """Show messages until every worker has ended; replace those that died."""
        while self.pipes:
            ready = multiprocessing.connection.wait(self.pipes.values(), timeout=0.2)
            for index, pipe in list(self.pipes.items()):
                if pipe in ready:
                    try:
                        event, where, detail = pipe.recv()
                    except (EOFError, OSError):
                        self._ended(index, progress)
                    else:
                        self._take(index, event, where, detail, progress)
            progress.show()

    def stop(self) -> None:
        """End what still runs: ask, then kill."""
        for process in self.processes.values():
            process.terminate()
        deadline = time.monotonic() + STOP_SECONDS
        for process in self.processes.values():
            process.join(max(0.0, deadline - time.monotonic()))
            if process.is_alive():
                process.kill()

    def _start(self, index: int) -> None:
        self.pipes[index], theirs = self.context.Pipe(duplex=False)
        process = self.context.Process(
            target=_worker, args=(self.sweep, self.params.device, theirs), daemon=True
        )
        with one_thread():
            process.start()
        theirs.close()  # so that the pipe ends with the worker
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

    def _ended(self, index: int, progress: Progress) -> None:
        """Take note of a worker that has ended; replace it if it did not end by itself."""
        self.pipes.pop(index).close()
        process = self.processes.pop(index)
        process.join()
        if process.exitcode == 0:
            return
        where = self.holding[index]
        if where is None:
            self.barren += 1
            if self.barren >= MAX_BARREN:
                raise UserError(
                    f"workers end before they take a task (exit code {process.exitcode})",
                    remedy="see what they printed above",
                )
        elif self.sweep.store.has(*where):  # it died with its work done
            progress.end(where)
        else:
            self.sweep.died(where)
            progress.say(
                f"worker {index} died (exit code {process.exitcode}) on "
                f"{self.sweep.tasks[where].label}: "
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


def _worker(sweep: Sweep, device: str, pipe: Any) -> None:
    serve_parent()

    def tell(event: str, where: tuple[str, str], detail: Any) -> None:
        try:
            pipe.send((event, where, detail))
        except OSError:  # the parent is gone: end as `serve_parent` would, and fail no task by it
            os._exit(1)

    try:
        from repro.work.makers import Makers, device_name

        makers = Makers(sweep.store, device)

        def make(task: Task, folder: Path) -> None:
            where = (task.kind, sweep.store.key(task.kind, task.spec))

            def report(flop: float, note: str) -> None:
                tell("share", where, {"done": flop / task.flop, "note": note})

            makers.make(task, folder, report)

        work(
            sweep,
            make,
            started=lambda where: tell("start", where, None),
            ended=lambda where, error: tell("end", where, error),
            device=device_name(makers.device),
            forget=makers.forget,
        )
    except OSError as fault:  # of the store itself: no right to write, a full disk
        print(f"a worker ends: {in_words(fault)}", flush=True)
        raise SystemExit(1) from None
    except Exception:
        traceback.print_exc()
        raise SystemExit(1) from None
