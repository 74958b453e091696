"""Chinchilla's three approaches to the compute-optimal allocation (Hoffmann et al. 2022, section 3).

Each ends in N_opt = G_n C^a and D_opt = G_d C^b.  C is training FLOP; by default C = 6 N D.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from repro.errors import UserError
from repro.laws.effects import line
from repro.laws.fit import Fit
from repro.laws.resample import bootstrap
from repro.laws.shapes import Array

FLOP_PER_TOKEN = 6.0  # per parameter, forward and backward (Kaplan 2020)


@dataclass(frozen=True)
class Allocation:
    """Exponents a (parameters) and b (data) in compute, their constants, and what they rest on.

    points: columns flop, n, d, loss (the optima); empty for approach 3.
    """

    a: float
    b: float
    g_n: float
    g_d: float
    points: pd.DataFrame

    def n_opt(self, flop: float | Array) -> float | Array:
        """Best number of parameters at a compute of `flop`."""
        return self.g_n * np.asarray(flop) ** self.a

    def d_opt(self, flop: float | Array) -> float | Array:
        """Best number of tokens (or pairs) at a compute of `flop`."""
        return self.g_d * np.asarray(flop) ** self.b


def envelope(n: Array, flop: Array, loss: Array, budgets: int = 60) -> Allocation:
    """Approach 1: of all training curves, which model has the lowest loss at each compute?

    n (R,); flop and loss (R, T): compute spent and loss along each run.  Budgets at which the best
    run is the smallest or largest model are left out: there the grid, not the law, decides.
    """
    grid = np.geomspace(flop.min(axis=1).min(), flop.max(axis=1).max(), budgets)
    curves = np.full((len(n), budgets), np.inf)
    for run in range(len(n)):
        inside = (grid >= flop[run].min()) & (grid <= flop[run].max())
        logs = np.interp(np.log(grid[inside]), np.log(flop[run]), np.log(loss[run]))
        curves[run, inside] = np.exp(logs)
    best = curves.argmin(axis=0)
    keep = np.isfinite(curves.min(axis=0)) & (n[best] > n.min()) & (n[best] < n.max())
    if np.count_nonzero(keep) < 3:
        raise UserError("the envelope has fewer than three inner points", remedy="add model sizes")
    return _allocation(grid[keep], n[best][keep], curves.min(axis=0)[keep])


def parabolas(n: Array, flop: Array, loss: Array, decimals: int = 2) -> Allocation:
    """Approach 2: at each budget a parabola of loss in log N; its minimum is the best N.

    n, flop, loss (M,): final losses of runs whose FLOP fall into a few budgets (equal up to
    `decimals` of log10).  Budgets with fewer than three sizes, or a minimum outside their sizes,
    are left out.  The parabola is an approximation: it is biased where alpha differs from beta.
    """
    budgets = np.round(np.log10(flop), decimals)
    rows = []
    for budget in np.unique(budgets):
        here = budgets == budget
        if len(np.unique(n[here])) < 3:
            continue
        x = np.log(n[here])
        square, slope, constant = np.polyfit(x, loss[here], 2)
        if square <= 0:
            continue
        vertex = -slope / (2 * square)
        if x.min() <= vertex <= x.max():
            height = constant - slope**2 / (4 * square)
            rows.append((float(np.exp(np.log(flop[here]).mean())), float(np.exp(vertex)), height))
    if len(rows) < 3:
        raise UserError(
            f"{len(rows)} budgets have a minimum inside their sizes, three are needed",
            remedy="add budgets or model sizes",
        )
    c, best, height = (np.array(column) for column in zip(*rows, strict=True))
    return _allocation(c, best, height)


def parametric(fitted: Fit, flop_per_token: float = FLOP_PER_TOKEN) -> Allocation:
    """Approach 3: the closed form from a fitted additive law, C = flop_per_token x N x D.

    a = beta/(alpha + beta), b = alpha/(alpha + beta), G = (alpha A/(beta B))^(1/(alpha + beta)).
    """
    if fitted.form.name not in ("additive", "additive_floor"):
        raise UserError(
            f"the closed form is the additive law's, not the {fitted.form.title}'s",
            remedy="fit additive_floor, or minimise numerically (laws.allocation)",
        )
    p = fitted.parameters
    a, b, g = closed_form(p["A"], p["alpha"], p["B"], p["beta"])
    empty = pd.DataFrame(columns=["flop", "n", "d", "loss"])
    return Allocation(
        float(a),
        float(b),
        float(g * flop_per_token**-a),
        float(flop_per_token**-b / g),
        empty,
    )


def parametric_sample(
    fitted: Fit, draws: int, rng: np.random.Generator
) -> dict[str, tuple[float, float, float]]:
    """Approach 3 under `draws` case resamples: a and b as (standard error, 10th, 90th percentile)."""
    sample = bootstrap(fitted, draws, rng).parameters
    a, b, _ = closed_form(sample["A"], sample["alpha"], sample["B"], sample["beta"])
    out = {}
    for name, values in (("a", a), ("b", b)):
        low, high = np.percentile(values, (10, 90))
        out[name] = (float(values.std(ddof=1)), float(low), float(high))
    return out


def closed_form(
    big_a: float | Array, alpha: float | Array, big_b: float | Array, beta: float | Array
) -> tuple[Array, Array, Array]:
    """a, b and G of the additive law: N = G (C/6)^a, D = (C/6)^b / G (Hoffmann et al. 2022, eq. 4)."""
    total = np.asarray(alpha) + np.asarray(beta)
    g = (np.asarray(alpha) * big_a / (np.asarray(beta) * big_b)) ** (1 / total)
    return np.asarray(beta / total), np.asarray(alpha / total), np.asarray(g)


def _allocation(flop: Array, n: Array, loss: Array) -> Allocation:
    d = flop / (FLOP_PER_TOKEN * n)
    fit_n, fit_d = line(np.log(flop), np.log(n)), line(np.log(flop), np.log(d))
    centre = np.log(flop).mean()
    g_n = np.exp(np.log(n).mean() - fit_n.value * centre)
    g_d = np.exp(np.log(d).mean() - fit_d.value * centre)
    points = pd.DataFrame({"flop": flop, "n": n, "d": d, "loss": loss})
    return Allocation(fit_n.value, fit_d.value, float(g_n), float(g_d), points)
