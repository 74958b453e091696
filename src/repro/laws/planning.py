"""Plans from a fit: what a budget buys, what a target needs, what a larger model saves.

Every figure comes with an interval from draws of the law's parameters, and with the factor by which
it leaves the runs that the law was fitted to.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from repro.errors import UserError
from repro.laws.allocation import Law, budget_line, optimum
from repro.laws.fit import Fit
from repro.laws.resample import Sample, bootstrap
from repro.laws.shapes import Array
from repro.laws.table import few

_ROUNDS = 60  # halvings of log D: 1e-15 of its range
MOST_PAIRS = 1e15  # as far as pairs are looked for
MOST_MODELS = 8  # shown, where none are named


@dataclass(frozen=True)
class Cell:
    """The loss of n parameters with d pairs, its interval, its cost, and how far it extrapolates."""

    n: float
    d: float
    loss: float
    low: float
    high: float
    beyond: float
    cost: float = 0.0


@dataclass(frozen=True)
class Best:
    """The best cell under a budget, intervals of its n and d, and what limits it."""

    cell: Cell
    n_ends: tuple[float, float]
    d_ends: tuple[float, float]
    limits: tuple[str, ...]


@dataclass(frozen=True)
class Need:
    """The pairs that bring a model of n parameters to a loss; infinite where none do."""

    n: float
    d: float
    low: float
    high: float
    beyond: float

    @property
    def reachable(self) -> bool:
        """Whether any number of pairs suffices."""
        return bool(np.isfinite(self.d))


@dataclass(frozen=True)
class Planner:
    """A fit, draws of its law, and the limits of a plan.

    models: the N that can be had (parameters); max_pairs: labels that exist.
    """

    fitted: Fit
    sample: Sample
    models: tuple[float, ...]
    max_pairs: float = MOST_PAIRS
    level: float = 0.95

    @property
    def method(self) -> str:
        """Where the draws come from, in words."""
        return (
            "draws with effects of models and sizes"
            if self.sample.kind == "effects"
            else "residual bootstrap, runs taken as independent"
        )

    def at(self, n: Array, d: Array, cost: Law | None = None) -> list[Cell]:
        """The losses at cells (n, d), both (M,)."""
        low, high = np.percentile(self.sample.predict(n=n, d=d), self._tails, axis=0)
        loss = self.fitted.predict(n=n, d=d)
        paid = cost(n, d) if cost else np.zeros(len(n))
        rows = zip(n, d, loss, low, high, paid, strict=True)
        return [
            Cell(float(m), float(p), float(x), float(a), float(b), self._beyond(m, p), float(c))
            for m, p, x, a, b, c in rows
        ]

    def budget(self, cost: Law, budget: float) -> list[Cell]:
        """For each model that the budget pays for: the pairs it leaves room for, and the loss.

        Raises `UserError` where it pays for none.
        """
        n = np.array(self.models)
        d = budget_line(cost, budget, n, 1.0, self.max_pairs)
        paid = np.isfinite(d)
        if not paid.any():
            raise UserError(
                f"a budget of {budget:g} does not pay for the smallest model with one pair",
                remedy="raise the budget, or name smaller models (--models)",
            )
        return self.at(n[paid], d[paid], cost)

    def best(self, cost: Law, budget: float, n_range: tuple[float, float]) -> Best:
        """The best cell under the budget, every model size in `n_range` allowed."""
        found = optimum(
            lambda n, d: self.fitted.predict(n=n, d=d),
            cost,
            budget,
            n_range=n_range,
            max_pairs=self.max_pairs,
        )
        grid = np.geomspace(*n_range, 300)
        d = budget_line(cost, budget, grid, 1.0, self.max_pairs)
        grid, d = grid[np.isfinite(d)], d[np.isfinite(d)]
        place = self.sample.predict(n=grid, d=d).argmin(axis=1)
        cell = self.at(np.array([found.n]), np.array([found.d]), cost)[0]
        return Best(cell, self._ends(grid[place]), self._ends(d[place]), found.limits)

    def target(self, loss: float) -> list[Need]:
        """For each model: the pairs that bring it to `loss`."""
        return self._needs(loss, loss)

    def equal(self, n: float, d: float) -> list[Need]:
        """For each model: the pairs that bring it to the loss of n parameters with d pairs.

        The loss is each draw's own: what is not known of the level moves both and drops out.
        """
        loss = float(self.fitted.predict(n=n, d=d))
        return self._needs(loss, self.sample.predict(n=n, d=d)[:, 0])

    def _needs(self, loss: float, of_draws: Array | float) -> list[Need]:
        out = []
        for n in self.models:
            needed = float(self._needed(self.fitted.theta[:, None], n, loss)[0])
            ends = self._ends(self._needed(self.sample.theta, n, of_draws))
            out.append(Need(n, needed, *ends, self._beyond(n, needed)))
        return out

    def _needed(self, theta: Array, n: float, loss: Array | float) -> Array:
        """Pairs at which each law theta (P, R) reaches `loss` with n parameters: (R,), inf if never."""
        draws = Sample(self.fitted, theta, np.zeros(theta.shape[1]))
        low, high = np.zeros(theta.shape[1]), np.full(theta.shape[1], np.log(MOST_PAIRS))
        for _ in range(_ROUNDS):
            middle = (low + high) / 2
            above = draws.predict(n=n, d=np.exp(middle)[:, None])[:, 0] > loss
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        return np.where(high >= np.log(MOST_PAIRS) - 1e-6, np.inf, np.exp(high))

    def _beyond(self, n: float, d: float) -> float:
        return self.fitted.extrapolation(float(n), float(d)) if np.isfinite(d) else 1.0

    @property
    def _tails(self) -> tuple[float, float]:
        return 50 * (1 - self.level), 50 * (1 + self.level)

    def _ends(self, values: Array) -> tuple[float, float]:
        low, high = np.percentile(values, self._tails, method="nearest")  # may be infinite
        return float(low), float(high)


def planner(
    fitted: Fit,
    rng: np.random.Generator,
    *,
    models: tuple[float, ...] = (),
    max_pairs: float = MOST_PAIRS,
    draws: int = 400,
) -> Planner:
    """A planner with draws from the fit; models default to those of its table (a few of many).

    Raises `UserError` for a law that does not have both N and D.
    """
    if set(fitted.form.variables) != {"n", "d"} or fitted.form.response != "loss":
        raise UserError(
            f"a plan needs a loss law in model size and pairs, not the {fitted.form.title}",
            remedy="fit product, additive_floor or joint_floor",
        )
    try:
        sample = bootstrap(fitted, draws, rng, kind="effects")
    except UserError:  # too few models, or a Huber fit: effects of models cannot be seen
        sample = bootstrap(fitted, draws, rng, kind="residuals")
    seen = tuple(few(fitted.table.columns["n"], MOST_MODELS).tolist())
    return Planner(fitted, sample, models or seen, max_pairs)
