"""How well a law describes the rows it was fitted to: information criteria and R2."""

from __future__ import annotations

import numpy as np

from repro.errors import UserError
from repro.laws.result import Fit
from repro.laws.shapes import Array


def aicc(fitted: Fit) -> float:
    """Corrected Akaike criterion of Gaussian log residuals; their variance is a parameter."""
    k = fitted.n_free + 1
    points = len(fitted.table)
    if points <= k + 1:
        raise UserError(f"AICc needs more than {k + 1} points, not {points}", remedy="add rows")
    return _deviance(fitted) + 2 * k + 2 * k * (k + 1) / (points - k - 1)


def bic(fitted: Fit) -> float:
    """Bayesian information criterion of Gaussian log residuals."""
    return _deviance(fitted) + (fitted.n_free + 1) * float(np.log(len(fitted.table)))


def r2_log(fitted: Fit) -> float:
    """Share of the variance of log loss that the law explains."""
    return _r2(
        np.log(fitted.table.loss),
        np.log(fitted.predict(**fitted.table.columns)),
        fitted.table.weight,
    )


def r2_level(fitted: Fit) -> float:
    """Share of the variance of the loss that the law explains."""
    return _r2(fitted.table.loss, fitted.predict(**fitted.table.columns), fitted.table.weight)


def _deviance(fitted: Fit) -> float:
    points = len(fitted.table)
    variance = float(np.sum(fitted.table.weight * fitted.residuals**2)) / points
    return points * float(np.log(max(variance, 1e-30)))


def _r2(actual: Array, predicted: Array, weights: Array) -> float:
    centre = np.average(actual, weights=weights)
    spread = float(np.sum(weights * (actual - centre) ** 2))
    if spread == 0:
        raise UserError("every row has the same loss: there is no variance to explain")
    return 1 - float(np.sum(weights * (actual - predicted) ** 2)) / spread
