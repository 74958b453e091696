"""Runs as jobs of a Slurm cluster, submitted by submitit; whoever asked for them only waits.

A job takes its tasks through the same leases as a worker of one machine, so that no result is made
twice, whoever else works on the store.  It is warned of its time limit and of preemption: it keeps its
state, and Slurm queues it again.  Whoever waits may be killed: the jobs go on, and the next call finds
them by their names.
"""

from __future__ import annotations

import logging
import shutil
import signal
import subprocess
import time
import uuid
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from repro.errors import UserError
from repro.progress import Progress
from repro.store import Store
from repro.train.pause import Pause, Paused
from repro.work import batches
from repro.work.batches import Batch, Seen, Where
from repro.work.cluster import Needs, SlurmParams
from repro.work.jobs import grouped
from repro.work.queue import Sweep, Task, work

if TYPE_CHECKING:
    import submitit

MOST_REQUEUES = 1000
REQUEUE_SECONDS = 5.0  # between tries, where the controller does not answer
MOST_IN_ARRAY = 1000  # Slurm's own default is 1001
MISSED = 2  # looks at the queue without a job until it counts as ended: file systems have caches
LEAST_POLL_SECONDS, MOST_POLL_SECONDS = 1.0, 15.0
PASSING = ("unable to contact", "socket timed out", "temporar", "try again", "not respond")


def run(store: Store, tasks: list[Task], params: SlurmParams, *, title: str) -> dict[str, str]:
    """Make all tasks that are not in the store; returns label -> reason of those that failed."""
    sweep = Sweep(store, tasks, uuid.uuid4().hex[:8])
    if waiting := sweep.waiting():
        _needed()
        progress = Progress(title, {where: sweep.tasks[where].cost for where in waiting})
        jobs = _Jobs(sweep, params, progress)
        try:
            jobs.watch()
        except KeyboardInterrupt:
            progress.say(
                f"{title}: its {len(jobs.known)} jobs go on, and the same command waits for them "
                f"again; to end them too: scancel {' '.join(sorted(jobs.numbers))}"
            )
            raise
        for where in waiting:
            progress.end(where)
        progress.close()
    return sweep.faults()


class Job:
    """What one job runs; submitit carries it there."""

    def __init__(self, root: Path, batch: str, index: int, device: str) -> None:
        self.root, self.batch, self.index, self.device = root, batch, index, device

    def __call__(self) -> None:
        """Make the tasks of the job that are not there; asked to stop, be queued again."""
        import submitit

        pause, number = Pause(), getattr(signal, f"SIG{submitit.JobEnvironment.USR_SIG}")
        before = {each: signal.getsignal(each) for each in (number, signal.SIGTERM)}
        signal.signal(number, lambda *_: pause.ask("stop"))
        signal.signal(signal.SIGTERM, lambda *_: pause.ask("keep"))  # preempted, perhaps cancelled
        try:
            self._work(pause)
        except Paused:
            self._found().tell(self.index, "stopped", None, 0.0, "")
            self._again(before[number], number)
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)

    def checkpoint(self) -> submitit.helpers.DelayedSubmission:
        """What submitit queues again: this same job, which goes on from what is in the store."""
        import submitit

        return submitit.helpers.DelayedSubmission(self)

    def _found(self) -> Batch:
        batch = batches.find(Store(self.root), self.batch)
        if batch is None:
            raise FileNotFoundError(f"{self.root}: there is no batch {self.batch}")
        return batch

    def _work(self, pause: Pause) -> None:
        from repro.work.makers import Makers

        batch, store = self._found(), Store(self.root)
        sweep = Sweep(store, batch.tasks(self.index), batch.sweep)
        try:
            makers = Makers(store, self.device, pause)
        except UserError as fault:
            for where in sweep.waiting():
                sweep.fail(where, str(fault))
            return

        def started(where: Where) -> None:
            pause.listens = False
            batch.tell(self.index, "runs", where, 0.0, "")

        def make(task: Task, folder: Path) -> None:
            where = (task.kind, store.key(task.kind, task.spec))
            makers.make(
                task,
                folder,
                lambda flop, note: batch.tell(self.index, "runs", where, flop / task.flop, note),
            )

        def ended(where: Where, error: str) -> None:
            batch.tell(self.index, "ended", where, 1.0, "")
            pause.heed()

        work(sweep, make, started, ended, forget=makers.forget)

    @staticmethod
    def _again(requeue: Any, number: int) -> None:
        """Have submitit queue this job again and end it; until the time limit, if it must be."""
        while True:
            try:
                requeue(number, None)
            except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as fault:
                print(f"Slurm does not queue this job again: {fault}", flush=True)
                time.sleep(REQUEUE_SECONDS)


class _Jobs:
    """The jobs that make what a sweep lacks: those found in the queue, and those submitted here."""

    def __init__(self, sweep: Sweep, params: SlurmParams, progress: Progress) -> None:
        self.sweep, self.params, self.progress = sweep, params, progress
        self.known: dict[tuple[str, int], Batch] = {}
        self.numbers: set[str] = set()  # of Slurm, those of arrays without their places
        self.missed: Counter[tuple[str, int]] = Counter()
        self.said: set[str] = set()
        self.changed = time.monotonic()

    def watch(self) -> None:
        """Wait until nothing is left to make; submit what is ready as far as `max_jobs` allows."""
        while self.sweep.waiting():
            seen = batches.look()
            if isinstance(seen, str):
                self._say_once(f"Slurm does not answer; its jobs may well go on ({seen})")
            else:
                self._adopt(seen)
                self._settle({(each.name, each.index): each for each in seen})
                self._submit()
            self._show(seen if isinstance(seen, list) else [])
            quiet = (time.monotonic() - self.changed) / 10
            time.sleep(min(MOST_POLL_SECONDS, max(LEAST_POLL_SECONDS, quiet)))
        self._show([])

    def _adopt(self, seen: list[Seen]) -> None:
        """Take note of jobs that an earlier call submitted, or another one that runs now."""
        strange = {each.name for each in seen if each.active} - {name for name, _ in self.known}
        found = {name: batches.find(self.sweep.store, name) for name in strange}
        for each in seen:
            batch = found.get(each.name)
            if each.active and batch is not None and each.index < len(batch.jobs):
                self.known[each.name, each.index] = batch
            if each.active and (each.name, each.index) in self.known:
                self.numbers.add(each.number.split("_")[0])
        if n := sum(name in strange for name, _ in self.known):
            self.progress.say(f"{n} jobs are in the queue already")

    def _settle(self, seen: dict[tuple[str, int], Seen]) -> None:
        """See what became of the jobs that are no longer in the queue."""
        for job, batch in list(self.known.items()):
            now = seen.get(job)
            self.missed[job] = 0 if now and now.active else self.missed[job] + 1
            done = all(self.sweep.store.has(*where) for where in batch.jobs[job[1]])
            if self.missed[job] >= (1 if done else MISSED):
                del self.known[job], self.missed[job]
                self.changed = time.monotonic()
                self._ended(batch, job[1], now)

    def _ended(self, batch: Batch, index: int, seen: Seen | None) -> None:
        sweep = self.sweep
        mine = [where for where in batch.jobs[index] if where in sweep.tasks]
        for where in mine:
            if batch.sweep != sweep.name and not sweep.store.find(*where):
                sweep.inherit(where, batch.sweep)
        left = [w for w in mine if not sweep.store.find(*w) and not sweep.failed(w)]
        if not left:
            return
        told = batch.told(index)
        where = told["where"] if told["where"] in left else left[0]
        state = f"{seen.number} ended as {seen.state}" if seen else f"of {batch.name} is gone"
        log = next((str(path) for path in reversed(batch.logs(index))), str(batch.folder))
        if told["event"] != "stopped":  # else it kept its state and ended as it was asked to
            sweep.died(where, f"job {state}; see {log}")
        self.progress.say(
            f"job {state} with {sweep.tasks[where].label}: "
            + ("set aside" if sweep.failed(where) else "submitted again, to go on from its state")
            + f" (see {log})"
        )

    def _submit(self) -> None:
        """Submit what is ready and in no job, as far as there is room."""
        room = self.params.max_jobs - len(self.known)
        taken = {where for (_, index), b in self.known.items() for where in b.jobs[index]}
        for needs, jobs in grouped(self.sweep, self.params, taken).items():
            while jobs and room > 0:
                some, jobs = jobs[: min(room, MOST_IN_ARRAY)], jobs[min(room, MOST_IN_ARRAY) :]
                room -= len(some)
                if not self._send(needs, some):
                    return

    def _send(self, needs: Needs, jobs: list[list[tuple[Where, Task]]]) -> bool:
        """Submit one array; returns whether Slurm took it, raises `UserError` where it never will."""
        import submitit

        batch = batches.plan(self.sweep.store, self.sweep.name, jobs)
        executor = submitit.SlurmExecutor(batch.folder, max_num_timeout=MOST_REQUEUES)
        executor.update_parameters(job_name=batch.name, **self.params.options(needs))
        device = self.params.in_job(needs)
        root = self.sweep.store.root.absolute()
        carried = [Job(root, batch.name, index, device) for index in range(len(jobs))]
        try:
            sent = executor.submit_array(carried)
        except submitit.core.utils.FailedJobError as fault:
            words = " ".join(str(fault).split())
            if not self.known and not any(word in words.lower() for word in PASSING):
                shutil.rmtree(batch.folder, ignore_errors=True)
                raise UserError(
                    f"Slurm refuses the jobs: {words}", remedy="mend `execute` in the profile"
                ) from None
            self._say_once(f"Slurm takes no jobs now, tried again later: {words}")
            return False
        number = sent[0].job_id.split("_")[0]
        self.known |= {(batch.name, index): batch for index in range(len(jobs))}
        self.numbers.add(number)
        self.changed = time.monotonic()
        self.progress.say(f"{len(jobs)} jobs submitted as {number}, logs in {batch.folder}")
        return True

    def _show(self, seen: list[Seen]) -> None:
        """Renew the line of progress, and say once why jobs wait."""
        reasons = Counter(each.reason for each in seen if each.state == "PENDING")
        for reason in reasons:
            if reason not in ("None", "Priority", "Resources"):
                self._say_once(f"jobs wait in the queue: {reason}")
        if seen:
            self.progress.running.clear()  # some may wait again
        for each in seen:
            job = each.name, each.index
            if each.state != "RUNNING" or job not in self.known:
                continue
            told = self.known[job].told(each.index)
            where = told["where"]
            if where not in self.sweep.tasks or told["event"] != "runs":
                continue
            self.progress.start(where, self.sweep.tasks[where].label)
            self.progress.share(where, done=told["done"], note=told["note"])
        for where in self.sweep.tasks.keys() & self.progress.costs.keys() - self.progress.done:
            error = "" if self.sweep.store.has(*where) else self.sweep.failed(where)
            if error:
                self.progress.say(f"failed: {self.sweep.tasks[where].label}: {error}")
            if error or self.sweep.store.has(*where):
                self.progress.end(where)
        self.progress.show()

    def _say_once(self, text: str) -> None:
        if text not in self.said:
            self.said.add(text)
            self.progress.say(text)


def _needed() -> None:
    """Refuse to begin where there is no Slurm, or no submitit."""
    try:
        import submitit  # noqa: F401
    except ImportError:
        raise UserError(
            "submitit is not installed",
            remedy="pip install '.[slurm]', or execute: {backend: local}",
        ) from None
    if not all(map(shutil.which, ("sbatch", "squeue", "srun"))):
        raise UserError(
            "there is no Slurm here (sbatch, squeue and srun are not all found)",
            remedy="run it on a machine that submits to the cluster, or execute: {backend: local}",
        )
    logging.getLogger("submitit").setLevel(logging.ERROR)
