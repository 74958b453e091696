"""Pre-train or annotate?  The runs of notebook 08, and their table (answers: `transfer_answers`).

Checkpoints of one model's pre-training (p steps) are fine-tuned on f labelled pairs of one target or
several, each a dataset with training pairs and a validation set of its own; f = 0 is the start itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import pandas as pd
from pydantic import Field, field_validator

from repro.errors import UserError
from repro.experiments import section
from repro.experiments.transfer_budget import PRICES
from repro.params import Params, distinct, rising
from repro.train.loop import TrainParams

if TYPE_CHECKING:
    from repro.experiments.runs import Runs, Trained

COLUMNS = ["target", "p", "f", "loss", "state", "seed", "steps", "weights"]


class TransferParams(Params):
    """Which checkpoints are fine-tuned, on how many pairs of which targets."""

    model: str  # whose learning rate the runs take
    checkpoints: Annotated[dict[str, Annotated[int, Field(ge=1)]], Field(min_length=1)]  # p, steps
    sizes: Annotated[
        list[Annotated[int, Field(ge=2)]], Field(min_length=1)
    ]  # f, pairs; 0 comes free
    datasets: list[str] = []  # targets beside the study's own dataset: files of params/datasets/
    seeds: Annotated[int, Field(ge=1, le=20)] = 1
    # Price of a labelled pair, in pre-training steps.
    prices: Annotated[list[Annotated[float, Field(gt=0, le=1e9)]], Field(min_length=1)] = list(
        PRICES
    )

    _rising = field_validator("sizes", "prices")(rising)
    _once = field_validator("datasets")(distinct)

    @field_validator("checkpoints")
    @classmethod
    def _distinct(cls, values: dict[str, int]) -> dict[str, int]:
        if len(set(values.values())) != len(values):
            raise ValueError("two checkpoints have the same number of steps\n  remedy: keep one")
        return values

    def check(self, rates: Mapping[str, float], train: TrainParams) -> None:
        """Refuse what the profile's models, name -> learning rate, or its training cannot run."""
        section.check("transfer", {"model": [self.model]}, self.sizes, rates, train)


def plans(plan: Runs) -> list[Runs]:
    """The runs on each target: the study's own dataset first, then the others that are asked for."""
    asked = plan.profile.transfer
    found = {plan.dataset.params.name: plan}
    for name in asked.datasets if asked else []:
        other = plan.on(name)
        found.setdefault(other.dataset.params.name, other)
    return list(found.values())


def runs(plans: Sequence[Runs]) -> list[Trained]:
    """Every checkpoint on every size of every target; plans: one a target, the study's own first.

    Raises `UserError` where a size is more than a target has to train on, where weights cannot be
    read, and where a checkpoint is not of the model's size.
    """
    asked = plans[0].profile.transfer
    if asked is None:
        return []
    _check(plans, asked)
    found = []
    for plan in plans:
        for weights, pairs, seed in _cells(asked):
            run = plan.trained(asked.model, pairs=pairs, weights=weights, seed=seed, ranked=False)
            if plan is not plans[0]:
                label = f"{run.train.label} on {plan.dataset.params.name}"
                run = replace(run, train=replace(run.train, label=label))
            found.append(run)
    return found


def _cells(asked: TransferParams) -> list[tuple[str, int, int]]:
    return [(w, d, s) for w in asked.checkpoints for d in asked.sizes for s in range(asked.seeds)]


def _check(plans: Sequence[Runs], asked: TransferParams) -> None:
    plan = plans[0]
    own = plan.size(plan.profile.models[asked.model].weights).encoder
    for weights in asked.checkpoints:
        count = plan.size(weights).encoder
        if count != own:
            raise UserError(
                f"transfer.checkpoints: {weights} has {count:,} encoder parameters, {asked.model} has "
                f"{own:,}",
                remedy="name checkpoints of that model: else the size moves with the steps",
            )
    for plan in plans:
        available = len(plan.dataset.splits.train)
        if max(asked.sizes) > available:
            raise UserError(
                f"transfer.sizes asks for {max(asked.sizes):,} pairs, but "
                f"{plan.dataset.params.name} has {available:,} to train on",
                remedy=f"keep sizes at or below {available:,}, or leave that dataset out",
            )


def table(plans: Sequence[Runs]) -> pd.DataFrame:
    """One row a finished run (f > 0), and one a checkpoint and target for the start (f = 0).

    Columns: target, p (pre-training steps), f (pairs), loss (nats: MAEL, at f = 0 that of the start on
    the same validation pairs), state (at f = 0 `exact`), seed, steps (to the minimum), weights.
    """
    asked = plans[0].profile.transfer
    if asked is None:
        return pd.DataFrame(columns=COLUMNS)
    rows: list[dict[str, Any]] = []
    started: set[tuple[str, str]] = set()
    for run, plan in zip(runs(plans), _plan_of_each(plans, asked), strict=True):
        found = plan.row(run)
        if found is None:
            continue
        weights, target = found["weights"], plan.dataset.params.name
        row = {"target": target, "p": asked.checkpoints[weights], "weights": weights}
        if (target, weights) not in started:
            started.add((target, weights))
            start = {"f": 0, "loss": found["zero_shot"], "state": "exact", "seed": run.seed}
            rows.append({**row, **start, "steps": 0})
        more = {"f": run.pairs, "loss": found["mael"], "state": found["state"], "seed": run.seed}
        rows.append({**row, **more, "steps": found["steps"]})
    return pd.DataFrame(rows, columns=COLUMNS)


def _plan_of_each(plans: Sequence[Runs], asked: TransferParams) -> list[Runs]:
    return [plan for plan in plans for _ in _cells(asked)]
