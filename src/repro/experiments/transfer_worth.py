"""Labels that a pre-training is worth: D0 of c (f + D0)^-beta, and how far curves lie apart."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import f as fisher

from repro.errors import UserError
from repro.experiments.answer import finite, interval
from repro.laws.fit import fit
from repro.laws.intervals import intervals
from repro.laws.resample import bootstrap
from repro.laws.shapes import Array
from repro.laws.table import Table
from repro.laws.transfer import HEAD_START

DRAWS = 200
LEAST_F = 5  # sizes that (c, beta, D0) take, and two to spare
_ROUNDS = 150
_BETA, _LEAST, _MOST = (1e-3, 10.0), 1e-2, 1e3  # D0 from .01 pairs to a thousand times the most


def head_starts(table: Table, rng: np.random.Generator) -> dict[str, Any]:
    """D0 of each checkpoint of one target, in two ways (plain data).

    rows: a row a checkpoint.  d0: on a curve of its own, c and beta free (F-calibrated profile
    interval).  shared: on one curve, c and beta common to all checkpoints, so that the D0 are on one
    scale (interval over resampled residuals); paid: the same from the rows with labels alone, where
    nothing forces D0 above 0.
    growth, shared_growth: slope of log D0 on log p with interval; p_shared: the F-test of one curve
    against curves of their own (small: one curve does not describe them).
    """
    own, draws = _own(table, rng)
    labelled = table.columns["f"] > 0
    shared = _Shared.of(table)
    paid = _Shared.of(table.take(labelled)) if labelled.any() else None
    drawn = shared.draws(rng) if shared else None
    drawn_paid = paid.draws(rng) if paid else None
    for row in own:
        for name, curve, sample in (("shared", shared, drawn), ("paid", paid, drawn_paid)):
            at = list(curve.steps).index(row["p"]) if curve and row["p"] in curve.steps else None
            row[name] = None if at is None else finite(float(curve.d0[at]))  # type: ignore[union-attr]
            row[f"{name}_ci95"] = None if at is None or sample is None else _ends(sample[:, at])
    steps = np.array([row["p"] for row in own if row["d0"] is not None])
    values = np.array([row["d0"] for row in own if row["d0"] is not None])
    return {
        "rows": own,
        "growth": _growth(steps, values, draws),
        "shared_growth": _growth(shared.steps, shared.d0, drawn) if shared else None,
        "shared_beta": finite(float(shared.theta[1])) if shared else None,
        "shared_residual": finite(shared.sigma) if shared else None,
        "p_shared": _one_curve(table, shared, own),
    }


def equivalents(table: Table) -> list[dict[str, Any]]:
    """Pairs that the least pre-trained start needs beyond f to be as good as another one with f.

    A row a later checkpoint and size: p, f, loss (nats), pairs (None: more than `beyond`, for the
    first checkpoint never gets there on what was run).  Between sizes by interpolation in log f.
    """
    exact = table.take(table.bound == 0)
    p, f = exact.columns["p"], exact.columns["f"]
    steps = np.unique(p)
    if len(steps) < 2 or not (f > 0).any():
        return []
    first = p == steps[0]
    order = np.argsort(f[first])
    sizes, reached = f[first][order], np.minimum.accumulate(exact.loss[first][order])
    shift = f[f > 0].min()
    rows = []
    for step in steps[1:]:
        for i in np.flatnonzero(p == step)[np.argsort(f[p == step])]:
            loss, pairs = float(exact.loss[i]), None
            if loss >= reached[-1]:
                at = np.interp(-np.log(loss), -np.log(reached), np.log(sizes + shift))
                pairs = float(np.exp(at) - shift - f[i])
            row = {"p": int(step), "f": int(f[i]), "loss": loss, "pairs": pairs}
            rows.append(row | {"beyond": float(sizes[-1] - f[i])})
    return rows


def _own(table: Table, rng: np.random.Generator) -> tuple[list[dict[str, Any]], Array | None]:
    """A row a checkpoint, and draws of D0 (R, checkpoints that have one)."""
    rows, draws = [], []
    p, f = table.columns["p"], table.columns["f"]
    for step in np.unique(p):
        mine = (p == step) & (table.bound == 0)
        start = table.loss[mine & (f == 0)]
        row: dict[str, Any] = {"p": int(step), "n": int(mine.sum()), "d0": None, "ci95": None}
        row |= {"beta": None, "residual": None, "note": "", "rss": None}
        row["zero_shot"] = float(start[0]) if len(start) else None
        rows.append(row)
        if mine.sum() < LEAST_F:
            row["note"] = f"{mine.sum()} sizes reached a minimum: c, beta and D0 take {LEAST_F}"
            continue
        try:
            fitted = fit(HEAD_START, Table(table.loss[mine], extra={"f": f[mine]}))
        except UserError as error:
            row["note"] = error.what
            continue
        with np.errstate(over="ignore"):
            row["ci95"] = interval(intervals(fitted).get("D0"))
        row |= {"d0": finite(fitted.parameters["D0"]), "beta": finite(fitted.parameters["beta"])}
        row |= {"residual": finite(fitted.sigma), "rss": float(np.sum(fitted.residuals**2))}
        row["note"] = "; ".join(note for note in fitted.warnings if "bound" in note)
        draws.append(bootstrap(fitted, DRAWS, rng, "residuals").parameters["D0"])
    return rows, np.array(draws).T if draws else None


class _Shared:
    """One curve c (f + D0_p)^-beta for all checkpoints: least squares on log loss.

    theta (B, 2 + checkpoints): log c, beta and each log D0; many problems (B) are solved at once.
    """

    def __init__(self, table: Table) -> None:
        self.f, self.y = table.columns["f"], np.log(table.loss)
        self.steps, self.place = np.unique(table.columns["p"], return_inverse=True)
        k, most = len(self.steps), np.log(_MOST * self.f.max())
        self.low = np.array([-50.0, _BETA[0], *[np.log(_LEAST)] * k])
        self.high = np.array([50.0 + _BETA[1] * most, _BETA[1], *[most] * k])
        middle = float(np.log(self.f[self.f > 0].mean()))
        starts = [
            [self.y.mean() + beta * middle, beta, *(middle + tilt * np.linspace(-1, 1, k))]
            for beta in (0.1, 0.3, 0.9)
            for tilt in (0.0, 2.0)
        ]
        theta, cost = self._solve(np.repeat(self.y[None], len(starts), axis=0), np.array(starts))
        self.theta, self.rss = theta[np.argmin(cost)], float(cost.min())
        self.df = len(self.y) - len(self.theta)
        self.sigma = (self.rss / self.df) ** 0.5

    @classmethod
    def of(cls, table: Table) -> _Shared | None:
        """The curve, None where the points are too few."""
        exact = table.bound == 0
        p, f = table.columns["p"][exact], table.columns["f"][exact]
        k, sizes = len(np.unique(p)), len(np.unique(f))
        if len(f) < k + 4 or sizes < LEAST_F - 1:
            return None
        return cls(table.take(exact))

    @property
    def d0(self) -> Array:
        """Pairs, by checkpoint."""
        return np.asarray(np.exp(self.theta[2:]))

    def draws(self, rng: np.random.Generator) -> Array:
        """D0 of re-fits to the curve plus resampled residuals: (R, checkpoints)."""
        law = self._law(self.theta[None])[0][0]
        pool = self.y - law
        pool = (pool - pool.mean()) * np.sqrt(len(pool) / self.df)
        noise = rng.choice(pool, (DRAWS, len(pool)))
        theta, _ = self._solve(law + noise, np.repeat(self.theta[None], DRAWS, axis=0))
        return np.asarray(np.exp(theta[:, 2:]))

    def _law(self, theta: Array) -> tuple[Array, Array]:
        """Log-prediction (B, M) and its derivatives (B, M, P)."""
        d0 = np.exp(theta[:, 2:])[:, self.place]
        logs = np.log(self.f + d0)
        slope = np.zeros((*logs.shape, theta.shape[1]))
        slope[..., 0], slope[..., 1] = 1.0, -logs
        slope[:, np.arange(len(self.f)), 2 + self.place] = -theta[:, 1:2] * d0 / (self.f + d0)
        return theta[:, :1] - theta[:, 1:2] * logs, slope

    def _solve(self, y: Array, start: Array) -> tuple[Array, Array]:
        """theta (B, P) and sum of squares (B,) below each start, for log losses y (B, M).

        Levenberg and Marquardt's steps, clipped to the bounds and taken where they lower the cost.
        """
        theta = np.clip(start, self.low, self.high)
        value, slope = self._law(theta)
        cost = np.sum((y - value) ** 2, axis=1)
        damping = np.full(len(y), 1e-3)
        unit = np.eye(theta.shape[1])
        for _ in range(_ROUNDS):
            gram = np.einsum("bmp,bmq->bpq", slope, slope)
            diagonal = np.einsum("bpp->bp", gram) + 1e-12
            right = np.einsum("bmp,bm->bp", slope, y - value)
            damped = gram + (damping[:, None] * diagonal)[..., None] * unit
            trial = theta + np.linalg.solve(damped, right[..., None])[..., 0]
            trial = np.clip(trial, self.low, self.high)
            new_value, new_slope = self._law(trial)
            new_cost = np.sum((y - new_value) ** 2, axis=1)
            better = new_cost < cost
            theta[better], value[better] = trial[better], new_value[better]
            slope[better], cost[better] = new_slope[better], new_cost[better]
            damping = np.where(better, np.maximum(damping / 5, 1e-9), np.minimum(damping * 4, 1e9))
        return theta, cost


def _growth(steps: Array, values: Array, draws: Array | None) -> dict[str, Any] | None:
    """Slope of log D0 on log p, with the interval over draws; None for fewer than three."""
    if len(steps) < 3 or draws is None:
        return None
    x = np.log(np.asarray(steps, dtype=float))
    floor = np.log(np.maximum(np.column_stack([values, draws.T]), _LEAST))
    slopes = np.polyfit(x, floor, 1)[0]
    return {"value": float(slopes[0]), "ci95": _ends(slopes[1:]), "n": len(steps)}


def _one_curve(table: Table, shared: _Shared | None, own: list[dict[str, Any]]) -> float | None:
    fitted = [row for row in own if row["rss"] is not None]
    if shared is None or len(fitted) < 2 or len(fitted) < len(shared.steps):
        return None
    n, more = sum(row["n"] for row in fitted), 2 * len(fitted) - 2
    df = n - 3 * len(fitted)
    rest = sum(row["rss"] for row in fitted)
    if df < 1 or rest <= 0:
        return None
    return float(fisher.sf(max(shared.rss - rest, 0.0) / more / (rest / df), more, df))


def _ends(values: Array) -> list[float] | None:
    low, high = np.quantile(values, [0.025, 0.975])
    return interval((float(low), float(high)))
