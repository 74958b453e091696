"""Which runs next?  Those that narrow a stated answer most, under a cap on compute."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from repro.errors import UserError
from repro.laws.components import components
from repro.laws.effects import dummies
from repro.laws.fit import Fit
from repro.laws.shapes import Array
from repro.laws.table import Table

_Z = 1.96  # half widths are two-sided 95 %, normal: for comparing designs, not for reporting


@dataclass(frozen=True)
class Answer:
    """What is to be narrowed: a parameter (`name`), or the loss at (n, d) where name is "loss"."""

    name: str
    n: float = 0.0
    d: float = 0.0

    def gradient(self, fitted: Fit) -> Array:
        """d answer / d internal coordinates, (P,); losses and constants as logarithms."""
        if self.name == "loss":
            cell = Table(np.ones(1), np.array([self.n]), np.array([self.d]))
            return fitted.jacobian(cell)[:, 0]
        fitted.form.parameter(self.name)
        return fitted.printed_slope[fitted.form.names.index(self.name)]


def next_runs(
    fitted: Fit,
    answer: Answer,
    models: Sequence[float],
    sizes: Sequence[float],
    flop: Callable[[Array, Array], Array],
    cap: float,
    runs: int = 3,
) -> pd.DataFrame:
    """Choose up to `runs` cells of models x sizes, one after the other, that narrow `answer` most.

    flop(n, d): compute of a run; `cap`: of all chosen together.  The variance counts effects of
    models and of sizes as estimated from the fit (a second run of a model says little about N where
    models differ by themselves); re-running a cell that exists is allowed.  Columns: n, d, flop,
    half_width (95 %, of the logarithm for losses and constants) after the run; row 0 is today.
    Raises `UserError` where no candidate is affordable.
    """
    free = np.flatnonzero(fitted.free)
    target = answer.gradient(fitted)[free]
    if not np.any(target):
        raise UserError(
            f"{answer.name} is fixed or at its bound in this fit", remedy="ask for another"
        )
    n, d = (v.ravel() for v in np.meshgrid(models, sizes, indexing="ij"))
    costs = flop(n, d)
    spreads = _spreads(fitted)
    exact = fitted.table.take(fitted.table.bound == 0)
    assert exact.n is not None
    assert exact.d is not None
    cells = (exact.n, exact.d)
    rows = [(np.nan, np.nan, 0.0, _half(fitted, cells, free, target, spreads))]
    left = cap
    for _ in range(runs):
        best: tuple[float, int] | None = None
        for i in np.flatnonzero(costs <= left):
            grown = (np.append(cells[0], n[i]), np.append(cells[1], d[i]))
            half = _half(fitted, grown, free, target, spreads)
            if best is None or half < best[0] * (1 - 1e-9):
                best = (half, int(i))
        if best is None:
            break
        half, place = best
        cells = (np.append(cells[0], n[place]), np.append(cells[1], d[place]))
        left -= float(costs[place])
        rows.append((float(n[place]), float(d[place]), float(costs[place]), half))
    if len(rows) == 1:
        raise UserError(
            f"no run of the candidates costs less than {cap:.3g} FLOP (the cheapest: {costs.min():.3g})",
            remedy="raise the cap, or name smaller models or sizes",
        )
    return pd.DataFrame(rows, columns=["n", "d", "flop", "half_width"])


def _spreads(fitted: Fit) -> tuple[float, float, float]:
    """Standard deviations of a model's, a size's and a run's own effect on log loss."""
    try:
        found = components(fitted)
    except UserError:  # too few models to see their effects: runs count as independent
        return 0.0, 0.0, max(fitted.sigma, 1e-12)
    return found.model_sd, found.size_sd, max(found.run_sd, 1e-12)


def _half(
    fitted: Fit,
    cells: tuple[Array, Array],
    free: NDArray[np.intp],
    target: Array,
    spreads: tuple[float, float, float],
) -> float:
    """95 % half width of the answer from runs at these cells, by generalised least squares."""
    n, d = cells
    jacobian = fitted.jacobian(Table(np.ones(len(n)), n, d))[free]
    model, size = dummies(n), dummies(d)
    covariance = spreads[2] ** 2 * np.eye(len(n))
    covariance += spreads[0] ** 2 * model @ model.T + spreads[1] ** 2 * size @ size.T
    information = jacobian @ np.linalg.solve(covariance, jacobian.T)
    variance = float(target @ np.linalg.pinv(information, rcond=1e-12) @ target)
    return _Z * float(np.sqrt(max(variance, 0.0)))
