"""How much work a run is: its steps, its readings and their FLOPs, before it is made.

The steps are a guess: those of finished runs like it where there are some (in the store, else in the
record of `repro tune`), else a number of passes over its pairs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from repro.store import Store
from repro.train.curve import CurveParams, readings, worth_reading
from repro.train.loop import RunSpec

# Passes over the pairs at which the minimum came in the first grid of micro-encoders: 1.2 to 3.4,
# with no trend in N, D or rate (docs/LOG.md, 2026-11-29).
PASSES = 2.5
PAST = 1.7  # steps of a run over those to its minimum, on that grid

# How far runs are apart, in squared units: a doubling of D or of the rate is one.
ANOTHER_MODEL = 4.0
ANOTHER_SETTING = 4.0
USUAL = 3.0  # the passes of the first grid


@dataclass(frozen=True)
class Finished:
    """A finished run, as far as it tells of another one's cost."""

    weights: str  # digest
    pairs: int
    lr: float
    setting: tuple[int, int, bool]  # batch, negatives, in-batch
    steps: float  # in all
    flop: float = 0.0  # of the steps
    seconds: float = 0.0  # of steps and readings; 0: not known
    began: str = ""  # UTC, ISO 8601
    machine: tuple[str, int] = ("", 0)  # kind and cores
    spec: RunSpec | None = None


@dataclass(frozen=True)
class Effort:
    """The work of one training run."""

    steps: float
    readings: int  # the one before the first step included
    step_flop: float
    reading_flop: float

    @property
    def train_flop(self) -> float:
        """FLOPs of the steps, as the loop counts them."""
        return self.steps * self.step_flop


def effort(spec: RunSpec, steps: float, step_flop: float, reading_flop: float) -> Effort:
    """The work of a run of so many steps; its readings by the rule of the loop."""
    curve = spec.curve
    n = max(int(min(steps, spec.max_steps)), 1)
    places = readings(np.cumsum(spec.rates(n)) / spec.lr_reference, curve)
    return Effort(
        n, 1 + _n_readings(places, step_flop, reading_flop, curve), step_flop, reading_flop
    )


def expected_steps(spec: RunSpec, known: list[Finished], own_lr: float | None = None) -> float:
    """A guess at all steps of a run.

    The passes over the pairs of `known` runs, a geometric mean in which the near ones weigh most:
    exp(-distance^2), by data size, rate, model and setting.  The number of passes that was common
    before counts as one more run, nearer than another model at the same rate: models like rates of
    their own, and their passes at these are alike.
    own_lr: the model's own rate (none: that of the run); at another, steps go as its inverse, because
    the curves of different rates collapse over lr-steps.
    """
    usual = max(spec.curve.least_passes, PAST * PASSES * (own_lr or spec.lr) / spec.lr)
    passes = [usual, *(each.steps * each.setting[0] / each.pairs for each in known)]
    distance = np.array([USUAL, *(_distance(spec, each) for each in known)])
    weight = np.exp(distance.min() - distance)
    mean = float(np.exp((weight * np.log(passes)).sum() / weight.sum()))
    return float(min(spec.max_steps, mean * spec.pairs / spec.train.batch_pairs))


def finished(store: Store) -> list[Finished]:
    """The training runs that lie finished in a store, the diverged ones left out.

    A run that cannot be read is left out too: the sweep will say what is wrong with it.
    """
    found = []
    for path in sorted((store.root / "train").glob("[!.]*/manifest.json")):
        try:
            about = json.loads((path.parent / "spec.json").read_text(encoding="utf-8"))
            summary = json.loads((path.parent / "summary.json").read_text(encoding="utf-8"))
            made = json.loads((path.parent / "provenance.json").read_text(encoding="utf-8"))
            spec = RunSpec.model_validate(about["spec"])
            if summary["state"] == "diverged":
                continue
            steps, flop = spent_steps(summary), float(summary["flop_spent"])
            seconds, machine = float(summary["seconds"]), (made["machine"], made["cores"])
            began = str(made["started"])
        except (OSError, ValueError, KeyError, TypeError, ZeroDivisionError):
            continue
        place = (spec.weights, spec.pairs, spec.lr, setting(spec))
        found.append(Finished(*place, steps, flop, seconds, began, machine, spec))
    return found


def tuned(record: dict[str, Any]) -> list[Finished]:
    """The runs in a record of `repro tune`."""
    train, weights = record["train"], record["weights"]
    setting = (
        train["batch_pairs"], train["negatives"]["count"], bool(train["negatives"]["in_batch"])
    )  # fmt: skip
    return [
        Finished(weights[row["model"]], row["pairs"], row["rate"], setting, row["spent"])
        for row in record["runs"]
        if row["spent"] and row["state"] != "diverged"
    ]


def setting(spec: RunSpec) -> tuple[int, int, bool]:
    """What of a run's settings its number of passes may hang on."""
    train = spec.train
    return train.batch_pairs, train.negatives.count, train.negatives.in_batch


def spent_steps(summary: dict[str, Any]) -> float:
    """The steps that a finished run took in all, from its summary."""
    return float(summary["steps"] * summary["flop_spent"] / summary["flop"])


def _distance(spec: RunSpec, other: Finished) -> float:
    apart = np.log2(spec.pairs / other.pairs) ** 2 + np.log2(spec.lr / other.lr) ** 2
    apart += ANOTHER_MODEL * (spec.weights != other.weights)
    return float(apart + ANOTHER_SETTING * (setting(spec) != other.setting))


def _n_readings(
    places: Iterable[int] | NDArray[np.int64],
    step_flop: float,
    reading_flop: float,
    curve: CurveParams,
) -> int:
    """How many of the places (steps) are read, the last one in any case."""
    steps = [int(step) for step in places]
    count = before = 0
    for step in steps:
        trained = (step - before) * step_flop
        if step == steps[-1] or worth_reading(trained, reading_flop, curve):
            count, before = count + 1, step
    return count
