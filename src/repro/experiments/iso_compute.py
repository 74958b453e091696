"""Lines of equal compute over the law and over the measured cells: larger models, fewer pairs.

Compute is the FLOPs really spent up to the minimum.  The position of a minimum is noisy (a third and
more between seeds) while its depth is not, so a model's compute is taken from a line through all its
cells: a level of its own and one power of D for all models.  Losses are the measured ones,
interpolated (in logarithms) between neighbouring sizes; no law of N enters the measured lines.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import t as student

from repro.experiments.answer import part
from repro.experiments.regime import cells
from repro.experiments.steps_law import exact
from repro.laws.fit import Fit

Array = NDArray[np.float64]
LINES = 4  # budgets that are drawn


@dataclass(frozen=True)
class Compute:
    """log FLOP of a run of each model: level + slope x log D.

    n: parameters, rising; level (models,); error (models,) of a level; df: degrees of freedom.
    """

    models: tuple[str, ...]
    n: Array
    level: Array
    slope: float
    error: Array
    df: int

    def pairs(self, model: int, flop: float | Array) -> Array:
        """D at which a run of the model takes `flop`."""
        return np.asarray(np.exp((np.log(flop) - self.level[model]) / self.slope))

    def flop(self, model: int, d: float | Array) -> Array:
        """FLOPs of a run of the model on d pairs."""
        return np.asarray(np.exp(self.level[model] + self.slope * np.log(d)))

    def apart(self, one: int, two: int) -> float:
        """Standard error of the log of the ratio of two models' compute on the same pairs."""
        return float(np.hypot(self.error[one], self.error[two]))


def compute(table: pd.DataFrame, n: str = "n_encoder") -> Compute | None:
    """The models' compute; None where it does not grow with D, or where nothing tells its error."""
    used = exact(table).groupby(["model", "d"], as_index=False)[["flop", n]].agg(_geometric)
    size = used.groupby("model")[n].first().sort_values()
    if not len(used):
        return None
    place = used["model"].map({name: i for i, name in enumerate(size.index)}).to_numpy()
    own = np.eye(len(size))[place]
    y, x = np.log(used["flop"].to_numpy(float)), np.log(used["d"].to_numpy(float))
    design = np.column_stack([own, x])
    df = len(y) - design.shape[1]
    if df < 1 or np.linalg.matrix_rank(design) < design.shape[1]:
        return None
    found = np.linalg.lstsq(design, y, rcond=None)[0]
    if found[-1] <= 0:
        return None
    spread = float(np.sum((y - design @ found) ** 2)) / df
    error = np.sqrt(spread / own.sum(axis=0))
    return Compute(
        tuple(map(str, size.index)), size.to_numpy(float), found[:-1], float(found[-1]), error, df
    )


def measured(
    table: pd.DataFrame, found: Compute, n: str = "n_encoder"
) -> list[tuple[Array, Array]]:
    """Sizes (rising) and log MAEL of each model of `found`, where there are exact runs."""
    grid = cells(table, n)
    out = []
    for model in found.models:
        line = grid.loc[model].dropna()
        out.append((line.index.to_numpy(float), np.log(line.to_numpy(float))))
    return out


def through_data(line: tuple[Array, Array], found: Compute) -> float:
    """d log MAEL / d log FLOP of one model as its pairs grow; line: from `measured`, two sizes or more."""
    return float(np.polyfit(np.log(line[0]), line[1], 1)[0]) / found.slope


def contrasts(table: pd.DataFrame, found: Compute, n: str = "n_encoder") -> list[dict[str, Any]]:
    """Each model against the next larger one at equal compute: a row a pair of neighbours.

    difference: mean of log MAEL, larger less smaller, over the measured sizes of the larger model
    whose equal-compute size lies inside the smaller one's; its 95 % interval holds the scatter over
    these cells and the error of the compute.  Negative: the larger model is better.  p_rises: how
    likely such a rise is if the larger model is no worse (one-sided); None where not told.
    """
    lines, rows = measured(table, found, n), []
    for small, large in pairwise(range(len(found.models))):
        own, losses = lines[large]
        d, known = lines[small]
        row = {"small": found.models[small], "large": found.models[large]}
        if len(d) < 2 or not len(own):
            rows.append({**row, "cells": 0, "difference": part(None), "p_rises": None})
            continue
        same = found.pairs(small, found.flop(large, own))
        inside = (same >= d.min() * (1 - 1e-9)) & (same <= d.max() * (1 + 1e-9))
        difference = losses[inside] - np.interp(np.log(same[inside]), np.log(d), known)
        shift = abs(through_data(lines[small], found)) * found.apart(small, large)
        rows.append({**row, "cells": int(inside.sum()), **_mean(difference, shift, found.df)})
    return rows


def lines(
    table: pd.DataFrame,
    found: Compute,
    loss: Fit,
    flop: Fit,
    n: str = "n_encoder",
) -> list[dict[str, Any]]:
    """Lines of equal compute: a row a budget with `law` and `cells`, lists of {model, n, d, loss}.

    loss: a law of MAEL; flop: the steps law fitted to FLOP over N.  Only where D lies between the
    smallest and largest measured size.
    """
    curves = measured(table, found, n)
    low, high = float(table["d"].min()), float(table["d"].max())
    least, most = found.flop(0, low), found.flop(len(found.models) - 1, high)
    budgets = np.geomspace(float(least), float(most), LINES + 2)[1:-1]
    grid = np.geomspace(found.n[0], found.n[-1], 60)
    k, a, b = (flop.parameters[name] for name in ("k", "a", "b"))
    out = []
    for budget in budgets:
        d = (budget / (k * grid ** (1 - a))) ** (1 / b)
        kept = (d >= low) & (d <= high)
        law = [
            {"n": float(x), "d": float(y), "loss": float(z)}
            for x, y, z in zip(grid[kept], d[kept], loss.predict(grid, d)[kept], strict=True)
        ]
        points = []
        for model, (sizes, known) in enumerate(curves):
            at = float(found.pairs(model, budget))
            if len(sizes) and sizes.min() <= at <= sizes.max():
                value = float(np.exp(np.interp(np.log(at), np.log(sizes), known)))
                row = {"model": found.models[model], "n": float(found.n[model])}
                points.append(row | {"d": at, "loss": value})
        out.append({"flop": float(budget), "law": law, "cells": points})
    return out


def _geometric(values: pd.Series) -> float:
    return float(np.exp(np.log(values.astype(float)).mean()))


def _mean(values: Array, shift: float, df: int) -> dict[str, Any]:
    """Mean with a t-interval: scatter of the values and an error `shift` that they share (Welch)."""
    mean = float(values.mean()) if len(values) else None
    if mean is None or len(values) < 2:
        return {"difference": part(mean, endless=mean is not None), "p_rises": None}
    shares = np.array([values.var(ddof=1) / len(values), shift**2])
    total = max(float(shares.sum()), 1e-30)
    welch = total**2 / float((shares**2 / np.array([len(values) - 1.0, float(df)])).sum() + 1e-70)
    half = float(student.ppf(0.975, welch)) * total**0.5
    p_rises = float(student.sf(mean / total**0.5, welch))
    return {"difference": part(mean, (mean - half, mean + half)), "p_rises": p_rises}
