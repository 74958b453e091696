"""Sums of power-law terms: product, additive, floors, head starts, transfer, steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from repro.laws.shapes import EXP_LIMIT, Array, Kind, Parameter, Shape, Variables


@dataclass(frozen=True)
class Term:
    """coefficient x product of (variable + shift)^(sign x exponent); `powers` = (variable,
    exponent, sign).

    A linear term's coefficient may be zero (a floor); another's is kept as a logarithm.
    With `radius` the constant is printed as X of (X/v)^exponent.
    """

    coefficient: str
    powers: tuple[tuple[str, str, float], ...] = ()
    linear: bool = False
    radius: bool = False


@dataclass(frozen=True)
class PowerSum(Shape):
    """A sum of power-law terms: product, additive, floors, D0, transfer, steps."""

    terms: tuple[Term, ...]
    meanings: Mapping[str, str]
    shifts: Mapping[str, str] = field(default_factory=dict)  # variable -> name of its shift
    signed: bool = False  # exponents of either sign (the steps law)
    parameters: tuple[Parameter, ...] = field(init=False)
    variables: tuple[str, ...] = field(init=False)
    may_be_zero: frozenset[str] = field(init=False)
    _index: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        found: dict[str, Parameter] = {}
        variables: dict[str, None] = {}
        for term in self.terms:
            found[term.coefficient] = self._coefficient(term)
            for variable, exponent, _ in term.powers:
                low = -10.0 if self.signed else 0.0
                start = (-1.0, 1.5) if self.signed else (0.05, 1.5)
                found.setdefault(
                    exponent,
                    Parameter(exponent, self.meanings[exponent], "exponent", (low, 10.0), start),
                )
                variables[variable] = None
        for variable, name in self.shifts.items():
            found[name] = Parameter(
                name, self.meanings[name], "shift", (0.0, 1e3), (0.0, 2.0), variable=variable
            )
        object.__setattr__(self, "parameters", tuple(found.values()))
        object.__setattr__(self, "variables", tuple(variables))
        object.__setattr__(self, "may_be_zero", frozenset(self.shifts))
        object.__setattr__(self, "_index", {name: i for i, name in enumerate(found)})

    def _coefficient(self, term: Term) -> Parameter:
        meaning = self.meanings[term.coefficient]
        if term.linear:
            return Parameter(
                term.coefficient, meaning, "level", (0.0, 50.0), (0.0, 0.9), term.powers
            )
        kind: Kind = "radius" if term.radius else "constant"
        return Parameter(term.coefficient, meaning, kind, (-60.0, 60.0), (-3.0, 0.5), term.powers)

    def _shifted(self, theta: Array, x: Variables) -> dict[str, Array]:
        """log of (variable + shift), (M,) or (B, M)."""
        out = {}
        for variable in self.variables:
            value = x[variable]
            if variable in self.shifts:
                shift = theta[self._index[self.shifts[variable]]][:, None]
                value = np.log(np.maximum(np.exp(value) + shift, 1e-300))
            out[variable] = value
        return out

    def _terms(self, theta: Array, logs: Mapping[str, Array]) -> tuple[Array, list[Array]]:
        """Prediction (B, M) and each term's slope in its coefficient, (B, M)."""
        shape = (theta.shape[1], next(iter(logs.values())).shape[-1])
        total, slopes = np.zeros(shape), []
        for term in self.terms:
            coefficient = theta[self._index[term.coefficient]][:, None]
            if not term.powers and term.linear:
                total += coefficient
                slopes.append(np.ones((1, 1)))
                continue
            slope = np.zeros(shape) if term.linear else np.repeat(coefficient, shape[1], axis=1)
            for variable, name, sign in term.powers:
                slope += (sign * theta[self._index[name]])[:, None] * logs[variable]
            np.exp(np.minimum(slope, EXP_LIMIT, out=slope), out=slope)
            total += coefficient * slope if term.linear else slope
            slopes.append(slope)
        return total, slopes

    def evaluate(self, theta: Array, x: Variables) -> tuple[Array, Array]:
        logs = self._shifted(theta, x)
        total, slopes = self._terms(theta, logs)
        total = np.maximum(total, 1e-300, out=total)
        inverse = 1.0 / total
        jacobian = np.empty((len(theta), *total.shape))
        filled: set[str] = set()
        for term, slope in zip(self.terms, slopes, strict=True):
            c = self._index[term.coefficient]
            np.multiply(slope, inverse, out=jacobian[c])
            share = jacobian[c] * theta[c][:, None] if term.linear else jacobian[c]
            for variable, name, sign in term.powers:
                self._add(jacobian, filled, name, share, sign * logs[variable])
                if variable in self.shifts:
                    elasticity = (sign * theta[self._index[name]])[:, None] / np.exp(logs[variable])
                    self._add(jacobian, filled, self.shifts[variable], share, elasticity)
        return np.log(total), jacobian

    def _add(
        self, jacobian: Array, filled: set[str], name: str, share: Array, factor: Array
    ) -> None:
        """Add share x factor to a row of the Jacobian, or fill it where it is still empty."""
        row = jacobian[self._index[name]]
        if name in filled:
            row += share * factor
        else:
            np.multiply(share, factor, out=row)
            filled.add(name)

    def bending(
        self, theta: Array, x: Variables, jacobian: Array, psi: Array
    ) -> tuple[Array, bool]:
        if self.shifts:
            return super().bending(theta, x, jacobian, psi)
        out = np.zeros((len(theta), len(theta), theta.shape[1]))
        for term in self.terms:
            c = self._index[term.coefficient]
            slope = psi * jacobian[c]  # d log-prediction / d coefficient
            share = slope * theta[c][:, None] if term.linear else slope
            if not term.linear:
                out[c, c] += share.sum(axis=1)
            for variable, name, sign in term.powers:
                e = self._index[name]
                cross = slope @ (sign * x[variable])
                out[c, e] += cross
                out[e, c] += cross
                for other, other_name, other_sign in term.powers:
                    both = sign * other_sign * x[variable] * x[other]
                    out[e, self._index[other_name]] += share @ both
        return out, True

    def guess(self, draws: Array, x: Variables, y: Array, weights: Array) -> Array:
        """Exponents and shifts as drawn; the coefficients by non-negative least squares."""
        return self.resolve(super().guess(draws, x, y, weights), x, y, weights)

    def resolve(self, theta: Array, x: Variables, y: Array, weights: Array) -> Array:
        """theta (P, B) with its coefficients re-solved by non-negative least squares."""
        logs = self._shifted(theta, x)
        columns = []
        for term in self.terms:
            exponent = np.zeros((theta.shape[1], len(y)))
            for variable, name, sign in term.powers:
                exponent = exponent + sign * theta[self._index[name]][:, None] * logs[variable]
            columns.append(np.exp(np.clip(exponent - y, -EXP_LIMIT, EXP_LIMIT)))
        solved = _nonnegative(np.stack(columns), weights)
        theta = theta.copy()
        for term, value in zip(self.terms, solved, strict=True):
            theta[self._index[term.coefficient]] = (
                np.minimum(value, 50.0)
                if term.linear
                else np.clip(np.log(np.maximum(value, 1e-3)), -50, 50)
            )
        return theta


def _nonnegative(columns: Array, weights: Array) -> Array:
    """argmin over c >= 0 of sum w (1 - sum_k c_k columns_k)^2, batched: columns (K, B, M) -> (K,
    B).

    Exact: every subset of active columns is solved (K is at most 4), the best feasible one is kept.
    """
    size, batch, _ = columns.shape
    weighted = columns * weights
    gram = np.einsum("kbm,lbm->bkl", weighted, columns)
    right = weighted.sum(axis=2).T
    best = np.full(batch, np.inf)
    solution = np.zeros((size, batch))
    for mask in range(1, 2**size):
        chosen = [k for k in range(size) if mask >> k & 1]
        part = gram[:, chosen][:, :, chosen]
        ridge = (
            1e-11 * np.trace(part, axis1=1, axis2=2)[:, None, None] * np.eye(len(chosen)) + 1e-300
        )
        value = np.linalg.solve(part + ridge, right[:, chosen, None])[..., 0]
        loss = -np.einsum("bk,bk->b", value, right[:, chosen])
        better = (value >= 0).all(axis=1) & (loss < best)
        best[better] = loss[better]
        solution[:, better] = 0.0
        solution[np.ix_(np.array(chosen), np.flatnonzero(better))] = value[better].T
    return solution
