"""The regression of group means: a slope whose error counts models, not cells.

A grid of five models and seven sizes holds five models, not thirty-five.  If every model has an
effect of its own on top of the law, the exponent in N is known as well as a line through five
means.  On a balanced grid the t-interval of that line is exact, with or without such effects.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from repro.laws.shapes import Array
from repro.laws.table import Table


@dataclass(frozen=True)
class Slope:
    """Slope of log response on log variable, its standard error and degrees of freedom.

    `spread` is the variance of a group mean about the line; `groups` how many means there are.
    """

    value: float
    error: float
    df: int
    spread: float
    groups: int
    rest: Array  # residuals of the means, (groups,)


def between(table: Table, name: str, others: tuple[str, ...]) -> Slope | None:
    """Regress the mean log response of each value of `name` on its logarithm.

    Means are adjusted for the other variables (a free effect for each of their values), which is
    the plain mean on a balanced grid.  None where fewer than three values, or where cells are
    missing in such a way that the effects cannot be separated.
    """
    cells = table.take(table.bound == 0).means()
    values, index = np.unique(cells.columns[name], return_inverse=True)
    if len(values) < 3:
        return None
    own = np.eye(len(values))[index.ravel()]
    parts = [own]
    for other in others:
        _, place = np.unique(cells.columns[other], return_inverse=True)
        columns = np.eye(place.max() + 1)[place.ravel()]
        parts.append(columns[:, 1:] - columns[:, :1])  # effects sum to zero: means stay means
    design = np.column_stack(parts)
    if np.linalg.matrix_rank(design) < design.shape[1]:
        return None
    means = np.linalg.lstsq(design, np.log(cells.loss), rcond=None)[0][: len(values)]
    return line(np.log(values), means)


def balanced(table: Table, names: tuple[str, ...]) -> bool:
    """Whether every combination of the variables' values has equally many exact rows."""
    exact = table.take(table.bound == 0)
    keys = np.column_stack([exact.columns[name] for name in names])
    _, counts = np.unique(keys, axis=0, return_counts=True)
    full = int(np.prod([len(np.unique(exact.columns[name])) for name in names]))
    return len(counts) == full and len(set(counts.tolist())) == 1


def dummies(values: Array) -> Array:
    """One column of ones and zeros for each distinct value, (M, values)."""
    return (values[:, None] == np.unique(values)[None]).astype(float)


def line(x: Array, y: NDArray[np.floating]) -> Slope:
    """Ordinary least squares of y on x (both (M,), M at least 3)."""
    centred = x - x.mean()
    value = float(centred @ y / (centred @ centred))
    rest = y - y.mean() - value * centred
    df = len(x) - 2
    spread = float(rest @ rest) / df
    return Slope(
        value, float(np.sqrt(spread / (centred @ centred))), df, spread, len(x), np.asarray(rest)
    )
