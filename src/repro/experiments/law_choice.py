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
from repro.errors import UserError
from repro.experiments import foresight, law_fits, published, rivals
from repro.experiments.answer import Answer, answer, part
from repro.experiments.bend import bend
from repro.experiments.regime import Regime, find_regime, local_slopes
from repro.experiments.replicates import PairLosses
from repro.laws import holdout
from repro.laws.fit import fit
from repro.laws.intervals import intervals, widened
from repro.laws.resample import resample_evaluation
from repro.laws.table import Table

ASKED = ("M4", "M5", "M6", "M7", "M8", "M20", "S3", "S4", "S5", "S14", "C3")


def answers(
    table: pd.DataFrame,
    pair_losses: PairLosses | None = None,
    n: str = "n_encoder",
    seed: int = 1,
) -> dict[str, Any]:
    """Claim -> answer, with `regime`, `local_slopes`, `bend`, `laws`, `exponents_by_count`, `depth`,
    `duels` and `learning_curve` beside; all plain data.  The laws see cells: a mean over seeds each.

    table: one row a run (see `experiments.grid`).  pair_losses: run (model, D, seed) -> loss of each
    validation pair; with them the interval of M6 holds the evaluation sample too.  n: the column that
    counts parameters.  Where every run diverged all claims are blocked.
    """
    slopes = local_slopes(table, n)
    regime = find_regime(slopes)
    partial = bool(regime) and not regime.whole
    try:
        grid = law_fits.losses(table, n, regime.sizes)
    except UserError as error:
        return _nothing(error.what, table, n)
    law = law_fits.laws(grid)
    curve = _learning_curve(grid)
    duels, refused = _duels(grid, seed) if regime else ([], regime.brief)
    claims = {
        "M4": _parallel(grid, regime),
        "M5": _rivals(duels, refused, law, len(grid)),
        "M6": _exponents(grid, _pair_losses(table, pair_losses, grid, n), seed),
        "M7": foresight.left_out("product", grid, law["product"]),
        "M8": foresight.corner("product", grid),
        "M20": foresight.few_runs("product", grid),
        "S3": foresight.single("single_n_floor", grid, "d", "models"),
        "S4": foresight.single("single_d_floor", grid, "n", "sizes"),
        "S5": foresight.left_out("joint_floor", grid, law["joint_floor"]),
        "S14": foresight.few_runs("joint_floor", grid),
        "C3": foresight.corner("additive_floor", grid),
    }
    if not regime:
        for name in ("M4", "M5", "M6", "M7", "M8", "M20"):
            claims[name]["blocked"] = regime.brief
    everywhere = law_fits.laws(law_fits.losses(table, n)) if partial else law
    return {
        **claims,
        **published.answers(),
        "n_column": n,
        "states": _states(table),
        "regime": regime.as_dict(),
        "local_slopes": slopes.astype(object).where(slopes.notna(), None).to_dict("records"),
        "laws": law,
        "laws_all_sizes": everywhere,
        "bend": bend(table, everywhere, n),
        "exponents_by_count": law_fits.exponents_by_count(table, regime.sizes),
        "depth": law_fits.depth_at_width(table, n),
        "duels": [duel.as_dict() for duel in duels],
        "learning_curve": curve.to_dict("records"),
    }


def _nothing(why: str, table: pd.DataFrame, n: str) -> dict[str, Any]:
    """The answers of a grid without a usable run."""
    empty = ("local_slopes", "exponents_by_count", "depth", "duels", "learning_curve")
    return {
        **{claim: answer(None, why, n=0, blocked=why) for claim in ASKED},
        **published.answers(),
        "n_column": n,
        "states": _states(table),
        "regime": Regime((), (), why).as_dict(),
        "laws": {},
        "laws_all_sizes": {},
        "bend": bend(table, {}, n),
        **{name: [] for name in empty},
    }


def _states(table: pd.DataFrame) -> dict[str, int]:
    return {str(state): int(count) for state, count in table["state"].value_counts().items()}


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
        "changes of slope as shares of the mean slope: in D from the smallest to the largest model "
        f"({p_value}); from end to end along D and along N, by a parabola through the means of the "
        f"{len(x_d)} sizes and {len(x_n)} models. "
        f"{regime.reason[:1].upper()}{regime.reason[1:]}."
    )
    return answer(interaction["value"], why, n=len(table), ci95=interaction["ci95"], parts=parts)


def _rivals(duels: list[rivals.Duel], refused: str, law: dict[str, Any], n: int) -> Answer:
    """M5: the smallest ratio of held-out errors, rival over product law; holds if it beats all four."""
    if not duels:
        return answer(None, refused, n=n, blocked=refused)
    outcomes = [duel.outcome for duel in duels]
    holds = True if set(outcomes) == {"product"} else False if "rival" in outcomes else None
    rule = "" if duels[0].corner else " (corner left aside: too few cells to fit every law)"
    said = "; ".join(
        f"{law[d.rival].get('title', d.rival)}: held-out error {min(d.ratio, 99):.1f} times the product "
        f"law's (p = {d.p_rival:.3f} if it were true, {d.p_product:.3f} if the product law were)"
        for d in duels
    )
    best = min(duels, key=lambda duel: duel.ratio)
    return answer(best.ratio, said + rule, n=n, holds=holds)


def _exponents(table: Table, pairs: NDArray[np.float64] | None, seed: int) -> Answer:
    """M6: alpha and beta of the product law; pairs [runs, validation pairs]: their losses."""
    try:
        fitted = fit("product", table)
    except UserError as error:
        return answer(None, error.what, n=len(table), blocked=error.what)
    found = intervals(fitted)
    if pairs is not None:
        rng = seeds.stream(seed, "law choice", "evaluation sample")
        found = widened(found, resample_evaluation(fitted, pairs, 1000, rng))
    parts = {name: part(fitted.parameters[name], found.get(name)) for name in ("alpha", "beta")}
    models, sizes = _levels(table)
    why = f"{models} models x {sizes} sizes; interval: {found.method}"
    return answer(None, "; ".join([why, *found.notes]), n=len(table), parts=parts)


def _pair_losses(
    table: pd.DataFrame, found: PairLosses | None, grid: Table, n: str
) -> NDArray[np.float64] | None:
    """Loss of each validation pair (columns) at each cell of `grid` (rows), the mean over its seeds.

    None where a run's losses are missing.
    """
    if not found:
        return None
    used = table[table["state"] != "diverged"]
    runs: dict[tuple[float, int], list[tuple[str, int, int]]] = {}
    for _, run in used.sort_values("state", key=lambda s: s == "censored").iterrows():
        cell = runs.setdefault((float(run[n]), int(run["d"])), [])
        if run["state"] != "censored" or not cell:  # a bound stands only where nothing else does
            cell.append((str(run["model"]), int(run["d"]), int(run["seed"])))
    columns = grid.columns
    wanted = [runs[(float(a), int(b))] for a, b in zip(columns["n"], columns["d"], strict=True)]
    if any(run not in found for cell in wanted for run in cell):
        return None
    return np.array([np.mean([found[run] for run in cell], axis=0) for cell in wanted], np.float64)


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
    """Change of slope from end to end over the mean slope, from a parabola through the mean line.

    The interval counts the points of the mean line, not cells: an effect of one model (or size) bends
    all lines alike.  Three points leave no freedom to tell its error.
    """
    means = np.mean(lines, axis=0)
    known = np.isfinite(means)
    if known.sum() < 3:
        return part(None)
    x, means = x[known] - x[known].mean(), means[known]
    scale = 2 * np.ptp(x) / _slope(x, means)
    second = np.polyfit(x, means, 2)
    value, df = float(scale * second[0]), len(x) - 3
    if df == 0:
        return part(value, endless=True)
    design = np.vander(x, 3)
    spread = float(np.sum((means - design @ second) ** 2)) / df
    error = np.sqrt(spread * np.linalg.inv(design.T @ design)[0, 0])
    half = float(abs(scale) * student.ppf(0.975, df) * error)
    return part(value, (value - half, value + half))


def _slope(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    return float(np.polyfit(x, y, 1)[0])


def _levels(table: Table) -> tuple[int, int]:
    return len(np.unique(table.columns["n"])), len(np.unique(table.columns["d"]))
