"""Local slopes of the loss in D, and the range of D where they agree: the power-law regime.

A loss capped by chance (few pairs) or by what the start already knows has slopes that grow with D.
A power law has one slope.  The rule, fixed before any result: the longest range of at least two
thirds of the sizes (and three) over which the local slopes are positive and agree within a factor
of two, in the mean over models and inside at least four fifths of the models each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import t as student

FACTOR = 2.0  # largest slope over smallest, inside the regime
LEAST_SIZES = 3  # two sizes have one slope, which agrees with itself
SIZES_SHARE = (2, 3)  # of the data sizes: 4 of 6
MODELS_SHARE = (4, 5)  # of the models: 4 of 5
_MODEL = "model:"  # prefix of a model's own column of slopes


@dataclass(frozen=True)
class Regime:
    """The data sizes (rising) between which the loss is a power law in D; empty where it is none.

    ranges: model -> the longest range of sizes over which its own slopes agree (empty: none of three
    sizes).  `least_sizes` and `least_models` are what the rule asks of this grid.
    """

    sizes: tuple[int, ...]
    all_sizes: tuple[int, ...]
    reason: str
    ranges: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.sizes)

    @property
    def brief(self) -> str:
        """The reason without its figures, for claims that rest on it."""
        return f"{self.reason.partition(':')[0]} in D, notebook 04"

    @property
    def whole(self) -> bool:
        """Whether the regime covers every size of the grid."""
        return self.sizes == self.all_sizes

    @property
    def least_sizes(self) -> int:
        """How many sizes a range must have."""
        return max(LEAST_SIZES, _share(len(self.all_sizes), SIZES_SHARE))

    @property
    def least_models(self) -> int:
        """How many models must agree with themselves."""
        return _share(len(self.ranges), MODELS_SHARE)

    @property
    def agreeing(self) -> int:
        """How many models have slopes that agree over `least_sizes` sizes or more of their own."""
        return sum(len(sizes) >= self.least_sizes for sizes in self.ranges.values())

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {
            "sizes": list(self.sizes),
            "all_sizes": list(self.all_sizes),
            "whole": self.whole,
            "reason": self.reason,
            "ranges": {model: list(sizes) for model, sizes in self.ranges.items()},
            "least_sizes": self.least_sizes,
            "least_models": self.least_models,
            "agreeing": self.agreeing,
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
        rows.append(row | {f"{_MODEL}{m}": s for m, s in zip(grid.index, column, strict=True)})
    return pd.DataFrame(rows)


def find_regime(slopes: pd.DataFrame, factor: float = FACTOR) -> Regime:
    """The longest range that the rule allows; of equally long ones the steadiest.

    slopes: from `local_slopes`; without columns of single models the mean alone is asked.
    """
    sizes = (*slopes["d_low"].astype(int), int(slopes["d_high"].iloc[-1])) if len(slopes) else ()
    mean = slopes["slope"].to_numpy(float) if len(slopes) else np.empty(0)
    columns = [str(c) for c in slopes.columns if str(c).startswith(_MODEL)]
    models = {c.removeprefix(_MODEL): slopes[c].to_numpy(float) for c in columns}
    ranges = {model: _between(sizes, _longest(own, factor)) for model, own in models.items()}
    rule = Regime((), sizes, "", ranges)
    best: tuple[int, float, int] | None = None  # intervals, -log ratio, first
    most = 0  # models that agree over one range, whatever the mean does
    for first, last in _windows(len(mean), rule.least_sizes - 1):
        agreeing = sum(_agree(own[first:last], factor) for own in models.values())
        most = max(most, agreeing)
        part = mean[first:last]
        if _agree(part, factor) and agreeing >= rule.least_models:
            found = (last - first, -float(np.log(part.max() / part.min())), first)
            best = found if best is None or found[:2] > best[:2] else best
    listed = ", ".join(f"{v:.3f}" if np.isfinite(v) else "not measured" for v in mean)
    if len(sizes) and not np.isfinite(mean).any():
        reason = "no power-law regime: no model has minima at two neighbouring data sizes"
        return Regime((), sizes, reason, ranges)
    if len(sizes) < rule.least_sizes:
        reason = (
            f"no power-law regime: it takes {rule.least_sizes} data sizes, here are {len(sizes)}"
        )
        return Regime((), sizes, reason, ranges)
    if best is None:
        reason = (
            f"no power-law regime: over no range of {rule.least_sizes} of {len(sizes)} sizes do the "
            f"local slopes in D agree within a factor of {factor:g} in the mean of models ({listed})"
        )
        if models:
            reason += (
                f" and inside {rule.least_models} of {len(models)} models (over any one such range "
                f"they agree inside {most} at most)"
            )
        return Regime((), sizes, reason, ranges)
    inside = _between(sizes, (best[2], best[2] + best[0]))
    agreeing = sum(_agree(v[best[2] : best[2] + best[0]], factor) for v in models.values())
    reason = (
        f"local slopes in D ({listed}) agree within a factor of {factor:g} from D = {inside[0]:,} "
        f"to {inside[-1]:,} ({len(inside)} of {len(sizes)} sizes)"
    )
    reason += f", and inside {agreeing} of {len(models)} models" if models else ""
    return Regime(inside, sizes, reason, ranges)


def _agree(values: NDArray[np.float64], factor: float) -> bool:
    """Whether the slopes are positive and the largest is within `factor` of the smallest."""
    return bool(np.all(values > 0) and values.max() <= factor * values.min())


def _longest(values: NDArray[np.float64], factor: float) -> tuple[int, int] | None:
    """The longest range of slopes (first, last + 1) that agree; None where none of two do."""
    found = [w for w in _windows(len(values), LEAST_SIZES - 1) if _agree(values[slice(*w)], factor)]
    return max(found, key=lambda window: window[1] - window[0], default=None)


def _windows(length: int, least: int) -> list[tuple[int, int]]:
    return [(first, last) for first in range(length) for last in range(first + least, length + 1)]


def _between(sizes: tuple[int, ...], window: tuple[int, int] | None) -> tuple[int, ...]:
    return () if window is None else sizes[window[0] : window[1] + 1]


def _share(count: int, share: tuple[int, int]) -> int:
    return math.ceil(count * share[0] / share[1])
