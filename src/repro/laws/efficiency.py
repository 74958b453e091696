"""Is a larger model or more data the better use of compute?  Efficiencies and their ratio.

With MAEL ~ N^-alpha D^-beta and steps to the minimum S ~ N^-a D^b, compute is C ~ N S ~
N^(1-a) D^b.  Loss falls as C^-alpha/(1-a) when only the model grows, as C^-beta/b when only the
data grow (MAEL paper, section 6).  The answer depends on what a step is: `convert` moves a between
raw steps, steps weighted by their learning rate, and steps at a common learning rate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.stats import chi2

from repro.errors import UserError
from repro.laws.effects import between
from repro.laws.shapes import Array
from repro.laws.table import Table

Convention = Literal["raw", "lr"]


@dataclass(frozen=True)
class Efficiency:
    """Loss exponents in compute through the model and through the data, and their ratio.

    Numbers, or arrays (R,) of draws.  ratio above 1: the larger model first.
    """

    model: float | Array
    data: float | Array

    @property
    def ratio(self) -> float | Array:
        """model over data."""
        return self.model / self.data


def efficiency(
    alpha: float | Array, beta: float | Array, a: float | Array, b: float | Array
) -> Efficiency:
    """Efficiencies from the exponents of the product law and of the steps law in raw steps."""
    return Efficiency(alpha / (1 - a), beta / b)


def equal_compute(
    alpha: float, beta: float, a: float, b: float, factor: float = 2.0
) -> tuple[float, float]:
    """At equal compute with `factor` times the model: (share of the data, share of the loss)."""
    data = factor ** (-(1 - a) / b)
    return data, factor**-alpha * data**-beta


def convert(
    a: float | Array, lr_exponent: float, given: Convention, wanted: Convention
) -> float | Array:
    """The steps law's model exponent in another unit of steps.

    lr_exponent: rho in lr ~ N^-rho (about .52 if the rate halves at each of the five BERT sizes).
    "raw": optimiser steps.  "lr": the sum of learning rates, which is raw steps at a common rate.
    """
    if given == wanted:
        return a
    return a + lr_exponent if wanted == "lr" else a - lr_exponent


def lr_exponent(n: Array, lr: Array) -> float:
    """rho of lr ~ N^-rho, by least squares on logarithms."""
    x = np.log(n) - np.log(n).mean()
    return float(-(x @ np.log(lr)) / (x @ x))


def efficiency_draws(
    losses: Table, steps: Table, draws: int, rng: np.random.Generator
) -> Efficiency:
    """Draws (R,) of the efficiencies that carry the uncertainty of both laws, model effects included.

    Percentiles of the draws are the intervals; see `exponent_draws`.
    """
    return efficiency(*exponent_draws(losses, steps, draws, rng))


def exponent_draws(
    losses: Table, steps: Table, draws: int, rng: np.random.Generator
) -> tuple[Array, Array, Array, Array]:
    """Draws (R,) of alpha, beta, a and b of MAEL ~ N^-alpha D^-beta and S ~ N^-a D^b.

    Group means of log loss and log steps are regressed together on log N (and on log D); the two
    slopes are drawn from their joint t-distribution, correlated as the means' residuals are.
    Raises `UserError` where the tables do not share three or more values of N and of D.
    """
    alpha, a = -_slopes(losses, steps, "n", draws, rng)
    beta, b = _slopes(losses, steps, "d", draws, rng)
    return alpha, -beta, a, b


def ratio(alpha: Array, beta: Array, a: Array, b: Array, most: float = np.inf) -> Array:
    """The ratio of the efficiencies, kept within -most to most, for exponents of any sign.

    Where a larger model costs no more compute (a at least 1) and lowers the loss, or where more data
    raise it, the model wins by any factor: `most`.  nan where neither lowers the loss.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        model = np.where(a < 1, alpha / (1 - a), np.sign(alpha) * np.inf)
        data = np.where(b > 0, beta / b, np.sign(beta) * np.inf)
        free = np.where(data <= 0, np.inf, model / data)
    found = np.where((model <= 0) & (data <= 0), np.nan, free)
    found = np.where(np.isinf(model) & np.isinf(data), np.nan, found)
    return np.clip(found, -most, most)


def _slopes(losses: Table, steps: Table, name: str, draws: int, rng: np.random.Generator) -> Array:
    """Draws (2, R) of the slopes of group means of log loss and log steps on log `name`."""
    other = ("d",) if name == "n" else ("n",)
    one, two = between(losses, name, other), between(steps, name, other)
    if one is None or two is None or one.groups != two.groups:
        raise UserError(
            f"efficiencies need the same three or more values of {name} in losses and steps",
            remedy="give both tables from one grid",
        )
    cross = float(one.rest @ two.rest) / one.df
    covariance = np.array([[one.spread, cross], [cross, two.spread]])
    scale = (one.error**2 / one.spread) if one.spread > 0 else 0.0
    normal = rng.multivariate_normal(np.zeros(2), covariance * scale, draws).T
    heavy = np.sqrt(chi2.rvs(one.df, size=draws, random_state=rng) / one.df)
    return np.array([[one.value], [two.value]]) + normal / heavy
