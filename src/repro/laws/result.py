"""A fitted law: its parameters, predictions, errors, warnings and record."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import t as student

from repro.errors import UserError
from repro.laws import report
from repro.laws.forms import Form
from repro.laws.problem import bounds_of, target_of
from repro.laws.shapes import EXP_LIMIT, Array, log_constants, stack_variables, to_natural
from repro.laws.table import Table
from repro.laws.target import Target


@dataclass(frozen=True)
class Record:
    """What the optimiser did: starts screened and polished, how many ended at the optimum, which
    optima.

    optima: (cost, how many starts ended there, parameters), best first.  gradient: largest scaled
    gradient at the result.  Report as "64 screened, 16 polished".
    """

    screened: int
    polished: int
    reached: int
    gradient: float
    optima: tuple[tuple[float, int, dict[str, float]], ...]


@dataclass(frozen=True)
class Fit:
    """A fitted law.  Costs are sums of 1/2 r^2 (or Huber) over log residuals r.

    theta and centre are internal (see `shapes`); `parameters` are what to print.  `predict` and
    `band` take the law's variables (n in parameters, d in pairs) and return losses in nats.
    """

    form: Form
    table: Table
    theta: Array
    centre: Mapping[str, float]
    known: Mapping[str, float]
    delta: float
    cost: float
    record: Record
    dropped: str = ""

    @cached_property
    def parameters(self) -> dict[str, float]:
        """The law's constants and exponents, by name."""
        natural = to_natural(self.form.shape, self.theta[:, None], self.centre)[:, 0]
        return dict(zip(self.form.names, natural.tolist(), strict=True))

    def predict(
        self, n: ArrayLike | None = None, d: ArrayLike | None = None, **more: ArrayLike
    ) -> Array:
        """The law at the given variables, broadcast together."""
        return np.exp(self._at(n, d, more)[0])

    def band(
        self,
        n: ArrayLike | None = None,
        d: ArrayLike | None = None,
        level: float = 0.95,
        **more: ArrayLike,
    ) -> tuple[Array, Array]:
        """Lower and upper limit of the law itself (not of a new run), from its covariance and
        Student's t.

        It assumes independent residuals: under a model effect it is too narrow (see `intervals`).
        """
        value, jacobian = self._at(n, d, more)
        half = student.ppf((1 + level) / 2, self.df) * np.sqrt(
            np.maximum(np.einsum("pm,pq,qm->m", jacobian, self.covariance, jacobian), 0.0)
        ).reshape(value.shape)
        half = np.minimum(half, EXP_LIMIT)  # beyond it the band is endless for any purpose
        return np.exp(value - half), np.exp(value + half)

    def extrapolation(self, n: float | None = None, d: float | None = None, **more: float) -> float:
        """By what factor the point lies outside the fitted range in its worst variable, or 1."""
        factor = 1.0
        for name, value in {"n": n, "d": d, **more}.items():
            if value is not None and name in self.form.variables:
                column = self.table.columns[name]
                factor = max(
                    factor, value / column.max(), column[column > 0].min() / max(value, 1e-300)
                )
        return factor

    @cached_property
    def residuals(self) -> Array:
        """log loss - log prediction, (M,)."""
        return np.log(self.table.loss) - np.log(self.predict(**self.table.columns))

    @cached_property
    def free(self) -> NDArray[np.bool_]:
        """Which parameters are neither fixed nor at a bound, (P,)."""
        low, high = bounds_of(self.form)
        fixed = np.array([name in self.known for name in self.form.names])
        return ~fixed & (self.theta > low) & (self.theta < high)

    @property
    def n_free(self) -> int:
        """Parameters determined by the data (those at a bound included)."""
        return len(self.theta) - len(self.known)

    @property
    def df(self) -> int:
        """Residual degrees of freedom, at least 1."""
        return max(1, len(self.table) - self.n_free)

    @property
    def sigma(self) -> float:
        """Residual standard deviation of log loss (a relative error)."""
        return float(np.sqrt(np.sum(self.table.weight * self._active**2) / self.df))

    @property
    def _active(self) -> Array:
        """Residuals, those of respected bounds set to zero."""
        r, bound = self.residuals, self.table.bound
        return np.where((bound > 0) & (r > 0) | (bound < 0) & (r < 0), 0.0, r)

    @cached_property
    def covariance(self) -> Array:
        """Covariance (P, P) of the internal coordinates; zero for those fixed or at a bound.

        Least squares: sigma^2 (J'WJ)^-1.  Huber: the sandwich of curvature and squared scores.
        """
        _, jacobian = self._at(None, None, self.table.columns)
        target = self._target()
        live = target.weights * ((self.table.bound == 0) | (self._active != 0))
        free = np.flatnonzero(self.free)
        j = jacobian[free]
        out = np.zeros((len(self.theta), len(self.theta)))
        if not len(free):
            return out
        if np.isinf(self.delta):
            inner = self.sigma**2 * _invert((j * live) @ j.T)
        else:
            psi = live * np.clip(-self._active, -self.delta, self.delta)
            x = self._variables(self.table.columns)
            curvature = self.form.shape.second(
                self.theta[:, None], x, jacobian[:, None], psi[None]
            )[..., 0]
            bread = _invert(
                (j * (live * (np.abs(self._active) <= self.delta))) @ j.T
                + curvature[np.ix_(free, free)]
            )
            inner = bread @ ((j * psi**2) @ j.T) @ bread * len(self.table) / self.df
        out[np.ix_(free, free)] = inner
        return out

    @cached_property
    def standard_errors(self) -> dict[str, float]:
        """By the delta method; of the logarithm for constants (a relative error), else plain."""
        return dict(zip(self.form.names, self._printed_sd.tolist(), strict=True))

    @cached_property
    def printed_covariance(self) -> Array:
        """Covariance of the printed parameters, constants as logarithms."""
        return np.asarray(self.printed_slope @ self.covariance @ self.printed_slope.T)

    @property
    def _printed_sd(self) -> Array:
        return np.sqrt(np.maximum(np.diag(self.printed_covariance), 0.0))

    @cached_property
    def printed_slope(self) -> Array:
        """d printed parameters (constants as logarithms) / d internal coordinates, (P, P)."""
        step = 1e-5 * np.maximum(np.abs(self.theta), 1e-2)
        shifted = np.concatenate([np.diag(step), -np.diag(step)], axis=1)
        theta = self.theta[:, None] + shifted
        natural = to_natural(self.form.shape, theta, self.centre)
        up, down = np.split(log_constants(self.form.shape, natural), 2, axis=1)
        return np.asarray((up - down) / (2 * step))

    def jacobian(self, table: Table) -> Array:
        """d log-prediction / d internal coordinates at the rows of `table`, (P, M)."""
        return self._at(None, None, table.columns)[1]

    @cached_property
    def correlation(self) -> Array:
        """Correlation (P, P) of the printed parameters; nan where one is fixed or at a bound."""
        sd = self._printed_sd
        with np.errstate(invalid="ignore", divide="ignore"):
            return self.printed_covariance / np.outer(sd, sd)

    @cached_property
    def condition(self) -> float:
        """Condition number of the scaled normal matrix: above 1e8 the law is not identified."""
        _, jacobian = self._at(None, None, self.table.columns)
        j = jacobian[self.free] * np.sqrt(self.table.weight)
        norm = np.linalg.norm(j, axis=1, keepdims=True)
        if not len(j):
            return 1.0
        return float(np.linalg.cond(j / np.maximum(norm, 1e-300)) ** 2)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What weakens this fit, in words."""
        found = self.table.warnings()
        if len(self.table) < 2 * self.n_free:
            found.append(
                f"{len(self.table)} points for {self.n_free} parameters: fewer than two each"
            )
        low, high = bounds_of(self.form)
        for i, parameter in enumerate(self.form.shape.parameters):
            if parameter.name in self.known:
                continue
            if self.theta[i] <= low[i] + 1e-12:
                said = (
                    "the data are described without it"
                    if low[i] == 0
                    else "at the end of its range"
                )
                found.append(
                    f"{parameter.name} is at its lower bound: {said}, "
                    "only an upper limit can be given"
                )
            elif self.theta[i] >= high[i] - 1e-12:
                found.append(
                    f"{parameter.name} is at its upper bound: the data do not limit it from above"
                )
        if self.condition > 1e8:
            known = np.isfinite(self.condition)
            how = f"condition number {self.condition:.1e}" if known else "the problem is singular"
            found.append(f"parameters are not identified ({how})")
        rivals = [o for o in self.record.optima[1:] if o[0] < 1.05 * self.cost + 1e-12]
        if rivals:
            found.append(f"{len(rivals)} other optima within 5 % of the cost: see record.optima")
        return tuple(found)

    def report(self) -> str:
        """The fit in plain text: parameters, errors, record of the optimiser, warnings."""
        return report.text(self)

    def to_json(self) -> str:
        """Everything needed to rebuild the fit (`from_json`), with the points and the warnings."""
        return json.dumps(report.data(self), indent=1)

    def _at(
        self, n: ArrayLike | None, d: ArrayLike | None, more: Mapping[str, ArrayLike]
    ) -> tuple[Array, Array]:
        """Log-prediction of the broadcast shape, and Jacobian (P, M) over its flattened points."""
        given = {"n": n, "d": d, **more}
        missing = [name for name in self.form.variables if given.get(name) is None]
        if missing:
            raise UserError(
                f"the {self.form.title} needs {', '.join(missing)}", remedy="give every variable"
            )
        wanted = {name: np.asarray(given[name], dtype=float) for name in self.form.variables}
        shape = np.broadcast_shapes(*(v.shape for v in wanted.values()))
        flat = {name: np.broadcast_to(v, shape).ravel() for name, v in wanted.items()}
        value, jacobian = self.form.shape.evaluate(self.theta[:, None], self._variables(flat))
        return (value[0] + self.centre["loss"]).reshape(shape), jacobian[:, 0]

    def _variables(self, columns: Mapping[str, Array]) -> dict[str, Array]:
        return stack_variables(columns, self.form.variables, self.centre)

    def _target(self) -> Target:
        return target_of(self.table, self.centre, self.delta)


def _invert(matrix: Array) -> Array:
    """Inverse of a symmetric matrix, scaled first; a pseudo-inverse where it is singular."""
    scale = np.sqrt(np.maximum(np.abs(np.diag(matrix)), 1e-300))
    return np.asarray(
        np.linalg.pinv(matrix / np.outer(scale, scale), rcond=1e-14) / np.outer(scale, scale)
    )
