"""Product law or additive law?  Held-out errors, and how likely they are if the one or the other is true.

A law that explains the cells it was fitted to may still be wrong, and with few models the held-out
errors of every law scatter widely.  So the observed ratio of errors is set against the ratios that
simulated grids give when each law in turn is the truth (a Cox-type test of non-nested models;
Cox 1962, "Further results on tests of separate families of hypotheses").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from repro.errors import UserError
from repro.laws.fit import Fit, fit
from repro.laws.forms import form
from repro.laws.resample import refit
from repro.laws.shapes import stack_variables
from repro.laws.table import Table

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
FAMILIES = {
    "additive (Rosenfeld, Chinchilla)": ("additive", "additive_floor"),
    "additive (Kaplan, SIGIR'24)": ("joint", "joint_floor"),
}
LEVEL = 0.05  # a rival is rejected as the truth below this probability
PRODUCT_LEVEL = LEVEL / 4  # the product law meets four rivals: Bonferroni


@dataclass(frozen=True)
class Duel:
    """The product law against one rival.

    ratio: held-out error of the rival over that of the product law (above 1: product better),
    geometric mean of leave-one-model-out and corner (the former alone where the cells outside the
    corner cannot determine every law: corner False).  p_rival: how often simulated grids for which
    the rival is true favour the product law at least as much.  p_product: how often grids for which
    the product law is true favour the rival at least as much.
    """

    rival: str
    ratio: float
    p_rival: float
    p_product: float
    corner: bool = True

    @property
    def outcome(self) -> str:
        """product, rival, or open: which of the two is left when the other is rejected."""
        product_out, rival_out = self.p_product < PRODUCT_LEVEL, self.p_rival < LEVEL
        if rival_out and not product_out:
            return "product"
        if product_out and not rival_out:
            return "rival"
        return "open"

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {
            "rival": self.rival,
            "ratio": self.ratio,
            "p_rival": self.p_rival,
            "p_product": self.p_product,
            "outcome": self.outcome,
            "corner": self.corner,
        }


def duels(table: Table, rng: np.random.Generator, draws: int = 120) -> list[Duel]:
    """The product law against each variant of the additive laws, on the exact cells of `table`.

    Raises `UserError` where a law cannot be fitted with a model left out (fewer than three models).
    """
    exact = table.take(table.bound == 0).means()
    corner = _corner_determines_all(exact)
    product = _Contestant("product", exact, corner)
    seen, grids = product.errors(np.log(exact.loss)[None])[0], product.simulate(rng, draws)
    own = product.errors(grids)
    found = []
    for name in (rival for family in FAMILIES.values() for rival in family):
        rival = _Contestant(name, exact, corner)
        observed = rival.errors(np.log(exact.loss)[None])[0] - seen
        theirs = rival.simulate(rng, draws)
        favour = rival.errors(theirs) - product.errors(theirs)
        p_rival = _share(favour >= observed)
        p_product = _share(rival.errors(grids) - own <= observed)
        found.append(Duel(name, float(np.exp(min(observed, 50.0))), p_rival, p_product, corner))
    return found


def corner_limits(table: Table) -> tuple[float, float]:
    """(N, D) of the largest model and size that the corner's fit sees, as in the MAEL paper.

    There the two largest of five models and of seven sizes are predicted: 40 %, rounded down.
    """
    return _largest_seen(table.columns["n"]), _largest_seen(table.columns["d"])


class _Contestant:
    """One law, fitted to all cells and to the cells that each hold-out leaves."""

    def __init__(self, name: str, table: Table, corner: bool) -> None:
        n, d = table.columns["n"], table.columns["d"]
        models = np.unique(n)
        if len(models) < 3:
            raise UserError(f"{len(models)} models: with one left out no law in N can be fitted")
        n_max, d_max = corner_limits(table)
        self.name, self.table, self.whole = name, table, fit(name, table)
        self.models = [self._part(n != m, n == m) for m in models]
        left, held = (n <= n_max) & (d <= d_max), (n > n_max) & (d > d_max)
        self.corner = self._part(left, held) if corner else None

    def errors(self, grids: Array) -> Array:
        """Log of the held-out error of each grid of log losses (R, M): (R,)."""
        models = np.concatenate([self._misses(part, grids) for part in self.models], axis=1)
        if self.corner is None:
            return _log_mean(models)
        return 0.5 * (_log_mean(models) + _log_mean(self._misses(self.corner, grids)))

    def simulate(self, rng: np.random.Generator, draws: int) -> Array:
        """Grids (R, M) of log losses that follow this law with the scatter that it leaves.

        Half of the variance is an effect of the model, shared by its cells: without it a grid whose
        models have effects of their own rejects true laws.
        """
        centre = np.log(self.whole.predict(**self.table.columns))
        _, model = np.unique(self.table.columns["n"], return_inverse=True)
        shared = rng.standard_normal((draws, model.max() + 1))[:, model]
        own = rng.standard_normal((draws, len(centre)))
        return np.asarray(centre + self.whole.sigma * np.sqrt(0.5) * (shared + own))

    def _part(self, left: Mask, held: Mask) -> tuple[Fit, Mask, Mask]:
        return fit(self.name, self.table.take(left)), left, held

    def _misses(self, part: tuple[Fit, Mask, Mask], grids: Array) -> Array:
        """|log predicted - log actual| of the held-out cells, after re-fitting to the cells left."""
        fitted, left, held = part
        sample = refit(fitted, log_loss=grids[:, left])
        rows = stack_variables(self.table.take(held).columns, fitted.form.variables, fitted.centre)
        value, _ = fitted.form.shape.evaluate(sample.theta, rows)
        return np.abs(value + fitted.centre["loss"] - grids[:, held])


def _corner_determines_all(table: Table) -> bool:
    """Whether the cells that the corner's fit sees are as many as the widest law has parameters."""
    n_max, d_max = corner_limits(table)
    n, d = table.columns["n"], table.columns["d"]
    widest = max(form(name).n_free for family in FAMILIES.values() for name in family)
    return bool(np.sum((n <= n_max) & (d <= d_max)) >= widest and ((n > n_max) & (d > d_max)).any())


def _log_mean(misses: Array) -> Array:
    # Capped at a factor of e: a law that misses by more is useless, however much more.
    return np.asarray(np.log(np.minimum(misses, 1.0).mean(axis=1) + 1e-9))


def _share(event: NDArray[np.bool_]) -> float:
    return float((np.count_nonzero(event) + 1) / (len(event) + 1))


def _largest_seen(column: Array) -> float:
    values = np.unique(column)
    held = max(1, int(0.4 * len(values)))
    return float(values[max(0, len(values) - held - 1)])
