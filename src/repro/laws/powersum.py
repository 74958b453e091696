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

    def _shares(
        self, theta: Array, logs: Mapping[str, Array]
    ) -> tuple[Array, list[Array], list[Array]]:
        """Log-prediction (B, M); each term's share of it; d log-prediction / d coefficient."""
        values = []
        for term in self.terms:
            coefficient = theta[self._index[term.coefficient]][:, None]
            if not term.powers:
                values.append((coefficient if term.linear else np.exp(coefficient), None))
                continue
            exponent = 0.0 if term.linear else coefficient
            for variable, name, sign in term.powers:
                exponent = exponent + sign * theta[self._index[name]][:, None] * logs[variable]
            power = np.exp(np.clip(exponent, -EXP_LIMIT, EXP_LIMIT))
            values.append((coefficient * power, power) if term.linear else (power, None))
        total = sum((v for v, _ in values), np.zeros((theta.shape[1], 1)))
        if total.shape[1] == 1:
            total = np.broadcast_to(total, (theta.shape[1], len(next(iter(logs.values())))))
        inverse = 1.0 / np.maximum(total, 1e-300)
        shares = [value * inverse for value, _ in values]
        slopes = []
        for term, (_, power), share in zip(self.terms, values, shares, strict=True):
            if not term.linear:
                slopes.append(share)
            else:
                slopes.append(inverse if power is None else power * inverse)
        return np.log(np.maximum(total, 1e-300)), shares, slopes

    def evaluate(self, theta: Array, x: Variables) -> tuple[Array, Array]:
        logs = self._shifted(theta, x)
        value, shares, slopes = self._shares(theta, logs)
        jacobian = np.zeros((len(theta), *value.shape))
        for term, share, slope in zip(self.terms, shares, slopes, strict=True):
            jacobian[self._index[term.coefficient]] = slope
            for variable, name, sign in term.powers:
                jacobian[self._index[name]] += share * (sign * logs[variable])
                if variable in self.shifts:
                    elasticity = share * (sign * theta[self._index[name]][:, None])
                    jacobian[self._index[self.shifts[variable]]] += elasticity / np.exp(
                        logs[variable]
                    )
        return value, jacobian

    def second(self, theta: Array, x: Variables, jacobian: Array, psi: Array) -> Array:
        if self.shifts:
            return super().second(theta, x, jacobian, psi)
        _, shares, slopes = self._shares(theta, x)
        out = np.zeros((len(theta), len(theta), theta.shape[1]))
        for term, share, slope in zip(self.terms, shares, slopes, strict=True):
            c = self._index[term.coefficient]
            weighted_share, weighted_slope = psi * share, psi * slope
            if not term.linear:
                out[c, c] += weighted_share.sum(axis=1)
            for variable, name, sign in term.powers:
                e = self._index[name]
                cross = weighted_slope @ (sign * x[variable])
                out[c, e] += cross
                out[e, c] += cross
                for other, other_name, other_sign in term.powers:
                    out[e, self._index[other_name]] += weighted_share @ (
                        sign * other_sign * x[variable] * x[other]
                    )
        for p in range(len(theta)):
            weighted = psi * jacobian[p]
            for q in range(p, len(theta)):
                both = np.einsum("bm,bm->b", weighted, jacobian[q])
                out[p, q] -= both
                if q != p:
                    out[q, p] -= both
        return out

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
