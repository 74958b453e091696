"""What runs will take: FLOPs and seconds, from the pace of the machine and from finished runs."""

from __future__ import annotations

import functools
from collections.abc import Iterable

from repro.experiments.effort import Effort, Finished, effort, expected_steps
from repro.provenance import surroundings
from repro.train.loop import RunSpec
from repro.work.pace import Pace, Rates


class Estimator:
    """Estimates from finished runs and from the pace that a calibration measured.

    known: runs that tell how many steps a run takes.  Those of them that were made on such a machine
    since the calibration also correct the seconds, model by model.
    """

    def __init__(self, known: Iterable[Finished] = (), pace: Pace | None = None) -> None:
        self.known, self.pace = list(known), pace or Pace({})
        here = (surroundings()["machine"], surroundings()["cores"])
        self.timed = [
            each
            for each in self.known
            if each.seconds > 0 and each.machine == here and each.began >= self.pace.at
        ]

    def effort(
        self, spec: RunSpec, step_flop: float, reading_flop: float, own_lr: float | None = None
    ) -> Effort:
        """The work of a run; own_lr: see `expected_steps`."""
        return effort(spec, expected_steps(spec, self.known, own_lr), step_flop, reading_flop)

    def training(self, spec: RunSpec, work: Effort) -> float:
        """Seconds of a training run on one worker."""
        rates = self.pace.of(spec)
        share = work.reading_flop / work.step_flop
        return self.factor(spec.weights, share) * _seconds(work, rates) + rates.start

    def ranking(self, spec: RunSpec, work: Effort, flop: float) -> float:
        """Seconds of the ranking of a run, whose texts take `flop` FLOPs to encode."""
        rates = self.pace.of(spec)
        factor = self.factor(spec.weights, work.reading_flop / work.step_flop)
        return factor * flop * rates.ranking + self.pace.search + rates.start

    @functools.lru_cache(maxsize=1024)  # noqa: B019 (one object a study)
    def factor(self, weights: str, share: float) -> float:
        """Seconds that finished runs took over those expected: of this model, else of all; else 1.

        share: FLOPs of a reading over those of a step.  Models that were calibrated are not
        corrected by other models' runs.
        """
        own = [each for each in self.timed if each.weights == weights]
        if not own and self.pace.at:
            return 1.0
        took = expected = 0.0
        for each in own or self.timed:
            assert each.spec is not None
            step = each.flop / each.steps
            work = effort(each.spec, each.steps, step, share * step)
            took += each.seconds
            expected += _seconds(work, self.pace.of(each.spec))
        return took / expected if expected > 0 else 1.0

    def source(self) -> str:
        """Where the seconds come from, in words."""
        if self.pace.at:
            more = f", corrected by {len(self.timed)} runs since" if self.timed else ""
            return f"calibrated {self.pace.at}{more}"
        if self.timed:
            return f"by {len(self.timed)} finished runs"
        return "a guess: --calibrate measures this machine in a minute"


def _seconds(work: Effort, rates: Rates) -> float:
    """Seconds of steps and readings, without the start."""
    readings = work.readings * (work.reading_flop * rates.reading + rates.keep)
    return work.steps * (work.step_flop * rates.step + rates.each) + readings
