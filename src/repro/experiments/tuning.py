"""Learning rates, chosen on the tuning split: the runs of the ladders, and the record of the choice."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from repro.data.dataset import Dataset
from repro.data.tuning import tuning_view
from repro.errors import UserError, nearest
from repro.experiments import effort, lr_choice
from repro.experiments.estimate import Estimator
from repro.experiments.lr_choice import Choice, Ladder
from repro.experiments.profile import Profile
from repro.experiments.runs import Runs
from repro.provenance import surroundings
from repro.store import Store
from repro.train.loop import MOST_LR
from repro.work.queue import Task

AROUND = (0.5, 1.0, 2.0)  # the first rungs, over the profile's rate
COLUMNS = [
    "model",
    "rate",
    "pairs",
    "seed",
    "mael",
    "zero_shot",
    "steps",
    "at_first",
    "spent",
    "state",
    "run",
]

# Makes what is missing of some tasks; returns label -> reason of those that failed.
Sweep = Callable[[list[Task]], dict[str, str]]


@dataclass(frozen=True)
class TuneParams:
    """What is asked for; an empty tuple leaves the choice to `Tuning`."""

    models: tuple[str, ...] = ()
    every: bool = False  # tune every model of the grid
    rates: tuple[float, ...] = ()  # these alone; the ladder does not grow
    pairs: tuple[int, ...] = ()
    seeds: int = 3


class Tuning:
    """The ladders of one profile on the tuning split of one dataset, over one store."""

    def __init__(
        self,
        profile: Profile,
        dataset: Dataset,
        store: Store,
        asked: TuneParams | None = None,
        estimator: Estimator | None = None,
    ) -> None:
        asked = asked or TuneParams()
        self.profile, self.store = profile, store
        self.view = tuning_view(dataset)
        self.runs = Runs(profile, self.view, store, estimator)
        self.family = self._family()
        self.models = self._models(asked)
        self.sizes = self._sizes(asked.pairs)
        decay = profile.train.weight_decay
        below = min(MOST_LR, 1 / decay) if decay else MOST_LR
        for rate in asked.rates:
            if not 0 < rate < below:
                raise UserError(
                    f"{rate:g} is no learning rate here",
                    where="--rates",
                    remedy=f"rates are positive and below {below:g}",
                )
        if asked.seeds < 2:
            raise UserError(
                f"{asked.seeds} seed tells no seed sd", where="--seeds", remedy="use 2 or more"
            )
        self.ladders = {
            name: Ladder(
                asked.rates or self._around(profile.models[name].lr, below),
                self.sizes, asked.seeds, extend=not asked.rates, below=below,
            )
            for name in self.models
        }  # fmt: skip

    def run(self, sweep: Sweep) -> None:
        """Run the ladders, round by round, until every choice can be made."""
        while tasks := self._missing():
            failed = sweep(list(tasks.values()))
            if failed:
                label, reason = next(iter(failed.items()))
                raise UserError(
                    f"{len(failed)} runs of the ladders failed: {label}: {reason.splitlines()[0]}",
                    remedy="the same command goes on with the others",
                )

    def table(self, model: str) -> pd.DataFrame:
        """The finished runs of a model's ladder, in the columns of `lr_choice` and more."""
        return self._replay(model)[0]

    def choices(self) -> dict[str, Choice]:
        """What the rule picks for each tuned model."""
        return {name: lr_choice.choose(self.table(name)) for name in self.models}

    def record(self) -> dict[str, Any]:
        """Everything that the choice rests on, as plain data."""
        choices = self.choices()
        width = {
            name: self.runs.source(self.profile.models[name].weights).width
            for name in {*self.family, *self.models}
        }
        others = [name for name in self.family if name not in choices]
        predicted, rule = lr_choice.predict(
            {name: choice.rate for name, choice in choices.items()}, width, others
        )
        return {
            "rule": str(lr_choice.__doc__).strip(),
            "sizes": list(self.sizes),
            "evaluated": len(self.view.evaluation("validation").pairs),
            "digests": self.view.digests,
            "weights": {
                name: self.runs.source(self.profile.models[name].weights).digest
                for name in self.models
            },
            "train": self.profile.train.model_dump(mode="json"),
            "chosen": {name: choice.as_dict() for name, choice in choices.items()},
            "predicted": predicted,
            "prediction": rule if others else "",
            "runs": [
                row for name in self.models for row in self.table(name).to_dict(orient="records")
            ],
            "provenance": surroundings(),
        }

    def _missing(self) -> dict[tuple[str, float, int, int], Task]:
        """The tasks of this round that are not in the store, models side by side."""
        return {
            (name, *cell): self._task(name, *cell)
            for name in self.models
            for cell in self._replay(name)[1]
            if self._row(name, *cell) is None
        }

    def _replay(self, model: str) -> tuple[pd.DataFrame, list[tuple[float, int, int]]]:
        """The runs of the rounds that are complete, and the cells of the first that is not.

        Rounds are gone through from the start, so that a tune that was killed asks for the same runs.
        """
        rows: list[dict[str, Any]] = []
        while True:
            table = pd.DataFrame(rows, columns=COLUMNS)
            cells = self.ladders[model].missing(table)
            found = [row for cell in cells if (row := self._row(model, *cell)) is not None]
            if not cells or len(found) < len(cells):
                return table, cells
            rows += found

    @functools.cache  # noqa: B019 (one object a command)
    def _task(self, model: str, rate: float, pairs: int, seed: int) -> Task:
        return self.runs.trained(model, pairs=pairs, seed=seed, lr=rate, ranked=False).train

    def _row(self, model: str, rate: float, pairs: int, seed: int) -> dict[str, Any] | None:
        task = self._task(model, rate, pairs, seed)
        summary = self.runs.summary(task)
        if summary is None:
            return None
        spent = effort.spent_steps(summary) if summary.get("flop") else None
        own = {"model": model, "rate": rate, "pairs": pairs, "seed": seed}
        kept = {
            name: summary.get(name) for name in ("mael", "zero_shot", "steps", "at_first", "state")
        }
        return {**own, **kept, "spent": spent, "run": self.store.key("train", task.spec)}

    def _family(self) -> list[str]:
        """The models of the grid, smallest first."""
        size = {
            name: self.runs.size(self.profile.models[name].weights).encoder
            for name in self.profile.grid.models
        }
        return sorted(size, key=lambda name: size[name])

    def _models(self, asked: TuneParams) -> list[str]:
        for name in asked.models:
            if name not in self.profile.models:
                raise UserError(
                    f"the profile has no model `{name}`",
                    where="--models",
                    remedy=nearest(name, list(self.profile.models)),
                )
        if asked.models:
            return list(dict.fromkeys(asked.models))
        if asked.every:
            return self.family
        return list(dict.fromkeys([self.family[0], self.family[len(self.family) // 2]]))

    def _sizes(self, asked: tuple[int, ...]) -> tuple[int, ...]:
        """The smallest size of the grid and its middle one, or the largest that there is room for."""
        there, batch = len(self.view.splits.train), self.profile.train.batch_pairs
        for pairs in asked:
            if not batch <= pairs <= there:
                raise UserError(
                    f"a ladder on {pairs:,} pairs is asked for",
                    where="--pairs",
                    remedy=f"use {batch:,} (the batch) to {there:,} (those of the tuning split "
                    "that are not near its evaluation set)",
                )
        if asked:
            return tuple(sorted(set(asked)))
        sizes = sorted(self.profile.grid.sizes)
        if sizes[0] > there:
            raise UserError(
                f"the smallest data size is {sizes[0]:,} pairs; the tuning split of "
                f"{self.view.params.name} has {there:,} to train on",
                remedy="raise splits.tuning in the dataset file, or name --pairs",
            )
        middle = max(size for size in sizes[: (len(sizes) + 1) // 2] if size <= there)
        if middle == sizes[0] and len(sizes) > 1:
            middle = min(sizes[1], there)
        return tuple(sorted({sizes[0], middle}))

    @staticmethod
    def _around(lr: float, below: float) -> tuple[float, ...]:
        return tuple(lr * factor for factor in AROUND if lr * factor < below)
