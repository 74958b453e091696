"""The regression of group means: a slope whose error counts models, not cells.

A grid of five models and seven sizes holds five models, not thirty-five.  If every model has an
effect of its own on top of the law, the exponent in N is known as well as a line through five
means.  On a balanced grid the t-interval of that line is exact, with or without such effects.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from repro.laws.fit import Fit
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
        dummies = np.eye(place.max() + 1)[place.ravel()]
        parts.append(dummies[:, 1:] - dummies[:, :1])  # effects sum to zero: means stay means
    design = np.column_stack(parts)
    if np.linalg.matrix_rank(design) < design.shape[1]:
        return None
    means = np.linalg.lstsq(design, np.log(cells.loss), rcond=None)[0][: len(values)]
    return line(np.log(values), means)


def grouped_errors(fitted: Fit) -> tuple[Array, Array]:
    """Standard errors and degrees of freedom (P,) where models and sizes have effects of their own.

    For any law in N and D by least squares.  Residuals of the cell means are split into those
    between models, between sizes, and the rest, each with its own variance (never below the rest's:
    an effect has no negative variance).  A parameter's error is built from the parts that its
    estimate draws on, its degrees of freedom after Satterthwaite.  In printed parameters, constants
    as logarithms; nan where fixed or at a bound.
    """
    cells = fitted.table.take(fitted.table.bound == 0).means()
    rest = np.log(cells.loss) - np.log(fitted.predict(**cells.columns))
    free = np.flatnonzero(fitted.free)
    jacobian = fitted.jacobian(cells)[free].T
    contrasts = fitted.printed_slope[:, free] @ np.linalg.pinv(jacobian)  # (P, cells)
    q, _ = np.linalg.qr(jacobian)
    annihilator = np.eye(len(rest)) - q @ q.T
    mean = np.full((len(rest), len(rest)), 1 / len(rest))
    model, size = (dummies(cells.columns[name]) for name in ("n", "d"))
    both = _projection(np.column_stack([model, size]))
    parts = [_projection(model) - mean, both - _projection(model), np.eye(len(rest)) - both]
    seen = [annihilator @ part @ annihilator for part in parts]
    expected = np.array([[np.trace(one @ other) for other in parts] for one in seen])
    squares = np.array([rest @ part @ rest for part in parts])
    variance = np.linalg.lstsq(expected, squares, rcond=None)[0]
    variance = np.maximum(variance, max(variance[2], 1e-30))
    df = np.array([np.trace(s) ** 2 / max(np.trace(s @ s), 1e-12) for s in seen])
    loads = np.array([((contrasts @ part) ** 2).sum(axis=1) for part in parts])
    common = ((contrasts @ mean) ** 2).sum(axis=1)  # the grand mean carries both kinds of effect
    loads[:2] += common
    shares = variance[:, None] * loads
    total = shares.sum(axis=0)
    freedom = total**2 / np.maximum((shares**2 / df[:, None]).sum(axis=0), 1e-300)
    known = np.ones(len(fitted.theta), dtype=bool)
    known[free] = False
    total[known] = np.nan
    return np.sqrt(total), np.maximum(freedom, 1.0)


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


def _projection(columns: Array) -> Array:
    return np.asarray(columns @ np.linalg.pinv(columns))


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
