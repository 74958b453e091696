"""Minimise a summed Huber (or square) of log residuals from many starts, or for many samples, at
once.

Levenberg-damped steps, descent only, inside bounds: Gauss-Newton with re-weighting far from the
optimum, exact Newton near it.  A whole block of problems takes each step together; those that have
converged drop out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from repro.laws.shapes import Array, Shape, Variables

_BLOCK = 1 << 15  # numbers in a block's (B, M) arrays: stays within a second-level cache


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

    def residuals(self, value: Array) -> Array:
        """Prediction minus response (B, M), zero where a bound is respected."""
        r = value - self.y
        if self.bound.any():
            r = np.where((self.bound > 0) & (r < 0) | (self.bound < 0) & (r > 0), 0.0, r)
        return r

    def cost(self, r: Array) -> Array:
        """Sum over points of weight x Huber(r): (B,)."""
        if np.isinf(self.delta):
            return 0.5 * _dot(self.weights, r * r)
        clipped = np.clip(r, -self.delta, self.delta)
        return _dot(self.weights, clipped * (r - 0.5 * clipped))


@dataclass(frozen=True)
class Solution:
    """theta (P, B); cost (B,); largest scaled gradient (B,); steps taken (B,)."""

    theta: Array
    cost: Array
    gradient: Array
    steps: NDArray[np.intp]

    def best(self) -> int:
        """Index of the lowest cost."""
        return int(np.argmin(self.cost))

    def merged(self, other: Solution) -> Solution:
        """The problems of both."""
        return Solution(
            np.concatenate([self.theta, other.theta], axis=1),
            np.concatenate([self.cost, other.cost]),
            np.concatenate([self.gradient, other.gradient]),
            np.concatenate([self.steps, other.steps]),
        )

    def better(self, other: Solution) -> Solution:
        """Of each problem, the solution with the lower cost."""
        mine = self.cost <= other.cost
        return Solution(
            np.where(mine, self.theta, other.theta),
            np.where(mine, self.cost, other.cost),
            np.where(mine, self.gradient, other.gradient),
            self.steps + other.steps,
        )


def solve(
    shape: Shape,
    x: Variables,
    target: Target,
    theta: Array,
    *,
    bounds: tuple[Array, Array],
    frozen: NDArray[np.bool_] | None = None,
    max_steps: int = 200,
    tolerance: float = 1e-13,
) -> Solution:
    """The local minimum reached from each column of theta (P, B); columns are independent problems.

    bounds: lower and upper (P,), internal coordinates.  frozen (P,) or (P, B): coordinates that
    stay. `tolerance`: stop where a step promises a relative decrease of the cost below it.
    """
    size, batch = theta.shape
    hold = np.zeros((size, batch), dtype=bool)
    if frozen is not None:
        hold |= frozen if frozen.ndim == 2 else frozen[:, None]
    out = np.array(theta, dtype=float)
    cost, gradient = np.empty(batch), np.empty(batch)
    steps = np.zeros(batch, dtype=np.intp)
    width = max(8, _BLOCK // max(1, target.y.shape[-1]))
    low, high = bounds[0][:, None], bounds[1][:, None]
    for start in range(0, batch, width):
        rows = np.arange(start, min(start + width, batch))
        block = _Block(shape, x, target.rows(rows), out[:, rows], hold[:, rows], low, high)
        block.run(max_steps, tolerance)
        out[:, rows], cost[rows], gradient[rows] = block.theta, block.cost, block.gradient
        steps[rows] = block.steps
    return Solution(out, cost, gradient, steps)


class _Block:
    """The state of one block of problems while it is being solved."""

    def __init__(
        self,
        shape: Shape,
        x: Variables,
        target: Target,
        theta: Array,
        hold: NDArray[np.bool_],
        low: Array,
        high: Array,
    ) -> None:
        self.shape, self.x, self.target = shape, x, target
        self.hold, self.low, self.high = hold, low, high
        # A frozen coordinate may stand outside the bounds: a known value is taken as it is.
        self.theta = np.where(hold, theta, np.clip(theta, low, high))
        batch = theta.shape[1]
        self.cost = np.full(batch, np.inf)
        self.gradient = np.full(batch, np.inf)
        self.steps = np.zeros(batch, dtype=np.intp)

    def run(self, max_steps: int, tolerance: float) -> None:
        """Iterate until every problem has converged, or `max_steps`."""
        live = np.arange(self.theta.shape[1])
        theta, hold, target = self.theta.copy(), self.hold, self.target
        damping = np.full(len(live), 1e-3)
        value, jacobian = self.shape.evaluate(theta, self.x)
        r = target.residuals(value)
        cost = target.cost(r)
        near = np.zeros(len(live), dtype=bool)
        stalls = np.zeros(len(live), dtype=np.intp)
        for step_number in range(1, max_steps + 1):
            exact = (np.isfinite(target.delta) and near.mean() > 0.5) or step_number > 40
            gradient, hessian = _system(self.shape, theta, self.x, target, jacobian, r, exact)
            pinned = (
                hold | (theta <= self.low) & (gradient > 0) | (theta >= self.high) & (gradient < 0)
            )
            diagonal = np.einsum("ppb->pb", hessian).copy()
            move = _newton(hessian, gradient, damping, pinned)
            trial = np.where(hold, theta, np.clip(theta - move, self.low, self.high))
            new_value, new_jacobian = self.shape.evaluate(trial, self.x)
            new_r = target.residuals(new_value)
            new_cost = target.cost(new_r)
            free = np.where(pinned, 0.0, gradient)
            promised = np.abs(np.einsum("pb,pb->b", free, move))
            better = new_cost < cost
            gain = np.where(better, (cost - new_cost) / np.maximum(cost, 1e-300), 0.0)
            near = np.where(better, gain < 0.1, near)
            scaled = np.abs(free / np.sqrt(np.maximum(diagonal, 1e-300))).max(axis=0)
            stalls = np.where(better & (gain > 1e-12), 0, stalls + 1)
            floor = 1e-30 * np.maximum(1.0, _total(target.weights))
            done = (
                (promised <= tolerance * cost) | (cost <= floor) | (damping > 1e8) | (stalls >= 12)
            )
            damping = np.where(better, np.maximum(damping * 0.1, 1e-12), damping * 8.0)
            take = better & ~done
            theta = np.where(better, trial, theta)
            cost = np.where(better, new_cost, cost)
            if take.any() or better.any():
                jacobian = np.where(better[:, None], new_jacobian, jacobian)
                r = np.where(better[:, None], new_r, r)
            self.steps[live] = step_number
            if done.any() or step_number == max_steps:
                self.theta[:, live], self.cost[live], self.gradient[live] = theta, cost, scaled
                if done.all():
                    return
                keep = np.flatnonzero(~done)
                if len(keep) < len(live):
                    live, theta, hold = live[keep], theta[:, keep], hold[:, keep]
                    target = target.rows(keep)
                    jacobian, r, cost = jacobian[:, keep], r[keep], cost[keep]
                    damping, near, stalls = damping[keep], near[keep], stalls[keep]


def _system(
    shape: Shape, theta: Array, x: Variables, target: Target, jacobian: Array, r: Array, exact: bool
) -> tuple[Array, Array]:
    """Gradient (P, B) and Hessian (P, P, B): exact where positive definite, else re-weighted."""
    weights = target.weights
    if target.bound.any():  # a bound that is respected has neither slope nor curvature
        weights = weights * ((target.bound == 0) | (r != 0))
    if np.isinf(target.delta):
        psi = weights * r
        inside = scaled = np.broadcast_to(weights, r.shape)
    else:
        size = np.abs(r)
        psi = weights * np.clip(r, -target.delta, target.delta)
        inside = weights * (size <= target.delta)
        scaled = weights * (target.delta / np.maximum(size, target.delta))
    gradient = np.einsum("pbm,bm->pb", jacobian, psi)
    if not exact:
        return gradient, _gram(jacobian, scaled)
    hessian = _gram(jacobian, inside) + shape.second(theta, x, jacobian, psi)
    bad = ~_positive(hessian)
    if bad.any():
        hessian[:, :, bad] = _gram(jacobian[:, bad], scaled[bad])
    return gradient, hessian


def _gram(jacobian: Array, weights: Array) -> Array:
    """Sum over points of weight x outer product of the Jacobian: (P, P, B)."""
    size = len(jacobian)
    out = np.empty((size, size, jacobian.shape[1]))
    for p in range(size):
        weighted = jacobian[p] * weights
        for q in range(p, size):
            out[p, q] = out[q, p] = np.einsum("bm,bm->b", weighted, jacobian[q])
    return out


def _newton(hessian: Array, gradient: Array, damping: Array, pinned: NDArray[np.bool_]) -> Array:
    """The damped step (P, B); pinned coordinates do not move."""
    h = hessian.copy()
    size = len(h)
    g = np.where(pinned, 0.0, gradient)
    for p in range(size):
        h[p, :, pinned[p]] = 0.0
        h[:, p, pinned[p]] = 0.0
        h[p, p] = np.where(pinned[p], 1.0, h[p, p] * (1.0 + damping) + 1e-18)
    lower, pivots = _factor(h)
    for p in range(size):  # forward, diagonal, backward substitution
        for k in range(p):
            g[p] = g[p] - lower[p][k] * g[k]
    for p in range(size):
        g[p] = g[p] / np.maximum(pivots[p], 1e-14 * np.abs(h[p, p]) + 1e-300)
    for p in reversed(range(size)):
        for k in range(p + 1, size):
            g[p] = g[p] - lower[k][p] * g[k]
    return g


def _factor(h: Array) -> tuple[list[list[Array]], list[Array]]:
    """L D L^T of each of the matrices h (P, P, B), without pivoting."""
    size = len(h)
    lower: list[list[Array]] = [[] for _ in range(size)]
    pivots: list[Array] = []
    for j in range(size):
        pivot = h[j, j].copy()
        for k in range(j):
            pivot = pivot - lower[j][k] ** 2 * pivots[k]
        pivots.append(pivot)
        least = 1e-14 * np.abs(h[j, j]) + 1e-18  # a pivot below it is rounding, whatever its sign
        safe = np.where(np.abs(pivot) > least, pivot, least)
        for i in range(j + 1, size):
            entry = h[i, j].copy()
            for k in range(j):
                entry = entry - lower[i][k] * lower[j][k] * pivots[k]
            lower[i].append(entry / safe)
    return lower, pivots


def _positive(h: Array) -> NDArray[np.bool_]:
    """Which of the matrices h (P, P, B) are safely positive definite: (B,)."""
    _, pivots = _factor(h)
    good = np.ones(h.shape[2], dtype=bool)
    for p, pivot in enumerate(pivots):
        good &= pivot > 1e-12 * np.abs(h[p, p])
    return good


def _dot(weights: Array, values: Array) -> Array:
    return values @ weights if weights.ndim == 1 else np.einsum("bm,bm->b", weights, values)


def _total(weights: Array) -> Array:
    return np.asarray(weights.sum(axis=-1))
