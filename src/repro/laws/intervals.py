"""Intervals of a fit's parameters, with the method stated and its limits in words.

The default follows the form.  One power product (product, steps, single laws): the t-interval of
the regression of model means on log N and of size means on log D, exact on balanced grids even
where every model has an effect of its own.  Other forms by least squares: F-calibrated profile of
exponents, floors and head starts, t-scaled Wald of the constants.  Huber fits: case bootstrap.
Measured coverage of each: docs/laws.md.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.stats import norm
from scipy.stats import t as student

from repro.errors import UserError
from repro.laws.components import grouped_errors
from repro.laws.effects import balanced, between
from repro.laws.fit import Fit
from repro.laws.powersum import PowerSum
from repro.laws.profile import is_plain, profile
from repro.laws.resample import Sample, bootstrap
from repro.laws.shapes import EXP_LIMIT, LOGGED, Array, Parameter, log_constants, to_natural

Method = Literal["auto", "means", "effects", "wald", "profile", "bootstrap"]


class Intervals(dict[str, tuple[float, float]]):
    """Parameter -> (low, high); with `level`, `method` and `notes` in words."""

    def __init__(
        self,
        values: dict[str, tuple[float, float]],
        level: float,
        method: str,
        notes: tuple[str, ...] = (),
    ) -> None:
        super().__init__(values)
        self.level, self.method, self.notes = level, method, notes


def intervals(
    fitted: Fit,
    level: float = 0.95,
    method: Method = "auto",
    rng: np.random.Generator | None = None,
    draws: int = 1000,
) -> Intervals:
    """Intervals of every parameter that the data determine.

    method: "means" (a power product only), "effects" (any law in N and D, models and sizes with
    effects of their own), "wald" (plain least-squares errors and Student's t), "profile",
    "bootstrap" (cases resampled; needs `rng`).  Raises `UserError` where it does not apply.
    """
    if method == "auto":
        if not np.isinf(fitted.delta):
            method = "bootstrap" if rng is not None else "wald"
        else:
            method = "means" if is_power_product(fitted) else "profile"
    if method == "means":
        return _means(fitted, level)
    if method == "effects":
        return _effects(fitted, level)
    if method == "profile":
        return _profile(fitted, level)
    if method == "bootstrap":
        return _bootstrap(fitted, level, rng, draws)
    return _wald(fitted, level)


def widened(found: Intervals, evaluation: Sample) -> Intervals:
    """`found` with the evaluation sample's share added: half widths in quadrature.

    evaluation: from `resample_evaluation`.  On the logarithm for constants.
    """
    z = float(norm.ppf((1 + found.level) / 2))
    form = evaluation.fitted.form
    logs = log_constants(
        form.shape, to_natural(form.shape, evaluation.theta, evaluation.fitted.centre)
    )
    out = {}
    for name, (low, high) in found.items():
        extra = z * float(logs[form.names.index(name)].std(ddof=1))
        value = evaluation.fitted.parameters[name]
        logged = form.parameter(name).kind in LOGGED
        sides = [np.log(value / end) if logged else value - end for end in (low, high)]
        below, above = (float(np.hypot(side, extra)) for side in sides)
        out[name] = _around(form.parameter(name), value, below, above)
    method = f"{found.method}, with the evaluation sample"
    return Intervals(out, found.level, method, found.notes)


def is_power_product(fitted: Fit) -> bool:
    """Whether the law is a straight plane in logarithms (product, steps, single laws)."""
    shape = fitted.form.shape
    return (
        isinstance(shape, PowerSum)
        and len(shape.terms) == 1
        and not shape.terms[0].linear
        and not shape.shifts
        and not fitted.known
    )


def _means(fitted: Fit, level: float) -> Intervals:
    if not is_power_product(fitted) or not np.isinf(fitted.delta):
        raise UserError(
            f"group means give no interval for the {fitted.form.title}",
            remedy="method='profile' or 'bootstrap'",
        )
    shape = fitted.form.shape
    assert isinstance(shape, PowerSum)
    term = shape.terms[0]
    names = tuple(variable for variable, _, _ in term.powers)
    slopes = {v: between(fitted.table, v, tuple(o for o in names if o != v)) for v in names}
    wald = _wald(fitted, level)
    out, notes = dict(wald), list(wald.notes)
    spread, spread_df = 0.0, 0.0
    centres = {v: float(np.mean(np.log(np.unique(fitted.table.columns[v])))) for v in names}
    for variable, exponent, sign in term.powers:
        slope = slopes[variable]
        if slope is None:
            notes.append(
                f"{exponent}: fewer than three values of {variable}, or not enough cells that share a value "
                "of the other variable: plain least squares, which a model or size effect makes too narrow"
            )
            continue
        half = float(student.ppf((1 + level) / 2, slope.df)) * slope.error
        out[exponent] = (sign * slope.value - half, sign * slope.value + half)
        for variance in (slope.spread / slope.groups, (slope.error * centres[variable]) ** 2):
            spread += variance
            spread_df += variance**2 / slope.df
    if all(slopes.values()) and spread > 0:
        name = term.coefficient
        df = spread**2 / spread_df  # Satterthwaite
        if term.radius:
            df = min(df, min(s.df for s in slopes.values() if s))
        half = float(student.ppf((1 + level) / 2, df)) * float(np.sqrt(spread))
        if term.radius:
            steepness = abs(fitted.parameters[term.powers[0][1]])
            half = half / steepness if steepness > 0 else float("inf")
        value = fitted.parameters[name]
        out[name] = _factor(value, half)
    exact = fitted.table.take(fitted.table.bound == 0)
    if not balanced(exact.means(), names):
        notes.append(
            "the grid is not balanced: group means are adjusted for missing cells and the "
            "interval is approximate (measured coverage in docs/laws.md)"
        )
    elif not balanced(exact, names):
        notes.append(
            "cells have different numbers of runs: the interval takes every cell's mean for one fact, "
            "the estimate weighs a cell by its runs"
        )
    return Intervals(
        out,
        level,
        "t on the means of each model and of each size (exact if balanced)",
        tuple(notes),
    )


def _effects(fitted: Fit, level: float) -> Intervals:
    errors, df = grouped_errors(fitted)
    out = _symmetric(fitted, errors * student.ppf((1 + level) / 2, df))
    notes = [f"{n}: at its bound, no such interval" for n in _pinned(fitted)]
    if not balanced(fitted.table, ("n", "d")):
        notes.append("the grid is not balanced: approximate (measured coverage in docs/laws.md)")
    return Intervals(out, level, "variance components of models and of sizes, t", tuple(notes))


def _symmetric(fitted: Fit, half: Array) -> dict[str, tuple[float, float]]:
    """Estimate -+ half (P,), on the logarithm for constants; free parameters only."""
    out = {}
    for i, name in enumerate(fitted.form.names):
        if name in fitted.known or not fitted.free[i]:
            continue
        value, step = fitted.parameters[name], float(half[i])
        out[name] = _around(fitted.form.parameter(name), value, step, step)
    return out


def _around(parameter: Parameter, value: float, below: float, above: float) -> tuple[float, float]:
    """value - below to value + above, within the parameter's range; factors for constants."""
    if parameter.kind in LOGGED:
        return _factor(value, below)[0], _factor(value, above)[1]
    low, high = parameter.bounds if parameter.kind in ("exponent", "free") else (0.0, np.inf)
    return max(low, value - below), min(high, value + above)


def _factor(value: float, step: float) -> tuple[float, float]:
    """value exp(-+ step); from 0 to infinity where nothing is known of it."""
    if not step <= EXP_LIMIT:  # nan too: an exponent of 0 says nothing of its constant
        return 0.0, float("inf")
    return value * float(np.exp(-step)), value * float(np.exp(step))


def _wald(fitted: Fit, level: float) -> Intervals:
    factor = float(student.ppf((1 + level) / 2, fitted.df))
    errors = np.array([fitted.standard_errors[name] for name in fitted.form.names])
    out = _symmetric(fitted, factor * errors)
    notes = tuple(f"{n}: at its bound, no such interval" for n in _pinned(fitted))
    return Intervals(out, level, "t-scaled standard errors (every row an independent fact)", notes)


def _profile(fitted: Fit, level: float) -> Intervals:
    if not np.isinf(fitted.delta):
        raise UserError(
            "profile intervals are calibrated for least squares only", remedy="method='bootstrap'"
        )
    out = dict(_wald(fitted, level))
    plain = [n for n in fitted.form.names if n not in fitted.known and is_plain(fitted, n)]
    if fitted.cost > 1e-24 * len(fitted.table):
        out |= profile(fitted, plain, level)
    notes = [f"{n}: at its bound, so the interval is one-sided" for n in _pinned(fitted)]
    notes.append(MODEL_EFFECT_WARNING)
    ordered = {name: out[name] for name in fitted.form.names if name in out}
    return Intervals(
        ordered, level, "F-calibrated profile likelihood (constants: t-scaled Wald)", tuple(notes)
    )


MODEL_EFFECT_WARNING = (
    "rows are taken as independent: if models have effects of their own of 2 %, these 95 % "
    "intervals of exponents cover about 62 to 97 %; method='effects' does not assume it (docs/laws.md)"
)


def _bootstrap(fitted: Fit, level: float, rng: np.random.Generator | None, draws: int) -> Intervals:
    if rng is None:
        raise UserError(
            "a bootstrap needs randomness", remedy="pass rng=repro.seeds.stream(seed, 'intervals')"
        )
    sample = bootstrap(fitted, draws, rng)
    natural = to_natural(fitted.form.shape, sample.theta, fitted.centre)
    tails = 50 * (1 - level), 50 * (1 + level)
    low, high = np.percentile(log_constants(fitted.form.shape, natural), tails, axis=1)
    out = {}
    for i, parameter in enumerate(fitted.form.shape.parameters):
        if parameter.name in fitted.known:
            continue
        ends = (float(low[i]), float(high[i]))
        if parameter.kind in LOGGED:
            ends = (float(np.exp(ends[0])), float(np.exp(ends[1])))
        out[parameter.name] = ends
    note = "rows resampled as independent; with few rows percentile intervals are somewhat short"
    return Intervals(out, level, f"case bootstrap, {draws} resamples, percentiles", (note,))


def _pinned(fitted: Fit) -> list[str]:
    return [
        n for i, n in enumerate(fitted.form.names) if n not in fitted.known and not fitted.free[i]
    ]
