"""Bootstrap: thousands of re-fits at once, each started at the fit it resamples."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from repro.errors import UserError
from repro.laws.components import components
from repro.laws.fit import Fit
from repro.laws.problem import Problem
from repro.laws.shapes import Array, stack_variables, to_natural
from repro.laws.target import Target

Kind = Literal["cases", "residuals", "strata", "effects"]


@dataclass(frozen=True)
class Sample:
    """Re-fits of resampled tables: internal theta (P, R) and cost (R,)."""

    fitted: Fit
    theta: Array
    cost: Array
    kind: str = ""  # of bootstrap

    @property
    def parameters(self) -> dict[str, Array]:
        """Printed parameters, (R,) each."""
        natural = to_natural(self.fitted.form.shape, self.theta, self.fitted.centre)
        return dict(zip(self.fitted.form.names, natural, strict=True))

    def predict(
        self, n: ArrayLike | None = None, d: ArrayLike | None = None, **more: ArrayLike
    ) -> Array:
        """The law of every draw at points (M,), or at points of its own (R, M): (R, M)."""
        given = {"n": n, "d": d, **more}
        shape = self.fitted.form.shape
        columns = {
            name: np.atleast_1d(np.asarray(given[name], dtype=float)) for name in shape.variables
        }
        x = stack_variables(columns, shape.variables, self.fitted.centre)
        return np.exp(shape.evaluate(self.theta, x)[0] + self.fitted.centre["loss"])


def bootstrap(
    fitted: Fit,
    draws: int,
    rng: np.random.Generator,
    kind: Kind = "cases",
    strata: str = "n",
) -> Sample:
    """`draws` re-fits.

    cases: rows drawn with replacement.  residuals: the law plus centred, inflated residuals drawn
    with replacement (rows that are bounds keep their values).  strata: cases within each value of
    `strata`.  effects: the law plus simulated effects of models, of sizes and of runs, with variances
    as far as they are known (`components`): draws that carry the model effect.
    """
    size = len(fitted.table)
    if kind == "cases":
        counts = rng.multinomial(size, np.full(size, 1 / size), draws)
        return refit(fitted, weights=counts)
    if kind == "strata":
        if strata not in fitted.table.columns:
            raise UserError(f"the table has no column {strata!r} to stratify by")
        counts = np.zeros((draws, size), dtype=np.int64)
        column = fitted.table.columns[strata]
        for value in np.unique(column):
            rows = np.flatnonzero(column == value)
            counts[:, rows] = rng.multinomial(len(rows), np.full(len(rows), 1 / len(rows)), draws)
        return refit(fitted, weights=counts)
    if kind == "effects":
        found = components(fitted)
        noise = found.noise(draws, rng)
        keys = np.column_stack([fitted.table.columns[name] for name in found.cells.columns])
        cells = np.column_stack(list(found.cells.columns.values()))
        place = np.array([int(np.argmax((cells == key).all(axis=1))) for key in keys])
        loss = np.log(fitted.predict(**fitted.table.columns)) + noise[:, place]
        bounds = fitted.table.bound != 0
        loss[:, bounds] = np.log(fitted.table.loss)[bounds]
        return replace(refit(fitted, log_loss=loss), kind=kind)
    exact = np.flatnonzero(fitted.table.bound == 0)
    pool = fitted.residuals[exact]
    pool = (pool - pool.mean()) * np.sqrt(len(pool) / max(1, len(pool) - fitted.n_free))
    loss = np.repeat(np.log(fitted.table.loss)[None], draws, axis=0)
    drawn = rng.choice(pool, (draws, len(exact)))
    loss[:, exact] = np.log(fitted.predict(**fitted.table.columns))[exact] + drawn
    return refit(fitted, log_loss=loss)


def resample_evaluation(
    fitted: Fit, pair_losses: Array, draws: int, rng: np.random.Generator
) -> Sample:
    """Re-fits to other evaluation samples: pairs (columns of pair_losses (M, Q)) drawn with replacement.

    pair_losses: the loss of each evaluation pair at each row of the table.  All runs share one
    evaluation set, so its accidents do not average out over the grid; this is their share.
    """
    size, pairs = pair_losses.shape
    if size != len(fitted.table):
        raise UserError(f"per-pair losses of {size} runs for a table of {len(fitted.table)}")
    counts = rng.multinomial(pairs, np.full(pairs, 1 / pairs), draws)
    means = counts @ pair_losses.T / pairs
    centred = np.log(means) - np.log(pair_losses.mean(axis=1))
    return refit(fitted, log_loss=np.log(fitted.table.loss) + centred)


def refit(
    fitted: Fit, *, weights: NDArray[np.int64] | Array | None = None, log_loss: Array | None = None
) -> Sample:
    """Fit many variants of a table at once, each from the optimum of `fitted`.

    weights (R, M) multiply the table's own; log_loss (R, M) replaces its log losses.
    """
    problem = Problem(fitted.form, fitted.table, fitted.known, fitted.delta)
    target = problem.target
    if log_loss is not None:
        target = Target(
            log_loss - problem.centre["loss"], target.weights, target.bound, target.delta
        )
    if weights is not None:
        target = Target(target.y, target.weights * weights, target.bound, target.delta)
    draws = len(weights) if weights is not None else len(target.y)
    # A parameter that rests at a bound gets a push: from zero, a floor or shift might not rise
    # again.
    low, high = problem.bounds
    start = np.clip(fitted.theta, low + 1e-3 * (low == 0), high)
    theta = np.repeat(np.where(problem.frozen, fitted.theta, start)[:, None], draws, axis=1)
    found = problem.continued(theta, target)
    return Sample(fitted, found.theta, found.cost)
