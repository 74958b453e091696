"""Variance components: how much of a fit's residuals belongs to models, to sizes, to single runs.

For any law in N and D fitted by least squares.  Residuals of the cell means are split into those
between models, between sizes, and the rest; each part has its own variance and its own degrees of
freedom, what the law's parameters take up being subtracted.  A variance is never below the rest's:
an effect has no negative variance.  Exact for balanced grids, approximate otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from repro.errors import UserError
from repro.laws.effects import dummies
from repro.laws.fit import Fit
from repro.laws.shapes import Array
from repro.laws.table import Table


@dataclass(frozen=True)
class Components:
    """Variances of log loss in three orthogonal parts: between models, between sizes, the rest.

    variance, df: (3,); a part's variance is that of a unit vector in it (for model means of seven
    cells: seven times the variance of a mean).  parts: projections (3, M, M) of the cells.
    """

    cells: Table
    variance: Array
    df: Array
    parts: Array

    @property
    def model_sd(self) -> float:
        """Standard deviation of a model's own effect on log loss."""
        return self._effect(0)

    @property
    def size_sd(self) -> float:
        """Standard deviation of a data size's own effect on log loss."""
        return self._effect(1)

    @property
    def run_sd(self) -> float:
        """Standard deviation of a single cell beyond both."""
        return float(np.sqrt(self.variance[2]))

    def noise(self, draws: int, rng: np.random.Generator) -> Array:
        """Simulated residuals of the cells (draws, M), the variances drawn from what is known of them."""
        size = len(self.cells)
        scale = np.sqrt(self.variance[:, None] * self.df[:, None] / self._chi2(draws, rng))
        out = np.zeros((draws, size))
        for part, factor in zip(self.parts, scale, strict=True):
            out += factor[:, None] * (rng.normal(size=(draws, size)) @ part)
        mean = np.sqrt(scale[0] ** 2 + scale[1] ** 2) / np.sqrt(size)
        return out + (mean * rng.normal(size=draws))[:, None]

    def contrast(self, weights: Array) -> tuple[Array, Array]:
        """Standard error and Satterthwaite's degrees of freedom of weights (K, M) @ log losses: (K,)."""
        loads = np.array([((weights @ part) ** 2).sum(axis=1) for part in self.parts])
        loads[:2] += weights.sum(axis=1) ** 2 / weights.shape[1]  # both effects move the grand mean
        shares = self.variance[:, None] * loads
        total = shares.sum(axis=0)
        df = total**2 / np.maximum((shares**2 / self.df[:, None]).sum(axis=0), 1e-300)
        return np.sqrt(total), np.maximum(df, 1.0)

    def _effect(self, part: int) -> float:
        other = len(np.unique(self.cells.columns["n" if part == 0 else "d"]))
        per_group = len(self.cells) / other
        return float(np.sqrt(max(0.0, self.variance[part] - self.variance[2]) / per_group))

    def _chi2(self, draws: int, rng: np.random.Generator) -> Array:
        return np.stack([rng.chisquare(max(1.0, df), draws) for df in self.df])


def components(fitted: Fit) -> Components:
    """The variance components of a fit's residuals.

    Raises `UserError` where there are fewer than three models or sizes, too few cells, or no
    least-squares fit of a law in both N and D.
    """
    if not np.isinf(fitted.delta) or not {"n", "d"} <= set(fitted.form.variables):
        raise UserError(
            "model and size effects need a least-squares fit of a law in both N and D",
            remedy="method='means', 'profile' or 'bootstrap'",
        )
    cells = fitted.table.take(fitted.table.bound == 0).means()
    groups = min(len(np.unique(cells.columns[name])) for name in ("n", "d"))
    if groups < 3 or len(cells) < fitted.n_free + 3:
        raise UserError(
            f"{groups} models or sizes are too few to see their effects",
            remedy="method='profile', and say that it assumes independent rows",
        )
    rest = np.log(cells.loss) - np.log(fitted.predict(**cells.columns))
    mean = np.full((len(rest), len(rest)), 1 / len(rest))
    model = _projection(dummies(cells.columns["n"]))
    both = _projection(np.column_stack([dummies(cells.columns[name]) for name in ("n", "d")]))
    parts = np.stack([model - mean, both - model, np.eye(len(rest)) - both])
    q, _ = np.linalg.qr(_jacobian(fitted, cells))
    annihilator = np.eye(len(rest)) - q @ q.T
    seen = annihilator @ parts @ annihilator
    expected = np.einsum("kij,lji->kl", seen, parts)
    squares = np.einsum("i,kij,j->k", rest, parts, rest)
    variance = np.linalg.lstsq(expected, squares, rcond=None)[0]
    variance = np.maximum(variance, max(float(variance[2]), 1e-30))
    squared = np.maximum(np.einsum("kij,kji->k", seen, seen), 1e-12)
    df = np.einsum("kii->k", seen) ** 2 / squared
    return Components(cells, variance, np.maximum(df, 1e-3), parts)


def grouped_errors(fitted: Fit) -> tuple[Array, Array]:
    """Standard errors and degrees of freedom (P,) where models and sizes have effects of their own.

    Of the printed parameters, constants as logarithms; nan where fixed or at a bound.
    """
    found = components(fitted)
    free = np.flatnonzero(fitted.free)
    weights = fitted.printed_slope[:, free] @ np.linalg.pinv(_jacobian(fitted, found.cells))
    errors, df = found.contrast(weights)
    held = np.setdiff1d(np.arange(len(fitted.theta)), free)
    errors[held] = np.nan
    return errors, df


def _jacobian(fitted: Fit, cells: Table) -> Array:
    """d log-prediction / d free parameters, (cells, free)."""
    return fitted.jacobian(cells)[fitted.free].T


def _projection(columns: Array) -> Array:
    return np.asarray(columns @ np.linalg.pinv(columns))
