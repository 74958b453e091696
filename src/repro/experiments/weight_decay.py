"""Does weight decay lower the floor?  The runs of notebook 07, and their tables.

A scan over decays at several data sizes finds the best one for each, under one or both conventions of
which tensors are decayed; then the best one of the first convention against none, under several seeds,
in domain and on every target; and the product law on a small grid at the best decays.
The runs after the scan depend on its outcome, so that they are known only when it is there.
Answers: `weight_decay_answers`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field, ValidationInfo, field_validator, model_validator

from repro.experiments import section
from repro.experiments.replicates import NOT_EXACT
from repro.params import Params, distinct, rising
from repro.train.loop import TrainParams

if TYPE_CHECKING:
    from repro.experiments.runs import Runs, Trained

Array = NDArray[np.float64]


class DecayParams(Params):
    """Which decays are scanned, where the best is compared with none, and where the law is refitted."""

    model: str
    decays: Annotated[list[Annotated[float, Field(gt=0, le=100_000)]], Field(min_length=3)]
    # Conventions under which it is scanned (`TrainParams.decayed`); the first is used after the scan.
    decayed: Annotated[list[Literal["matrices", "all"]], Field(min_length=1)] = ["matrices"]
    sizes: Annotated[list[Annotated[int, Field(ge=2)]], Field(min_length=1)]  # D, pairs
    compare: Annotated[list[Annotated[int, Field(ge=2)]], Field(min_length=1)]  # D, of the sizes
    seeds: Annotated[int, Field(ge=2, le=20)] = 3  # of the comparison
    law_models: list[str] = []  # the grid of the refitted law; none: not refitted
    law_sizes: list[Annotated[int, Field(ge=2)]] = []

    _rising = field_validator("decays", "sizes", "compare", "law_sizes")(rising)
    _distinct = field_validator("law_models", "decayed")(distinct)

    @field_validator("compare")
    @classmethod
    def _scanned(cls, values: list[int], info: ValidationInfo) -> list[int]:
        lacking = set(values) - set(info.data.get("sizes", values))
        if lacking:
            raise ValueError(f"{min(lacking)} is not scanned\n  remedy: choose among `sizes`")
        return values

    @model_validator(mode="after")
    def _both_or_none(self) -> DecayParams:
        if bool(self.law_models) != bool(self.law_sizes):
            raise ValueError("law_models and law_sizes go together\n  remedy: give both, or none")
        return self

    def check(self, rates: Mapping[str, float], train: TrainParams) -> None:
        """Refuse what the profile's models, name -> learning rate, or its training cannot run."""
        models = {"model": [self.model], "law_models": self.law_models}
        sizes = [*self.sizes, *self.law_sizes]
        section.check("weight_decay", models, sizes, rates, train)
        if train.decayed not in self.decayed:
            raise ValueError(
                f"train.decayed is {train.decayed}, which weight_decay.decayed does not scan\n"
                f"  remedy: name {train.decayed} there too"
            )
        largest = max(self.decays)
        if rates[self.model] * largest >= 1:
            raise ValueError(
                f"weight_decay.decays: lr x {largest:g} of {self.model} is 1 or more\n"
                "  remedy: keep the product under 1"
            )

    def later(self) -> str:
        """The runs that follow from the scan, in words."""
        n_law = 2 * len(self.law_models) * len(self.law_sizes)
        return (
            f"after the scan of decays: {2 * self.seeds * len(self.compare)} runs with and without the best "
            f"one, ranked here and on each target, and {n_law} of the law"
        )


def runs(plan: Runs) -> list[Trained]:
    """The runs of the experiment that are known by now."""
    return [run for part in parts(plan).values() for run in part]


def parts(plan: Runs) -> dict[str, list[Trained]]:
    """The runs by part: scan (decay 0 is the grid's own cell), then what follows from it: compared, law.

    Nothing follows where no run of the scan reached its minimum, and no comparison at such a size.
    """
    asked = plan.profile.weight_decay
    if asked is None:
        return {}
    first, *others = asked.decayed
    scan = [
        plan.trained(asked.model, pairs=d, train=_train(plan, value, first), ranked=False)
        for d in asked.sizes
        for value in (0.0, *asked.decays)
    ]
    rows = [plan.row(run) for run in scan]  # what follows rests on the first convention alone
    scan += [
        plan.trained(asked.model, pairs=d, train=_train(plan, value, other), ranked=False)
        for other in others
        for d in asked.sizes
        for value in asked.decays
    ]
    if any(row is None for row in rows):
        return {"scan": scan}
    best = optima(pd.DataFrame(rows))
    return {"scan": scan, "compared": _compared(plan, asked, best), "law": _law(plan, asked, best)}


def stand_ins(plan: Runs) -> list[Trained]:
    """Runs that cost about as much as those to come, while the scan has holes: its middle decay is best."""
    asked = plan.profile.weight_decay
    if asked is None or "compared" in parts(plan):
        return []
    best = dict.fromkeys(asked.sizes, asked.decays[len(asked.decays) // 2])
    return [*_compared(plan, asked, best), *_law(plan, asked, best)]


def _compared(plan: Runs, asked: DecayParams, best: dict[int, float]) -> list[Trained]:
    return [
        plan.trained(asked.model, pairs=d, train=train, seed=seed, targets=True)
        for d in asked.compare
        if d in best
        for train in (_train(plan, decay, asked.decayed[0]) for decay in (0.0, best[d]))
        for seed in range(asked.seeds)
    ]


def _law(plan: Runs, asked: DecayParams, best: dict[int, float]) -> list[Trained]:
    """The grid of the refitted law; lr x decay x D is that of the scan's optima, in the mean."""
    if not best:
        return []
    lr = plan.profile.models[asked.model].lr
    product = float(np.exp(np.mean([np.log(lr * decay * d) for d, decay in best.items()])))
    found = []
    for model in asked.law_models:
        rate = plan.profile.models[model].lr
        for d in asked.law_sizes:
            for decay in (0.0, float(f"{product / (rate * d):.3g}")):
                train = _train(plan, decay, asked.decayed[0])
                found.append(plan.trained(model, pairs=d, train=train, ranked=False))
    return found


def _train(plan: Runs, decay: float, convention: str) -> dict[str, Any]:
    """The fields of `TrainParams` of a run; one without decay knows no convention: it is the grid's."""
    own = decay == 0 or convention == plan.profile.train.decayed
    return {"weight_decay": decay} if own else {"weight_decay": decay, "decayed": convention}


def table(plan: Runs) -> pd.DataFrame:
    """One row a finished run, see `Runs.row`; with the part (scan, compared, law) it belongs to."""
    rows = [
        {"part": part, **row}
        for part, own in parts(plan).items()
        for run in own
        if (row := plan.row(run)) is not None
    ]
    return pd.DataFrame(rows)


def targets(plan: Runs) -> pd.DataFrame:
    """One row a compared run and target: d, seed, weight_decay, target and the metrics there."""
    rows = [
        {"d": run.pairs, "seed": run.seed, "weight_decay": run.spec.train.weight_decay, **row}
        for run in parts(plan).get("compared", [])
        for row in plan.target_rows(run) or []
    ]
    return pd.DataFrame(rows)


def pair_losses(plan: Runs) -> dict[tuple[str, float, int], Array]:
    """(convention, decay, D) -> loss of each validation pair at the minimum of that run of the scan."""
    return {
        (run.spec.train.decayed, run.spec.train.weight_decay, run.pairs): losses
        for run in parts(plan).get("scan", [])
        if (losses := plan.pair_losses(run)) is not None
    }


def optima(table: pd.DataFrame) -> dict[int, float]:
    """D -> the decay of the scan with the lowest MAEL, where a run with decay reached its minimum."""
    usable = table[~table["state"].isin(NOT_EXACT) & (table["weight_decay"] > 0)]
    return {
        int(str(d)): float(own["weight_decay"].iloc[int(own["mael"].to_numpy().argmin())])
        for d, own in usable.groupby("d")
    }
