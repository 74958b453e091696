"""Which law describes the grid?  The answers of notebook 04 to the claims of the papers.

Verdicts on the product law are taken only inside the power-law regime (see `regime`).  With few
models nearly everything is uncertain; each answer says from how many runs it comes, and its interval.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import t as student

from repro import seeds
from repro.experiments import law_fits, published, rivals
from repro.experiments.answer import Answer, answer, part
from repro.experiments.regime import Regime, find_regime, local_slopes
from repro.laws import holdout
from repro.laws.fit import fit
from repro.laws.intervals import intervals
from repro.laws.table import Table
from repro.params import UserError

Mask = NDArray[np.bool_]


def answers(table: pd.DataFrame, n: str = "n_encoder", seed: int = 1) -> dict[str, Any]:
    """Claim -> answer, with `regime`, `local_slopes`, `laws`, `exponents_by_count`, `depth`, `duels`
    and `learning_curve` beside; all plain data.

    table: one row a run (see `experiments.grid`); n: the column that counts parameters.  Raises
    `UserError` where no run is left.
    """
    slopes = local_slopes(table, n)
    regime = find_regime(slopes)
    partial = bool(regime) and not regime.whole
    grid = law_fits.losses(table, n, regime.sizes)
    law = law_fits.laws(grid)
    curve = _learning_curve(grid)
    duels, refused = _duels(grid, seed) if regime else ([], regime.reason)
    claims = {
        "M4": _parallel(grid, regime),
        "M5": _rivals(duels, refused, law, len(grid)),
        "M6": _exponents(grid),
        "M7": _left_out("product", grid, law["product"]),
        "M8": _corner("product", grid),
        "M20": _few_runs("product", grid, curve),
        "S3": _single("single_n_floor", grid, "d", "models"),
        "S4": _single("single_d_floor", grid, "n", "sizes"),
        "S5": _left_out("joint_floor", grid, law["joint_floor"]),
        "S14": _few_runs("joint_floor", grid, curve),
        "C3": _corner("additive_floor", grid),
    }
    if not regime:
        for name in ("M4", "M5", "M7", "M8", "M20"):
            claims[name]["blocked"] = regime.reason
    return {
        **claims,
        **published.answers(),
        "n_column": n,
        "states": {str(k): int(v) for k, v in table["state"].value_counts().items()},
        "regime": regime.as_dict(),
        "local_slopes": slopes.astype(object).where(slopes.notna(), None).to_dict("records"),
        "laws": law,
        "laws_all_sizes": law_fits.laws(law_fits.losses(table, n)) if partial else law,
        "exponents_by_count": law_fits.exponents_by_count(table, regime.sizes),
        "depth": law_fits.depth_at_width(table, n),
        "duels": [duel.as_dict() for duel in duels],
        "learning_curve": curve.to_dict("records"),
    }


def _parallel(table: Table, regime: Regime) -> Answer:
    """M4: do the slopes change, along a line or from line to line?  As shares of the mean slope."""
    try:
        test = holdout.interaction_test(table)
    except UserError as error:
        return answer(None, error.what, n=len(table), blocked=error.what)
    logs = _logs(table)
    x_n, x_d = np.log(logs.index.to_numpy(float)), np.log(logs.columns.to_numpy(float))
    values = logs.to_numpy()
    scale = np.ptp(x_n) / _slope(x_d, np.nanmean(values, axis=0))
    ends = sorted(scale * end for end in test.interval)
    interaction = part(scale * test.coefficient, (ends[0], ends[1]))
    p_value = f"p = {max(test.p_value, 0.001):.3f}, {test.df} degrees of freedom"
    parts = {
        "interaction": interaction,
        "bend_d": _bend(x_d, values),
        "bend_n": _bend(x_n, values.T),
    }
    why = (
        "change of the slope in D from the smallest to the largest model, as a share of the mean "
        f"slope ({p_value}); bend_d and bend_n: change along a line in D (over models) and in N "
        f"(over sizes). {regime.reason[:1].upper()}{regime.reason[1:]}."
    )
    return answer(interaction["value"], why, n=len(table), ci95=interaction["ci95"], parts=parts)


def _rivals(duels: list[rivals.Duel], refused: str, law: dict[str, Any], n: int) -> Answer:
    """M5: the smallest ratio of held-out errors, rival over product law; holds if it beats all four."""
    if not duels:
        return answer(None, refused, n=n, blocked=refused)
    outcomes = [duel.outcome for duel in duels]
    holds = True if set(outcomes) == {"product"} else False if "rival" in outcomes else None
    said = "; ".join(
        f"{law[d.rival].get('title', d.rival)}: held-out error {min(d.ratio, 99):.1f} times the product "
        f"law's (p = {d.p_rival:.3f} if it were true, {d.p_product:.3f} if the product law were)"
        for d in duels
    )
    best = min(duels, key=lambda duel: duel.ratio)
    return answer(best.ratio, said, n=n, holds=holds)


def _exponents(table: Table) -> Answer:
    """M6: alpha and beta of the product law."""
    try:
        fitted = fit("product", table)
    except UserError as error:
        return answer(None, error.what, n=len(table), blocked=error.what)
    found = intervals(fitted)
    parts = {name: part(fitted.parameters[name], found.get(name)) for name in ("alpha", "beta")}
    models, sizes = _levels(table)
    why = f"{models} models x {sizes} sizes; interval: {found.method}"
    return answer(None, "; ".join([why, *found.notes]), n=len(table), parts=parts)


def _left_out(form: str, table: Table, law: dict[str, Any]) -> Answer:
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


def _corner(form: str, table: Table) -> Answer:
    """M8, C3: fitted on the smaller models and sizes, the error on the corner beyond both."""
    n_max, d_max = rivals.corner_limits(table)
    n, d = table.columns["n"], table.columns["d"]
    seen = (n <= n_max) & (d <= d_max)
    held = (n > n_max) & (d > d_max) & (table.bound == 0)
    return _foresee(form, table, seen, held, f"fit N <= {n_max:,.0f}, D <= {d_max:,.0f}")


def _few_runs(form: str, table: Table, curve: pd.DataFrame) -> Answer:
    """M20, S14: the cheaper half of the runs outside the corner predicts the corner."""
    n_max, d_max = rivals.corner_limits(table)
    n, d = table.columns["n"], table.columns["d"]
    corner = (n > n_max) & (d > d_max)
    cost = np.where(corner, np.inf, n * d)
    count = int(np.ceil((~corner).sum() / 2))
    seen = np.zeros(len(table), dtype=bool)
    seen[np.argsort(cost, kind="stable")[:count]] = True
    share = (n * d)[seen].sum() / (n * d).sum()
    rule = f"the {count} cheapest runs, {100 * share:.0f} % of the compute of the grid (N x D)"
    return _foresee(form, table, seen, corner & (table.bound == 0), rule)


def _single(form: str, table: Table, fixed: str, of: str) -> Answer:
    """S3, S4: R2 of a law in one variable at the largest value of the other."""
    column = table.columns[fixed]
    rows = table.take((column == column.max()) & (table.bound == 0))
    needed = 5  # three parameters and two to spare
    if len(rows) < needed:
        why = f"{len(rows)} {of} for 3 parameters: R2 says nothing with fewer than {needed}"
        return answer(None, why, n=len(rows), blocked=why)
    try:
        fitted = fit(form, rows)
    except UserError as error:
        return answer(None, error.what, n=len(rows), blocked=error.what)
    names = ", ".join(f"{k} {v:.3g}" for k, v in fitted.parameters.items())
    why = f"{len(rows)} {of} at the largest {fixed.upper()}: {names}"
    return answer(holdout.r2_level(fitted), why, n=len(rows))


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
    half = float(np.mean(np.sqrt((np.log(high / low) / 2) ** 2 + noise**2)))
    miss = float(np.mean(np.abs(predicted / actual - 1)))
    why = (
        f"{rule}: {int(seen.sum())} runs predict {int(held.sum())}; "
        f"the fit's own 95 % prediction interval is +- {100 * min(half, 9.99):.0f} %"
    )
    return answer(miss, why, n=int(seen.sum()), ci95=_above_zero(miss, half))


def _learning_curve(table: Table) -> pd.DataFrame:
    try:
        return holdout.learning_curve("product", table)
    except UserError:
        return pd.DataFrame(columns=["runs", "share", "mean", "worst"])


def _duels(table: Table, seed: int) -> tuple[list[rivals.Duel], str]:
    try:
        return rivals.duels(table, seeds.stream(seed, "law choice", "duels")), ""
    except UserError as error:
        return [], error.what


def _logs(table: Table) -> pd.DataFrame:
    """Log of the cells' geometric means: N (index) x D (columns)."""
    means = table.take(table.bound == 0).means()
    frame = pd.DataFrame({"n": means.n, "d": means.d, "log": np.log(means.loss)})
    return frame.pivot_table(index="n", columns="d", values="log")


def _bend(x: NDArray[np.float64], lines: NDArray[np.float64]) -> Answer:
    """Change of slope from end to end over the mean slope: mean over lines, t-interval over lines."""
    if len(x) < 3:
        return part(None)
    whole = [line for line in lines if np.isfinite(line).all()]
    if not whole:
        return part(None)
    middle = x - x.mean()
    second = np.array([np.polyfit(middle, line, 2)[0] for line in whole])
    scale = 2 * np.ptp(x) / np.mean([_slope(x, line) for line in whole])
    half = abs(scale) * law_fits.half_width(second)
    value = float(scale * second.mean())
    return part(value, (value - half, value + half))


def _slope(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    return float(np.polyfit(x, y, 1)[0])


def _above_zero(value: float, half: float) -> tuple[float, float]:
    return max(0.0, value - half), value + half


def _levels(table: Table) -> tuple[int, int]:
    return len(np.unique(table.columns["n"])), len(np.unique(table.columns["d"]))


def _percent(share: float) -> str:
    return f"{100 * min(share, 9.99):.1f} %"
