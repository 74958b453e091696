"""Profile likelihood: how far a parameter may move before the fit is significantly worse."""

from __future__ import annotations

import numpy as np
from scipy.stats import t as student

from repro.laws.fit import Fit
from repro.laws.problem import Problem
from repro.laws.shapes import Array

_ROUNDS = 40


def profile(fitted: Fit, names: list[str], level: float = 0.95) -> dict[str, tuple[float, float]]:
    """F-calibrated profile intervals of exponents, floors and shifts (least squares only).

    A value is inside while rss(value) <= rss (1 + F(level; 1, df)/df), all others re-fitted.  At a
    bound the interval is one-sided at the same level.  An end that is never reached is the bound.
    """
    problem = Problem(fitted.form, fitted.table, fitted.known, fitted.delta)
    low, high = problem.bounds
    rows, sides, ends, goals, steps = [], [], [], [], []
    for name in names:
        i = fitted.form.names.index(name)
        at_low, at_high = fitted.theta[i] <= low[i] + 1e-12, fitted.theta[i] >= high[i] - 1e-12
        share = level if at_low or at_high else (1 + level) / 2
        error = float(np.sqrt(fitted.covariance[i, i])) or 0.02
        for side in (-1.0, 1.0):
            rows.append(i)
            sides.append(side)
            ends.append(low[i] if side < 0 else high[i])
            goals.append(float(student.ppf(share, fitted.df)))
            steps.append(error * goals[-1])
    edge = _search(
        fitted,
        problem,
        np.array(rows),
        np.array(sides),
        np.array(ends),
        np.array(goals),
        np.array(steps),
    )
    scale = {name: natural_scale(fitted, name) for name in names}
    return {
        name: (float(edge[2 * k] * scale[name]), float(edge[2 * k + 1] * scale[name]))
        for k, name in enumerate(names)
    }


def natural_scale(fitted: Fit, name: str) -> float:
    """Printed value of one internal unit of a parameter that `is_plain`."""
    parameter = fitted.form.parameter(name)
    if parameter.kind == "level":
        return float(np.exp(fitted.centre["loss"]))
    if parameter.kind == "shift":
        return float(np.exp(fitted.centre[parameter.variable]))
    return 1.0


def is_plain(fitted: Fit, name: str) -> bool:
    """Whether the printed parameter is a multiple of one internal coordinate (can be profiled)."""
    parameter = fitted.form.parameter(name)
    return parameter.kind in ("exponent", "shift", "free") or (
        parameter.kind == "level" and not parameter.powers
    )


def _search(
    fitted: Fit,
    problem: Problem,
    rows: Array,
    sides: Array,
    ends: Array,
    goals: Array,
    steps: Array,
) -> Array:
    """Where the root of the deviance crosses its goal, for every (parameter, side) at once."""
    batch = len(rows)
    column = np.arange(batch)
    best = fitted.theta[rows]
    inner, outer = best.copy(), np.full(batch, np.nan)  # the crossing lies between them
    inner_dev, outer_dev = np.zeros(batch), np.full(batch, np.nan)
    theta = np.repeat(
        fitted.theta[:, None], batch, axis=1
    )  # solutions at `inner`: where to start from
    trial = np.where(sides < 0, np.maximum(best - steps, ends), np.minimum(best + steps, ends))
    frozen = np.repeat(problem.frozen[:, None], batch, axis=1)
    frozen[rows, column] = True
    done = inner == ends
    for _ in range(_ROUNDS):
        if done.all():
            break
        start = theta.copy()
        start[rows, column] = np.where(done, inner, trial)
        found = problem.constrained(start, frozen)
        deviance = np.sqrt(np.maximum(found.cost / fitted.cost - 1.0, 0.0) * fitted.df)
        beyond = deviance >= goals
        theta = np.where(beyond | done, theta, found.theta)
        at_end = ~beyond & (trial == ends)
        outer, outer_dev = np.where(beyond, trial, outer), np.where(beyond, deviance, outer_dev)
        inner, inner_dev = np.where(beyond, inner, trial), np.where(beyond, inner_dev, deviance)
        closed = np.isfinite(outer)
        done |= (
            at_end
            | (np.abs(deviance - goals) < 1e-5)
            | (closed & (np.abs(outer - inner) < 1e-9 * np.abs(outer)))
        )
        inner = np.where(done & ~at_end & beyond, trial, inner)
        share = np.clip(
            (goals - inner_dev) / np.where(closed, outer_dev - inner_dev, 1.0), 0.05, 0.95
        )
        wider = inner + sides * np.maximum(np.abs(inner - best) * 1.5, steps)
        wider = np.where(sides < 0, np.maximum(wider, ends), np.minimum(wider, ends))
        trial = np.where(done, inner, np.where(closed, inner + share * (outer - inner), wider))
    return inner
