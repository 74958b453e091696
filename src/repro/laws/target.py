"""What is fitted: responses, weights, bounds, and what a residual costs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from repro.laws.shapes import Array


@dataclass(frozen=True)
class Target:
    """What is fitted: log responses y, weights, and which points are only bounds.

    y, weights: (M,), or (B, M) where each problem has its own.  bound (M,): +1 where the response
    is an upper bound on the truth (a censored run's MAEL), -1 a lower one, 0 exact.  A bound costs
    nothing while the prediction respects it.  delta: Huber's, infinite for least squares.
    """

    y: Array
    weights: Array
    bound: NDArray[np.int8]
    delta: float = np.inf

    def rows(self, index: NDArray[np.intp]) -> Target:
        """The target of the problems in `index` alone."""
        y = self.y if self.y.ndim == 1 else self.y[index]
        weights = self.weights if self.weights.ndim == 1 else self.weights[index]
        return Target(y, weights, self.bound, self.delta)

    def replace(self, index: NDArray[np.intp], other: Target) -> None:
        """Put the problems of `other` in the place of those in `index`."""
        if self.y.ndim == 2:
            self.y[index] = other.y
        if self.weights.ndim == 2:
            self.weights[index] = other.weights

    def residuals(self, value: Array) -> Array:
        """Prediction minus response (B, M), zero where a bound is respected."""
        r = value - self.y
        if self.bound.any():
            r = np.where((self.bound > 0) & (r < 0) | (self.bound < 0) & (r > 0), 0.0, r)
        return r

    def penalty(self, r: Array) -> tuple[Array, Array]:
        """Sum over points of weight x Huber(r), (B,), and its slope in each residual, (B, M)."""
        if np.isinf(self.delta):
            psi = self.weights * r
            return 0.5 * np.einsum("bm,bm->b", psi, r), psi
        clipped = np.minimum(np.maximum(r, -self.delta), self.delta)
        psi = self.weights * clipped
        clipped *= -0.5
        clipped += r
        return np.einsum("bm,bm->b", psi, clipped), psi
