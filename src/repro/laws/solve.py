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

from repro.laws.shapes import Array, Shape, Variables, gram
from repro.laws.target import Target

Rows = slice | NDArray[np.intp] | NDArray[np.bool_]
_BLOCK = 1 << 16  # numbers in a block's (B, M) arrays: stays within a second-level cache


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
    warm: bool = False,
) -> Solution:
    """The local minimum reached from each column of theta (P, B); columns are independent problems.

    bounds: lower and upper (P,), internal coordinates.  frozen (P,) or (P, B): coordinates that
    stay. `tolerance`: stop where a step promises a relative decrease of the cost below it.
    """
    pool = _Pool(shape, x, target, theta, frozen, bounds)
    pool.run(max_steps, tolerance, warm)
    return Solution(pool.theta, pool.cost, pool.gradient, pool.steps)


class _Pool:
    """All problems, a block of which is alive: those that converge make room for the next."""

    def __init__(
        self,
        shape: Shape,
        x: Variables,
        target: Target,
        theta: Array,
        frozen: NDArray[np.bool_] | None,
        bounds: tuple[Array, Array],
    ) -> None:
        self.shape, self.x, self.target = shape, x, target
        self.low, self.high = bounds[0][:, None], bounds[1][:, None]
        self.hold = np.zeros(theta.shape, dtype=bool)
        if frozen is not None:
            self.hold |= frozen if frozen.ndim == 2 else frozen[:, None]
        # A frozen coordinate may stand outside the bounds: a known value is taken as it is.
        self.theta = np.where(self.hold, theta, np.clip(theta, self.low, self.high))
        batch = theta.shape[1]
        self.cost, self.gradient = np.full(batch, np.inf), np.full(batch, np.inf)
        self.steps = np.zeros(batch, dtype=np.intp)

    def run(self, max_steps: int, tolerance: float, warm: bool) -> None:
        """Step every problem until it has converged, or `max_steps` times."""
        batch = self.theta.shape[1]
        width = max(8, _BLOCK // max(1, self.target.y.shape[-1]))
        block = _Block(self, np.arange(min(width, batch)), warm)
        waiting = len(block.index)
        while True:
            done = block.step(max_steps, tolerance)
            # Refilling copies the block: wait until a twelfth of it has finished.
            if not done.all() and np.count_nonzero(done) < len(done) // 12:
                continue
            block.store(done)
            fresh = np.arange(waiting, min(waiting + np.count_nonzero(done), batch))
            waiting += len(fresh)
            if done.all() and not len(fresh):
                return
            block = block.refilled(done.copy(), _Block(self, fresh, warm))


class _Block:
    """The state of the problems that are being solved; all arrays have them as (last or only) axis B."""

    def __init__(self, pool: _Pool, index: NDArray[np.intp], warm: bool) -> None:
        self.pool, self.index = pool, index
        self.theta, self.hold = pool.theta[:, index], pool.hold[:, index]
        self.target = pool.target.rows(index)
        value, self.jacobian = pool.shape.evaluate(self.theta, pool.x)
        self.r = self.target.residuals(value)
        self.cost, self.psi = self.target.penalty(self.r)
        self.damping = np.full(len(index), 1e-3)
        self.near = np.full(len(index), warm)
        self.stalls = np.zeros(len(index), dtype=np.intp)
        self.steps = np.zeros(len(index), dtype=np.intp)
        self.gradient = np.full(len(index), np.inf)
        self.done = np.zeros(len(index), dtype=bool)

    def step(self, max_steps: int, tolerance: float) -> NDArray[np.bool_]:
        """One damped step of each problem, taken where it lowers the cost; which have finished."""
        pool, target = self.pool, self.target
        exact = (self.near & np.isfinite(target.delta)) | (self.steps >= 40)
        gradient = np.einsum("pbm,bm->pb", self.jacobian, self.psi)
        hessian = _hessian(self, exact)
        pinned = self.hold | (self.theta <= pool.low) & (gradient > 0)
        pinned |= (self.theta >= pool.high) & (gradient < 0)
        free = np.where(pinned, 0.0, gradient)
        move, positive = _newton(hessian, free, self.damping, pinned)
        wrong = exact & ~positive
        if wrong.any():
            hessian[:, :, wrong] = gram(self.jacobian[:, wrong], _reweighted(self, wrong))
            move[:, wrong], _ = _newton(
                hessian[:, :, wrong], free[:, wrong], self.damping[wrong], pinned[:, wrong]
            )
        trial = np.where(self.hold, self.theta, np.clip(self.theta - move, pool.low, pool.high))
        value, jacobian = pool.shape.evaluate(trial, pool.x)
        r = target.residuals(value)
        cost, psi = target.penalty(r)
        better = (cost < self.cost) & ~self.done
        gain = np.where(better, (self.cost - cost) / np.maximum(self.cost, 1e-300), 0.0)
        diagonal = np.maximum(np.einsum("ppb->pb", hessian), 1e-300)
        self.gradient = np.where(
            self.done, self.gradient, np.abs(free / np.sqrt(diagonal)).max(axis=0)
        )
        # Where exact steps meet no convex bowl, a re-weighted step follows.
        self.near = np.where(better, gain < 0.1, self.near) & ~wrong
        self.stalls = np.where(gain > 1e-12, 0, self.stalls + 1)
        self.steps += ~self.done
        promised = np.abs((free * move).sum(axis=0))
        floor = 1e-30 * np.maximum(1.0, target.weights.sum(axis=-1))
        self.done |= (promised <= tolerance * self.cost) | (self.cost <= floor)
        self.done |= (self.damping > 1e8) | (self.stalls >= 12) | (self.steps >= max_steps)
        self.damping = np.where(better, np.maximum(self.damping * 0.1, 1e-12), self.damping * 8.0)
        stay = np.flatnonzero(~better)  # few: put their old state back
        for name, new in (("theta", trial), ("jacobian", jacobian)):
            new[:, stay] = getattr(self, name)[:, stay]
            setattr(self, name, new)
        for name, new in (("cost", cost), ("r", r), ("psi", psi)):
            new[stay] = getattr(self, name)[stay]
            setattr(self, name, new)
        return self.done

    def store(self, rows: NDArray[np.bool_]) -> None:
        """Write the given problems back to the pool."""
        to = self.index[rows]
        self.pool.theta[:, to], self.pool.cost[to] = self.theta[:, rows], self.cost[rows]
        self.pool.gradient[to], self.pool.steps[to] = self.gradient[rows], self.steps[rows]

    def refilled(self, done: NDArray[np.bool_], fresh: _Block) -> _Block:
        """A block in which the problems of `fresh` take the place of those that are `done`."""
        first = (
            "index",
            "r",
            "psi",
            "cost",
            "damping",
            "near",
            "stalls",
            "steps",
            "gradient",
            "done",
        )
        last = ("theta", "hold", "jacobian")
        if len(fresh.index) == np.count_nonzero(done):
            rows = np.flatnonzero(done)
            for name in first:
                getattr(self, name)[rows] = getattr(fresh, name)
            for name in last:
                getattr(self, name)[:, rows] = getattr(fresh, name)
            self.target.replace(rows, fresh.target)
            return self
        for name in first:
            both = [getattr(self, name)[~done], getattr(fresh, name)]
            setattr(fresh, name, np.concatenate(both))
        for name in last:
            both = [getattr(self, name)[:, ~done], getattr(fresh, name)]
            setattr(fresh, name, np.concatenate(both, axis=1))
        fresh.target = self.pool.target.rows(fresh.index)
        return fresh


def _hessian(block: _Block, exact: NDArray[np.bool_]) -> Array:
    """(P, P, B): exact for the problems in `exact` (B,), else Gauss-Newton, re-weighted for Huber."""
    load = _reweighted(block, slice(None))
    if not exact.any():
        return gram(block.jacobian, load)
    pool, target = block.pool, block.target
    if 4 * np.count_nonzero(exact) > 3 * len(exact):  # cheaper than to pick the problems out
        rows: Rows = slice(None)
        psi = np.where(exact[:, None], block.psi, 0.0)
        load = np.where(exact[:, None] & (np.abs(block.r) > target.delta), 0.0, load)
    else:
        rows = np.flatnonzero(exact)
        psi = block.psi[rows]
        load = np.array(load)
        load[rows] *= np.abs(block.r[rows]) <= target.delta
    bent, partial = pool.shape.bending(block.theta[:, rows], pool.x, block.jacobian[:, rows], psi)
    if partial:
        load[rows] -= psi
    out = gram(block.jacobian, load)
    out[:, :, rows] += bent
    return out


def _reweighted(block: _Block, rows: Rows) -> Array:
    """Weights (B, M) of Gauss-Newton: psi / r, the curvature of a parabola that touches Huber's."""
    target, r = block.target, block.r[rows]
    weights = target.weights if target.weights.ndim == 1 else target.weights[rows]
    if target.bound.any():  # a bound that is respected has neither slope nor curvature
        weights = weights * ((target.bound == 0) | (r != 0))
    if np.isinf(target.delta):
        return np.broadcast_to(weights, r.shape)
    return weights * (target.delta / np.maximum(np.abs(r), target.delta))


@np.errstate(over="ignore", invalid="ignore")  # of a singular matrix: the step is not taken
def _newton(
    hessian: Array, gradient: Array, damping: Array, pinned: NDArray[np.bool_]
) -> tuple[Array, NDArray[np.bool_]]:
    """The damped step (P, B), and where the damped matrix is safely positive definite (B,).

    Pinned coordinates (gradient 0) do not move.
    """
    h = hessian.copy()
    size = len(h)
    g = gradient.copy()
    for p in range(size):
        h[p, :, pinned[p]] = 0.0
        h[:, p, pinned[p]] = 0.0
        h[p, p] = np.where(pinned[p], 1.0, h[p, p] * (1.0 + damping) + 1e-18)
    lower, pivots = _factor(h)
    positive = np.ones(h.shape[2], dtype=bool)
    for p, pivot in enumerate(pivots):
        positive &= pivot > 1e-12 * np.abs(h[p, p])
    for p in range(size):  # forward, diagonal, backward substitution
        for k in range(p):
            g[p] = g[p] - lower[p][k] * g[k]
    for p in range(size):
        g[p] = g[p] / np.maximum(pivots[p], 1e-14 * np.abs(h[p, p]) + 1e-300)
    for p in reversed(range(size)):
        for k in range(p + 1, size):
            g[p] = g[p] - lower[k][p] * g[k]
    return g, positive


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
