"""Local slopes of the loss in D, and the range of D where they agree: the power-law regime.

A loss capped by chance (few pairs) or by what the start already knows has slopes that grow with D.
A power law has one slope.  The rule, fixed before any result: the longest range of at least three
sizes whose local slopes are positive and agree within a factor of two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import t as student

FACTOR = 2.0  # largest slope over smallest, inside the regime
LEAST_SIZES = 3  # two sizes have one slope, which agrees with itself


@dataclass(frozen=True)
class Regime:
    """The data sizes (rising) between which the loss is a power law in D; empty where it is none."""

    sizes: tuple[int, ...]
    all_sizes: tuple[int, ...]
    reason: str

    def __bool__(self) -> bool:
        return bool(self.sizes)

    @property
    def whole(self) -> bool:
        """Whether the regime covers every size of the grid."""
        return self.sizes == self.all_sizes

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {
            "sizes": list(self.sizes),
            "all_sizes": list(self.all_sizes),
            "whole": self.whole,
            "reason": self.reason,
        }


def cells(table: pd.DataFrame, n: str = "n_encoder") -> pd.DataFrame:
    """Geometric mean of MAEL over the seeds of each cell: models (index, by size) x D (columns).

    Runs that diverged or are only bounds (censored) are left out; a cell without others is NaN.
    """
    exact = table[~table["state"].isin(["censored", "diverged"])]
    logs = exact.assign(log=np.log(exact["mael"].astype(float)))
    order = table.groupby("model")[n].first().sort_values().index
    grid = logs.pivot_table(index="model", columns="d", values="log", aggfunc="mean")
    return grid.reindex(index=order, columns=sorted(table["d"].unique())).map(np.exp)


def local_slopes(table: pd.DataFrame, n: str = "n_encoder") -> pd.DataFrame:
    """-d log MAEL / d log D between neighbouring sizes: a row each, rising.

    Columns: d_low, d_high, slope (mean over models), low, high (95 % t-interval over models, NaN for
    one model), models (how many), and one column `model:NAME` for each.
    """
    grid = cells(table, n)
    sizes = np.array(grid.columns, dtype=float)
    slopes = -np.diff(np.log(grid.to_numpy()), axis=1) / np.diff(np.log(sizes))
    rows = []
    for k, column in enumerate(slopes.T):
        found = column[np.isfinite(column)]
        half = np.nan
        if len(found) > 1:
            half = student.ppf(0.975, len(found) - 1) * found.std(ddof=1) / np.sqrt(len(found))
        mean = found.mean() if len(found) else np.nan
        row = {"d_low": sizes[k], "d_high": sizes[k + 1], "slope": mean}
        row |= {"low": mean - half, "high": mean + half, "models": len(found)}
        rows.append(row | {f"model:{m}": s for m, s in zip(grid.index, column, strict=True)})
    return pd.DataFrame(rows)


def find_regime(slopes: pd.DataFrame, factor: float = FACTOR) -> Regime:
    """The longest range whose slopes agree within `factor`; of equally long ones the steadiest."""
    sizes = (*slopes["d_low"].astype(int), int(slopes["d_high"].iloc[-1])) if len(slopes) else ()
    value = slopes["slope"].to_numpy() if len(slopes) else np.empty(0)
    best: tuple[int, float, int] | None = None  # intervals, -log ratio, first
    for first in range(len(value)):
        for last in range(first + LEAST_SIZES - 1, len(value) + 1):
            part = value[first:last]
            if np.all(part > 0) and part.max() <= factor * part.min():
                found = (last - first, -float(np.log(part.max() / part.min())), first)
                best = found if best is None or found[:2] > best[:2] else best
    listed = ", ".join(f"{v:.3f}" for v in value)
    if best is None:
        return Regime(
            (),
            sizes,
            f"no power-law regime: the local slopes in D ({listed}) agree within a factor of "
            f"{factor:g} over no range of {LEAST_SIZES} sizes",
        )
    inside = sizes[best[2] : best[2] + best[0] + 1]
    return Regime(
        inside,
        sizes,
        f"local slopes in D ({listed}) agree within a factor of {factor:g} from D = {inside[0]:,} "
        f"to {inside[-1]:,} ({len(inside)} of {len(sizes)} sizes)",
    )
