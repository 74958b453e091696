"""Where to spend: the best (N, D) under a budget, and the questions turned round."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from repro.errors import UserError
from repro.laws.shapes import Array

Law = Callable[[Array, Array], Array]  # (n, d) -> loss in nats, or cost in any unit
_GRID = 400


@dataclass(frozen=True)
class Optimum:
    """The best allocation: n parameters, d pairs, its loss and cost, and which limits hold it."""

    n: float
    d: float
    loss: float
    cost: float
    limits: tuple[str, ...]


def optimum(
    loss: Law,
    cost: Law,
    budget: float,
    *,
    n_range: tuple[float, float] = (1e4, 1e15),
    max_pairs: float = 1e15,
    min_pairs: float = 1.0,
) -> Optimum:
    """Minimise loss(n, d) subject to cost(n, d) <= budget.  Cost must grow with both.

    Along the budget line d follows from n; a grid in log n brackets the minimum, which is then
    refined.  `limits` names what stops the plan: the largest or smallest model, the labels there are.
    Raises `UserError` where even the smallest model with the fewest pairs costs too much.
    """
    low, high = n_range
    if float(cost(np.array(low), np.array(min_pairs))) > budget:
        raise UserError(
            f"a budget of {budget:g} does not pay for {low:g} parameters and {min_pairs:g} pairs",
            remedy="raise the budget or lower the smallest model",
        )

    def pairs(n: Array) -> Array:
        return budget_line(cost, budget, n, min_pairs, max_pairs)

    def height(log_n: float) -> float:
        n = np.array([np.exp(log_n)])
        d = pairs(n)
        return float(np.log(loss(n, d))[0]) if np.isfinite(d[0]) else np.inf

    grid = np.linspace(np.log(low), np.log(high), _GRID)
    d = pairs(np.exp(grid))
    inside = np.isfinite(d)
    heights = np.full(_GRID, np.inf)
    heights[inside] = np.log(loss(np.exp(grid[inside]), d[inside]))
    best = int(np.argmin(heights))
    step = grid[1] - grid[0]
    ends = (max(grid[0], grid[best] - step), min(grid[-1], grid[best] + step))
    found = minimize_scalar(height, bounds=ends, method="bounded", options={"xatol": 1e-10})
    log_n = min((grid[best], float(found.x), ends[0], ends[1]), key=height)
    n = float(np.exp(log_n))
    pair_count = float(pairs(np.array([n]))[0])
    limits = []
    if log_n <= grid[0] + 1e-6:
        limits.append("smallest model")
    if log_n >= grid[-1] - 1e-6:
        limits.append("largest model")
    if pair_count >= max_pairs * (1 - 1e-9):
        limits.append("labels available")
    at = np.array(n), np.array(pair_count)
    return Optimum(n, pair_count, float(loss(*at)), float(cost(*at)), tuple(limits))


def budget_line(
    cost: Law, budget: float | Array, n: Array, least: float = 1.0, most: float = 1e15
) -> Array:
    """The largest d in [least, most] that the budget pays for, nan where not even `least`: (M,).

    budget: one for all, or one for each n (M,).
    """
    low, high = np.full(n.shape, np.log(least)), np.full(n.shape, np.log(most))
    out = np.where(cost(n, np.exp(low)) <= budget, np.nan, -np.inf)
    full = cost(n, np.exp(high)) <= budget
    for _ in range(100):
        middle = (low + high) / 2
        paid = cost(n, np.exp(middle)) <= budget
        low, high = np.where(paid, middle, low), np.where(paid, high, middle)
    found = np.where(full, most, np.exp(low))
    return np.where(np.isnan(out), found, np.nan)


def pairs_for_loss(loss: Law, n: float, target: float, most: float = 1e15) -> float:
    """How many pairs bring a model of n parameters to the target loss (nats).

    Raises `UserError` where no number of pairs up to `most` does: the law's floor is higher.
    """

    def gap(log_d: float) -> float:
        return float(loss(np.array(n), np.array(np.exp(log_d)))) - target

    if gap(np.log(most)) > 0:
        raise UserError(
            f"a model of {n:g} parameters does not reach a loss of {target:g} with {most:g} pairs",
            remedy="take a larger model, or a higher target",
        )
    if gap(0.0) <= 0:
        return 1.0
    return float(np.exp(brentq(gap, 0.0, np.log(most), xtol=1e-12)))


def pairs_replaced(loss: Law, n: float, d: float, larger: float, most: float = 1e15) -> float:
    """Pairs that a model of `larger` parameters can do without at the loss of (n, d)."""
    target = float(loss(np.array(n), np.array(d)))
    return d - pairs_for_loss(loss, larger, target, most)


def product_optimum(
    alpha: float, beta: float, budget: float, usd_per_parameter: float, usd_per_pair: float
) -> tuple[float, float]:
    """Closed form for the product law and a cost linear in n and d: shares alpha : beta of the budget."""
    share = alpha / (alpha + beta)
    return share * budget / usd_per_parameter, (1 - share) * budget / usd_per_pair


def transfer_split(
    loss: Law, budget: float, usd_per_step: float, usd_per_example: float, max_steps: float = 1e12
) -> Optimum:
    """Pre-train or annotate: minimise loss(p, f) subject to c_p p + c_f f <= budget (Barnett 2024)."""

    def cost(p: Array, f: Array) -> Array:
        return usd_per_step * p + usd_per_example * f

    return optimum(loss, cost, budget, n_range=(1.0, max_steps))
