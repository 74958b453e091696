"""Which tasks make a job: a run with its rankings, and several runs where that is asked for."""

from __future__ import annotations

from repro.work.batches import Where
from repro.work.cluster import Needs, SlurmParams
from repro.work.queue import Sweep, Task


def grouped(
    sweep: Sweep, params: SlurmParams, taken: set[Where]
) -> dict[Needs, list[list[tuple[Where, Task]]]]:
    """What is ready, longest first, as jobs: needs -> jobs, each a list of places and tasks.

    A ranking goes with its run.  What is `taken` (in a job already), made by others at this moment, or
    after something that is not there, is left out.
    """
    groups: dict[Where, list[Where]] = {}
    waiting = sweep.waiting()
    for where in waiting:
        after = sweep.tasks[where].after
        with_run = after is not None and after[0] == "train"
        groups.setdefault(after if after and with_run else where, []).append(where)
    found: dict[Needs, list[list[tuple[Where, Task]]]] = {}
    for first, members in groups.items():
        if any(where in taken or sweep.store.held(*where) for where in members):
            continue
        needed = sweep.tasks[first].after if first in members else first
        if needed and not sweep.store.has(*needed):
            continue
        tasks = [(where, sweep.tasks[where]) for where in members]
        needs = params.needs(max(task.parameters for _, task in tasks))
        jobs = found.setdefault(needs, [])
        if jobs and len({_run(where, task) for where, task in jobs[-1]}) < params.runs_per_job:
            jobs[-1] += tasks
        else:
            jobs.append(tasks)
    return found


def _run(where: Where, task: Task) -> Where:
    """What a task is counted under: the run that it makes or measures, else itself."""
    return task.after if task.after and task.after[0] == "train" else where
