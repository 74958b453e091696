"""What a study would run and cost, by experiment; a cell that several share is counted once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from repro.experiments import costs
from repro.experiments.runs import Runs, Trained
from repro.work.plans import makespan
from repro.work.queue import Task

MARK = "(later)"  # marks the line of an experiment whose runs are not known yet


@dataclass(frozen=True)
class Line:
    """The budget of one experiment: counts of runs, and worker-seconds of what is still to do."""

    runs: int
    stored: int  # trained and ranked
    shared: int  # with an experiment above
    training: float  # seconds: steps, and the start of each run
    reading: float
    ranking: float
    flop: float  # of steps and rankings
    reading_flop: float
    steps: float

    @property
    def seconds(self) -> float:
        """All worker-seconds."""
        return self.training + self.reading + self.ranking


@dataclass(frozen=True)
class Budget:
    """The lines of a study, and the seconds until its workers are done."""

    lines: dict[str, Line]
    workers: int
    wall_seconds: float
    source: str  # of the seconds, in words

    @property
    def total(self) -> Line:
        """All experiments together."""
        columns = [asdict(line) for line in self.lines.values()]
        return Line(**{name: sum(column[name] for column in columns) for name in columns[0]})

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        lines = {name: asdict(line) for name, line in self.lines.items()}
        return {
            "experiments": lines,
            "workers": self.workers,
            "worker_seconds": self.total.seconds,
            "seconds": self.wall_seconds,
            "source": self.source,
        }


def budget(
    plan: Runs,
    experiments: Mapping[str, list[Trained]],
    workers: int,
    later: Mapping[str, list[Trained]] | None = None,
) -> Budget:
    """The budget of what is missing in the store; experiments: name -> its runs, in order.

    later: stand-ins for runs that are known only when all others are there; their lines are marked.
    """
    lines, wall = {}, 0.0
    counted: set[tuple[str, str]] = set()
    marked = {f"{name} {MARK}": runs for name, runs in (later or {}).items()}
    for stage in (experiments, marked):
        missing: dict[tuple[str, str], Task] = {}
        for name, runs in stage.items():
            lines[name], own = _line(plan, runs, counted)
            missing.update(own)
        boot = plan.estimator.pace.boot if missing else 0.0
        wall += boot + makespan((task.seconds for task in missing.values()), workers)
    return Budget(lines, workers, wall, plan.estimator.source())


def distinct(experiments: Mapping[str, list[Trained]]) -> list[Trained]:
    """The runs of all experiments, each once, in order, with every ranking that one of them asks for."""
    found: dict[str, Trained] = {}
    for runs in experiments.values():
        for run in runs:
            before = found.setdefault(run.spec.model_dump_json(), run)
            found[run.spec.model_dump_json()] = replace(
                before,
                ranking=before.ranking or run.ranking,
                targets={**before.targets, **run.targets},
            )
    return list(found.values())


def _line(
    plan: Runs, runs: list[Trained], counted: set[tuple[str, str]]
) -> tuple[Line, dict[tuple[str, str], Task]]:
    """The line of an experiment, and its tasks to do; adds their places to `counted`."""
    stored = shared = 0
    training = reading = ranking = flop = reading_flop = steps = 0.0
    missing: dict[tuple[str, str], Task] = {}
    for run in runs:
        places = [(task.kind, plan.store.key(task.kind, task.spec)) for task in run.tasks]
        there = [plan.store.has(*where) for where in places]
        stored += all(there)
        shared += places[0] in counted
        for task, where, done in zip(run.tasks, places, there, strict=True):
            if done or where in counted:
                continue
            missing[where] = task
            flop += task.flop
            if task.kind == "train":
                share, work = costs.reading_share(plan, run), costs.effort_of(plan, run)
                steps += work.steps
                reading_flop += work.readings * work.reading_flop
                training += (1 - share) * task.seconds
                reading += share * task.seconds
            else:
                ranking += task.seconds
        counted.update(places)
    seconds = training, reading, ranking
    return Line(len(runs), stored, shared, *seconds, flop, reading_flop, steps), missing
