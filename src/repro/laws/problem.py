"""A form and a table as one numerical problem, and the checks that it can be solved at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import qmc

from repro.errors import UserError
from repro.laws.forms import Form
from repro.laws.powersum import PowerSum
from repro.laws.shapes import LOGGED, Array, stack_variables, to_internal
from repro.laws.solve import Solution, solve
from repro.laws.table import COLUMNS, Table, row_names
from repro.laws.target import Target

_WIDE = 0.03  # Huber delta of the approach to a fit with a smaller delta


class Problem:
    """A form and a table in internal coordinates: draws starts, screens, polishes.

    `y` and `weights` may be replaced by (B, M) arrays to solve many resamples at once.
    """

    def __init__(
        self, form: Form, table: Table, known: Mapping[str, float], delta: float = np.inf
    ) -> None:
        self.form, self.table, self.known, self.delta = form, table, known, delta
        self.centre = centre_of(form, table, known)
        self.x = stack_variables(table.columns, form.variables, self.centre)
        self.target = target_of(table, self.centre, delta)
        self.bounds = bounds_of(form)
        self.frozen = np.array([name in known for name in form.names])

    def starts(self, count: int, weights: Array | None = None) -> Array:
        """`count` quasi-random starts (P, count): exponents spread evenly, constants re-solved.

        weights (M,): others than the table's.
        """
        weights = self.target.weights if weights is None else weights
        draws = qmc.Halton(len(self.form.names), scramble=False).random(count + 1)[1:].T
        theta = self.form.shape.guess(draws, self.x, self.target.y, weights)
        return self._with_known(theta)

    def given(self, values: Mapping[str, ArrayLike]) -> Array:
        """Starts (P, B) from arrays of printed parameters; a power sum re-solves its constants."""
        natural = np.array([np.asarray(values[name], dtype=float) for name in self.form.names])
        shape = self.form.shape
        if isinstance(shape, PowerSum):
            theta = to_internal(shape, np.maximum(natural, 1e-300), self.centre)
            # Starts that differ only in constants that are re-solved are one start: solve it once.
            coefficients = [self.form.names.index(term.coefficient) for term in shape.terms]
            others = np.delete(theta, coefficients, axis=0)
            _, first, every = np.unique(others, axis=1, return_index=True, return_inverse=True)
            solved = shape.resolve(theta[:, first], self.x, self.target.y, self.target.weights)
            return self._with_known(solved[:, every.ravel()])
        return self._with_known(to_internal(shape, natural, self.centre))

    def optimise(self, theta: Array, keep: int | None = None) -> Solution:
        """The optima below theta (P, B), to machine precision.

        With `keep`, only the best so many survive a dozen rough steps.  A small Huber delta makes
        the cost nearly a sum of absolute values, full of kinks: two routes are tried, straight down,
        and first with a wide delta.  Without `keep`, the better route of each start is returned.
        """
        if keep is not None:
            _, first = np.unique(theta, axis=1, return_index=True)
            theta = theta[:, np.sort(first)]
        found = self._descend(theta, self.target, keep)
        if len(found) == 1:
            return found[0]
        return found[0].merged(found[1]) if keep is not None else found[0].better(found[1])

    def optimise_each(self, weights: Array, starts: int, keep: int) -> Array:
        """The best optimum (P, K) under each of the weights (K, M): `optimise`, for all of them at once."""
        theta = np.concatenate([self.starts(starts, each) for each in weights], axis=1)
        target = replace(self.target, weights=np.repeat(weights, starts, axis=0))
        found = self._descend(theta, target, keep, len(weights))
        costs = np.concatenate([each.cost.reshape(len(weights), -1) for each in found], axis=1)
        thetas = [each.theta.reshape(len(theta), len(weights), -1) for each in found]
        best = np.argmin(costs, axis=1)
        return np.concatenate(thetas, axis=2)[:, np.arange(len(weights)), best]

    def predict(self, theta: Array) -> Array:
        """The losses that each of theta (P, K) gives the rows of the table: (K, M)."""
        return np.exp(self.form.shape.evaluate(theta, self.x)[0] + self.centre["loss"])

    def constrained(self, theta: Array, frozen: NDArray[np.bool_]) -> Solution:
        """The optimum below each column of theta, the coordinates in frozen (P, B) held."""
        return solve(self.form.shape, self.x, self.target, theta, bounds=self.bounds, frozen=frozen)

    def continued(self, theta: Array, target: Target) -> Solution:
        """The optimum of each problem of `target`, from a start that is already near."""
        return self._solve(theta, target, target.delta, warm=True, tolerance=1e-11)

    def _descend(
        self, theta: Array, target: Target, keep: int | None, groups: int = 1
    ) -> list[Solution]:
        """The optima below theta (P, B) by each route; of `groups` of equal size `keep` starts each."""
        routes = [target.delta, *([_WIDE] if target.delta < _WIDE else [])]
        found = []
        for delta in routes:
            route, aim = theta, target
            if keep is not None and theta.shape[1] > keep * groups:
                rough = self._solve(theta, target, delta, max_steps=12, tolerance=1e-5)
                order = np.argsort(rough.cost.reshape(groups, -1), axis=1, kind="stable")[:, :keep]
                kept = (order + np.arange(groups)[:, None] * (theta.shape[1] // groups)).ravel()
                route, aim = rough.theta[:, kept], target.rows(kept)
            if delta != target.delta:
                route = self._solve(route, aim, delta, max_steps=30, tolerance=1e-4).theta
            found.append(self._solve(route, aim, target.delta))
        return found

    def _solve(self, theta: Array, target: Target, delta: float, **options: Any) -> Solution:
        wide = Target(target.y, target.weights, target.bound, max(delta, target.delta))
        return solve(
            self.form.shape, self.x, wide, theta, bounds=self.bounds, frozen=self.frozen, **options
        )

    def _with_known(self, theta: Array) -> Array:
        if self.known:
            dummy = np.array([[self.known.get(name, 1.0)] for name in self.form.names])
            value = to_internal(self.form.shape, dummy, self.centre)
            theta = np.where(self.frozen[:, None], value, theta)
        return theta


def known_values(form: Form, changes: Mapping[str, float | None]) -> dict[str, float]:
    merged: dict[str, float | None] = {**form.fixed, **changes}
    for name, value in changes.items():
        parameter = form.parameter(name)
        if parameter.kind == "radius":
            raise UserError(
                f"{name} of the {form.title} cannot be fixed", remedy="fix its exponent instead"
            )
        low, high = parameter.bounds if parameter.kind in ("exponent", "free") else (0.0, np.inf)
        allowed = "above 0" if np.isinf(high) else f"from {low:g} to {high:g}"
        sure = value is None or (low <= value <= high and np.isfinite(value))
        if not sure or (value == 0 and parameter.kind in LOGGED):
            raise UserError(
                f"{name} of the {form.title} cannot be fixed at {value:g}",
                remedy=f"give a number {allowed}",
            )
    return {name: float(value) for name, value in merged.items() if value is not None}


def check(form: Form, table: Table, n_free: int) -> None:
    for name in form.variables:
        meaning = COLUMNS.get(name, name)
        if name not in table.columns:
            raise UserError(
                f"the {form.title} needs a column of {meaning} ({name})",
                remedy="name it: " + (f"--{name} COL" if name in "nd" else f"--column {name}=COL"),
            )
        zero = np.flatnonzero(table.columns[name] == 0)
        if len(zero) and name not in form.shape.may_be_zero:
            raise UserError(
                f"the {form.title} is not defined at zero {meaning} ({name}): {row_names(zero)}",
                remedy="drop these rows, or take a head-start form (product_d0, transfer_f0)",
            )
        if len(np.unique(table.columns[name])) == 1:
            others = [v for v in form.variables if v != name]
            remedy = (
                f"fit single_{others[0]} or single_{others[0]}_floor"
                if others
                else "add other values"
            )
            raise UserError(
                f"the {form.title} cannot be fitted: every row has the same {meaning} ({name})",
                remedy=remedy,
            )
    if np.all(table.bound != 0):
        raise UserError(
            "every row is only a bound (censored): nothing was measured exactly",
            remedy="add runs that ended by themselves",
        )
    points = np.count_nonzero(table.weight)
    if points <= n_free:
        raise UserError(
            f"{points} points cannot determine the {n_free} parameters of the {form.title}",
            remedy="add rows, or take a form with fewer parameters",
        )


def centre_of(form: Form, table: Table, known: Mapping[str, float]) -> dict[str, float]:
    if any(form.parameter(n).kind == "constant" or form.parameter(n).powers for n in known):
        return dict.fromkeys((*form.variables, "loss"), 0.0)
    centre = {"loss": float(np.average(np.log(table.loss), weights=table.weight))}
    for name in form.variables:
        column = table.columns[form.shape.centred_with.get(name, name)]
        positive = (column > 0) & (table.weight > 0)
        centre[name] = float(np.average(np.log(column[positive]), weights=table.weight[positive]))
    return centre


def target_of(table: Table, centre: Mapping[str, float], delta: float) -> Target:
    return Target(np.log(table.loss) - centre["loss"], table.weight, table.bound, delta)


def bounds_of(form: Form) -> tuple[Array, Array]:
    low, high = zip(*(p.bounds for p in form.shape.parameters), strict=True)
    return np.array(low), np.array(high)
