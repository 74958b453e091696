"""Cluster jobs without a cluster: what is asked for, which tasks make a job, and what becomes of it.

The queue is one in memory; tests/slurm runs the same through a real Slurm.
"""

from __future__ import annotations

import io
import json
import os
import signal
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from small_tasks import asked, place, task, write

from repro.app.study import Study
from repro.errors import UserError
from repro.progress import Progress
from repro.store import Store
from repro.work import batches, slurm
from repro.work.batches import Seen, Where
from repro.work.queue import Sweep, Task, work


class FakeQueue:
    """Slurm in memory: `looks` are what the queue shows, one after the other."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: dict[tuple[str, int], Seen] = {}
        self.sent: list[list[str]] = []
        self.silent = ""
        monkeypatch.setattr(batches, "look", lambda: self.silent or list(self.seen.values()))
        monkeypatch.setattr(slurm._Jobs, "_send", lambda *given: self.take(*given))
        monkeypatch.setattr(slurm, "_needed", lambda: None)
        clock = SimpleNamespace(sleep=lambda seconds: self.turn(), monotonic=time.monotonic)
        monkeypatch.setattr(slurm, "time", clock)  # of that module alone
        self.turns: list[Any] = []

    def take(
        self, jobs: slurm._Jobs, needs: object, groups: list[list[tuple[Where, Task]]]
    ) -> bool:
        batch = batches.plan(jobs.sweep.store, jobs.sweep.name, groups)
        for index, group in enumerate(groups):
            self.seen[batch.name, index] = Seen(batch.name, index, f"7_{index}", "RUNNING", "None")
            jobs.known[batch.name, index] = batch
            self.sent.append([one.label for _, one in group])
        return True

    def turn(self) -> None:
        assert self.turns, "it waits for ever"
        self.turns.pop(0)()

    def end(self, state: str, store: Store | None = None, *, event: str = "") -> None:
        """All jobs end like that; with a store, after they have made their tasks."""
        for (name, index), seen in list(self.seen.items()):
            if not seen.active:
                continue
            self.seen[name, index] = Seen(name, index, seen.number, state, "None")
            if store and (batch := batches.find(store, name)):
                if event:
                    batch.tell(index, event, None, 0.0, "")
                else:
                    sweep = Sweep(store, batch.tasks(index), batch.sweep)
                    work(sweep, write, lambda where: None, lambda where, error: None)


def test_a_job_that_dies_twice_is_set_aside_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    queue, store = FakeQueue(monkeypatch), Store(tmp_path)
    nothing = [lambda: None] * slurm.MISSED
    queue.turns = [
        lambda: queue.end("OUT_OF_MEMORY"),
        *nothing,
        lambda: queue.end("FAILED"),
        *nothing,
    ]
    failed = slurm.run(store, [task("a")], asked(), title="t")
    assert queue.sent == [["a"], ["a"]]
    assert "the worker died 2 times (the last time: job 7_0 ended as FAILED; see" in failed["a"]
    printed = capsys.readouterr().out
    assert "job 7_0 ended as OUT_OF_MEMORY with a: submitted again" in printed
    assert "ended as FAILED with a: set aside" in printed


def test_a_job_that_stopped_as_asked_is_sent_again_without_counting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its state was kept, but Slurm, its controller gone, did not take it back."""
    queue, store = FakeQueue(monkeypatch), Store(tmp_path)
    stop = lambda: queue.end("TIMEOUT", store, event="stopped")  # noqa: E731
    nothing = [lambda: None] * slurm.MISSED
    queue.turns = [stop, *nothing] * 4 + [lambda: queue.end("COMPLETED", store)]
    assert slurm.run(store, [task("a")], asked(), title="t") == {}
    assert len(queue.sent) == 5


def test_a_silent_controller_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    queue, store = FakeQueue(monkeypatch), Store(tmp_path)

    def fall_silent() -> None:
        queue.silent = "Unable to contact slurm controller"

    queue.turns = [fall_silent, *[lambda: None] * 5]
    queue.turns += [lambda: setattr(queue, "silent", ""), lambda: queue.end("COMPLETED", store)]
    assert slurm.run(store, [task("a")], asked(), title="t") == {}
    assert len(queue.sent) == 1
    printed = capsys.readouterr().out
    assert printed.count("does not answer") == 1
    assert "1 of 1 done" in printed


def test_the_next_call_finds_the_jobs_of_the_last_and_their_failures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    queue, store = FakeQueue(monkeypatch), Store(tmp_path)
    both = [task("a"), task("b")]

    def stop() -> None:
        raise KeyboardInterrupt

    queue.turns = [stop]
    with pytest.raises(KeyboardInterrupt):
        slurm.run(store, both, asked(), title="t")
    assert "its 2 jobs go on" in capsys.readouterr().out

    def end() -> (
        None
    ):  # one makes its task, the other fails at it; both know the first call's sweep
        for name, index in queue.seen:
            batch = batches.find(store, name)
            assert batch is not None
            sweep = Sweep(store, batch.tasks(index), batch.sweep)
            if next(iter(sweep.tasks.values())).label == "b":
                sweep.fail(batch.jobs[index][0], "ValueError: no")
        queue.end("COMPLETED", store)

    queue.turns = [end, *[lambda: None] * slurm.MISSED]
    assert slurm.run(store, both, asked(), title="t") == {"b": "ValueError: no"}
    assert len(queue.sent) == 2  # none was sent again
    assert "2 jobs are in the queue already" in capsys.readouterr().out


def test_no_more_jobs_than_were_allowed_are_in_the_queue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue, store = FakeQueue(monkeypatch), Store(tmp_path)
    most: list[int] = []

    def end() -> None:
        most.append(sum(each.active for each in queue.seen.values()))
        queue.end("COMPLETED", store)

    queue.turns = [end] * 4
    assert slurm.run(store, [task(str(i)) for i in range(10)], asked(max_jobs=3), title="t") == {}
    assert most == [3, 3, 3, 1]


def test_a_job_asked_to_stop_keeps_its_state_and_is_queued_again(
    fresh: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, store = next(run for run in fresh.planned() if run.pairs == 160), fresh.store
    where = place(store, run.train)
    batch = batches.plan(store, "s", [[(where, run.train)]])
    job = slurm.Job(store.root, batch.name, 0, "cpu")
    from repro.train import loop

    step, steps = loop.Trainer.step, []

    def stopped_at_12(trainer: loop.Trainer) -> Any:
        steps.append(trainer.done)
        if trainer.done == 12 and len(steps) == 13:
            os.kill(os.getpid(), signal.SIGUSR2)
        return step(trainer)

    queued: list[int] = []

    def again(number: int, frame: object) -> None:
        queued.append(number)
        raise SystemExit(255)  # as submitit does

    monkeypatch.setattr(loop.Trainer, "step", stopped_at_12)
    before = signal.signal(signal.SIGUSR2, again)
    try:
        with pytest.raises(SystemExit):
            job()
        assert queued == [signal.SIGUSR2]
        assert batch.told(0)["event"] == "stopped"
        assert not store.held(*where)
        assert job.checkpoint().function is job
        job()
    finally:
        signal.signal(signal.SIGUSR2, before)
    assert steps == list(range(len(steps)))
    assert store.has(*where)
    assert batch.told(0)["event"] == "ended"


def test_a_job_without_the_gpu_that_was_asked_for_fails_with_that_reason(tmp_path: Path) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    store = Store(tmp_path)
    one = task("a")
    batch = batches.plan(store, "s", [[(place(store, one), one)]])
    slurm.Job(store.root, batch.name, 0, "cuda")()
    assert "there is no cuda device" in Sweep(store, [one], "s").failed(place(store, one))


def test_without_slurm_it_says_so_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="there is no Slurm here"):
        slurm.run(Store(tmp_path), [task("a")], asked(), title="t")
    assert json.dumps(sorted(path.name for path in tmp_path.iterdir())) == "[]"


def test_progress_shows_what_runs_and_forgets_what_waits_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, one = Store(tmp_path), task("run a")
    where = place(store, one)
    batch = batches.plan(store, "s", [[(where, one)]])
    progress = Progress("t", {where: 1.0}, io.StringIO())
    jobs = slurm._Jobs(Sweep(store, [one], "s"), asked(), progress)
    jobs.known[batch.name, 0] = batch
    batch.tell(0, "runs", where, 0.25, "step 5")
    jobs._show([Seen(batch.name, 0, "1", "RUNNING", "None")])
    assert progress.running == {where: ("run a", 0.25, "step 5")}
    jobs._show([Seen(batch.name, 0, "1", "PENDING", "BeginTime")])
    assert progress.running == {}
