"""What a law says of runs that it was not fitted to: left-out models and sizes, the corner, few runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from repro.errors import UserError
from repro.experiments import law_fits, rivals
from repro.experiments.answer import Answer, answer, part
from repro.laws import holdout
from repro.laws.fit import fit
from repro.laws.table import Table

Mask = NDArray[np.bool_]


def left_out(form: str, table: Table, law: dict[str, Any]) -> Answer:
    """M7, S5: mean and worst relative error with one model, or one size, left out."""
    parts: dict[str, Answer] = {}
    notes = []
    for by, name in (("n", "model"), ("d", "size")):
        try:
            out = holdout.leave_one_out(form, table, by)
        except UserError as error:
            return answer(None, error.what, n=len(table), blocked=error.what)
        means = np.array([out.errors[out.group == g].mean() for g in np.unique(out.group)])
        half = law_fits.half_width(means)
        parts[f"loo_{name}"] = part(means.mean(), _above_zero(means.mean(), half))
        parts[f"worst_{name}"] = part(out.worst)
        notes.append(
            f"{len(means)} {name}s in turn: {_percent(means.mean())}, worst {_percent(out.worst)}"
        )
    for name in ("alpha", "beta"):
        if law.get("params"):
            parts[name] = part(law["params"].get(name), law["ci95"].get(name))
    pinned = f" ({law['note']})" if law.get("note") else ""
    value = max(parts["loo_model"]["value"], parts["loo_size"]["value"])
    return answer(value, "; ".join(notes) + pinned, n=len(table), parts=parts)


def corner(form: str, table: Table) -> Answer:
    """M8, C3: fitted on the smaller models and sizes, the error on the corner beyond both."""
    n_max, d_max = rivals.corner_limits(table)
    n, d = table.columns["n"], table.columns["d"]
    seen = (n <= n_max) & (d <= d_max)
    held = (n > n_max) & (d > d_max) & (table.bound == 0)
    return _foresee(form, table, seen, held, f"fit N <= {n_max:,.0f}, D <= {d_max:,.0f}")


def few_runs(form: str, table: Table) -> Answer:
    """M20, S14: the cheaper half of the cells outside the corner predicts the corner."""
    n_max, d_max = rivals.corner_limits(table)
    n, d = table.columns["n"], table.columns["d"]
    corner = (n > n_max) & (d > d_max)
    cost = np.where(corner, np.inf, n * d)
    count = int(np.ceil((~corner).sum() / 2))
    seen = np.zeros(len(table), dtype=bool)
    seen[np.argsort(cost, kind="stable")[:count]] = True
    share = (n * d)[seen].sum() / (n * d).sum()
    rule = f"the {count} cheapest cells, {100 * share:.0f} % of the compute of the grid (N x D)"
    return _foresee(form, table, seen, corner & (table.bound == 0), rule)


def single(form: str, table: Table, fixed: str, of: str) -> Answer:
    """S3, S4: R2 of a law in one variable at the largest value of the other."""
    column = table.columns[fixed]
    chosen = (column == column.max()) & (table.bound == 0)
    needed = 5  # three parameters and two to spare
    if chosen.sum() < needed:
        why = f"{chosen.sum()} {of} for 3 parameters: R2 says nothing with fewer than {needed}"
        return answer(None, why, n=int(chosen.sum()), blocked=why)
    rows = table.take(chosen)
    try:
        fitted = fit(form, rows)
    except UserError as error:
        return answer(None, error.what, n=len(rows), blocked=error.what)
    names = ", ".join(f"{k} {v:.3g}" for k, v in fitted.parameters.items())
    why = f"{len(rows)} {of} at the largest {fixed.upper()}: {names}"
    return answer(holdout.r2_level(fitted), why, n=len(rows))


def elsewhere(claims: Mapping[str, Answer]) -> Answer:
    """S10: the lower R2 of the laws in N and in D (S3, S4), on other data with another family."""
    both = [claims["S3"], claims["S4"]]
    blocked = next((each["blocked"] for each in both if each.get("blocked")), "")
    if blocked:
        return answer(None, blocked, n=0, blocked=blocked)
    r2 = min(float(each["value"]) for each in both)
    why = "the lower R2 of the laws in N and in D; " + "; ".join(each["why"] for each in both)
    return answer(r2, why, n=min(each["n"] for each in both), parts={"r2": part(r2)})


def _foresee(form: str, table: Table, seen: Mask, held: Mask, rule: str) -> Answer:
    """Mean relative error on `held` of the law fitted on `seen`, with the prediction's own interval."""
    try:
        if not held.any():
            raise UserError("the corner holds no run that reached its minimum")
        fitted = fit(form, table.take(seen))
    except UserError as error:
        return answer(None, error.what, n=int(seen.sum()), blocked=error.what)
    rows = table.take(held)
    actual, predicted = rows.loss, fitted.predict(**rows.columns)
    low, high = fitted.band(rows.n, rows.d)
    noise = student.ppf(0.975, fitted.df) * fitted.sigma
    with np.errstate(over="ignore", divide="ignore"):  # a band that is as good as endless
        half = float(np.mean(np.sqrt((np.log(high / low) / 2) ** 2 + noise**2)))
    miss = float(np.mean(np.abs(predicted / actual - 1)))
    why = (
        f"{rule}: {int(seen.sum())} cells predict {int(held.sum())}; "
        f"the fit's own 95 % prediction interval is +- {100 * min(half, 9.99):.0f} %"
    )
    return answer(miss, why, n=int(seen.sum()), ci95=_above_zero(miss, half))


def _above_zero(value: float, half: float) -> tuple[float, float]:
    return max(0.0, value - half), value + half


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if share < 9.99 else "over 999 %"
