"""The N x D grid: every model on every data size, and its table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import pandas as pd
from pydantic import Field, field_validator

from repro.params import Params

if TYPE_CHECKING:
    from repro.experiments.runs import Runs, Trained


class GridParams(Params):
    """Which cells are run."""

    models: Annotated[list[str], Field(min_length=1)]
    sizes: Annotated[list[Annotated[int, Field(ge=2)]], Field(min_length=1)]  # D, pairs
    seeds: Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)] = [
        0
    ]  # added to the run seed

    @field_validator("models", "sizes", "seeds")
    @classmethod
    def _distinct(cls, values: list[Any]) -> list[Any]:
        if len(set(values)) != len(values):
            raise ValueError("a value stands twice\n  remedy: keep one of them")
        return values


def runs(plan: Runs) -> list[Trained]:
    """The training runs of the grid."""
    grid = plan.profile.grid
    return [
        plan.trained(model, pairs=pairs, seed=seed)
        for model in grid.models
        for pairs in grid.sizes
        for seed in grid.seeds
    ]


def table(plan: Runs) -> pd.DataFrame:
    """One row a finished run: sizes, settings, MAEL, S, FLOPs, state and ranking metrics."""
    rows = [plan.row(run) for run in runs(plan)]
    return pd.DataFrame([row for row in rows if row is not None])


def curves(plan: Runs) -> pd.DataFrame:
    """The validation curves of the finished runs, one row a reading."""
    frames = [plan.curve(run) for run in runs(plan)]
    found = [frame for frame in frames if frame is not None]
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame()
