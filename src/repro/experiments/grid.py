"""The N x D grid: every model on every data size, an anti-diagonal seeded again, and its table."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import pandas as pd
from pydantic import Field, field_validator, model_validator

from repro.errors import UserError
from repro.params import Params, distinct

if TYPE_CHECKING:
    from repro.experiments.replicates import PairLosses
    from repro.experiments.runs import Runs, Trained


LEAST, MOST = 160, 10**9  # pairs: the least size of `sizes: auto`, and no limit


class GridParams(Params):
    """Which cells are run."""

    models: Annotated[list[str], Field(min_length=1)]
    # D, pairs; `auto`, or `auto from 320 to 5120`: doublings, as many as the data support (`settled`).
    sizes: Annotated[list[Annotated[int, Field(ge=2)]], Field(min_length=1)]
    # `sizes: auto`: no size above this one, and the size that is listed is the least; 0: as listed.
    doubled_to: Annotated[int, Field(exclude=True, ge=0)] = 0
    seeds: Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)] = [
        0
    ]  # added to the run seed
    # Extra seeds, on an anti-diagonal alone (one cell a model): they tell the noise of a seed.
    reseeds: Annotated[int, Field(ge=0, le=20)] = 0

    _distinct = field_validator("models", "sizes", "seeds")(distinct)

    @model_validator(mode="before")
    @classmethod
    def _auto(cls, values: Any) -> Any:
        if not isinstance(values, dict) or not isinstance(values.get("sizes"), str):
            return values
        found = re.fullmatch(r"auto(?: from ([0-9]{1,9}))?(?: to ([0-9]{1,9}))?", values["sizes"])
        least, most = (int(found[1] or LEAST), int(found[2] or MOST)) if found else (1, 0)
        if least > most:
            raise ValueError(
                f"sizes: {values['sizes']!r:.40} is no list of data sizes\n"
                f"  remedy: write a list, `auto`, or `auto from {LEAST} to {32 * LEAST}`"
            )
        return {**values, "sizes": [least], "doubled_to": most}

    def settled(self, available: int) -> GridParams:
        """The grid with the sizes of `auto`: doublings of the least, up to `available` pairs."""
        if not self.doubled_to:
            return self
        least, most = self.sizes[0], min(available, self.doubled_to)
        if least > most:
            raise UserError(
                f"grid.sizes starts from {least:,} pairs, but there are {available:,} to train on",
                remedy=f"write `sizes: auto from {available // 4}` or less, or add pairs",
            )
        sizes = [least << k for k in range((most // least).bit_length())]
        return self.model_copy(update={"sizes": sizes})

    def more_seeds(self) -> list[int]:
        """The seeds of the re-seeded cells, beyond those of every cell."""
        return [max(self.seeds) + 1 + k for k in range(self.reseeds)]

    def seeding(self) -> str:
        """How many seeds each cell has, in words."""
        said = f"{len(self.seeds)} seed{'s' if len(self.seeds) > 1 else ''} a cell"
        return said + (f" and {self.reseeds} more on an anti-diagonal" if self.reseeds else "")


def anti_diagonal(models: Sequence[str], sizes: Sequence[int]) -> list[tuple[str, int]]:
    """One cell a model: the smallest on the largest D, and so on to the largest on the smallest D.

    models: smallest first.  Where there are not as many sizes as models, each model takes the size
    nearest the straight line between these corners in (rank of N, rank of D); of two equally near,
    the smaller.  A single model takes the largest size.
    """
    rising = sorted(sizes)
    steps, last = max(len(models) - 1, 1), len(rising) - 1
    ranks = [math.ceil(last * (steps - i) / steps - 0.5) for i in range(len(models))]
    return [(model, rising[rank]) for model, rank in zip(models, ranks, strict=True)]


def runs(plan: Runs) -> list[Trained]:
    """The training runs of the grid: every cell, then the re-seeded ones."""
    grid = plan.profile.grid
    cells = [
        (model, pairs, seed) for model in grid.models for pairs in grid.sizes for seed in grid.seeds
    ]
    if grid.reseeds:
        size = {m: plan.size(plan.profile.models[m].weights).encoder for m in grid.models}
        chosen = anti_diagonal(sorted(grid.models, key=lambda m: size[m]), grid.sizes)
        cells += [(*cell, seed) for cell in chosen for seed in grid.more_seeds()]
    return [plan.trained(model, pairs=pairs, seed=seed) for model, pairs, seed in cells]


def table(plan: Runs) -> pd.DataFrame:
    """One row a finished run: sizes, settings, MAEL, S, FLOPs, state and ranking metrics."""
    rows = [plan.row(run) for run in runs(plan)]
    return pd.DataFrame([row for row in rows if row is not None])


def curves(plan: Runs) -> pd.DataFrame:
    """The validation curves of the finished runs, one row a reading."""
    frames = [plan.curve(run) for run in runs(plan)]
    found = [frame for frame in frames if frame is not None]
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame()


def pair_losses(plan: Runs) -> PairLosses:
    """Run (model, D, seed) -> loss of each validation pair at its minimum, of the finished runs."""
    found = {(run.model, run.pairs, run.seed): plan.pair_losses(run) for run in runs(plan)}
    return {where: losses for where, losses in found.items() if losses is not None}
