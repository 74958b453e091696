"""The transfer law on the points of one target: fits, left-out errors, draws, widths of intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import t as student

from repro.errors import UserError
from repro.experiments.answer import finite, interval
from repro.laws.fit import Fit, fit
from repro.laws.forms import Form
from repro.laws.holdout import leave_one_out
from repro.laws.intervals import intervals
from repro.laws.resample import bootstrap, refit
from repro.laws.shapes import LOGGED, Array, to_internal
from repro.laws.table import Table, from_frame
from repro.laws.transfer import FULL, SIMPLER

LEAST_P, LEAST_F = 4, 5  # values that (A, alpha, G) and (level, beta, E, f0) take, and one to spare
DRAWS = 400  # of the residuals
CAP = 1.0  # a left-out point missed by 100 % or more is lost, however much more
NAMES = ("A", "alpha", "G", "beta", "E")  # the five parameters of the published law
PAPER_P, PAPER_F = 15, 10  # its 150 points: checkpoints x sizes
SUBSETS = 40  # random ones, of each number of points


def points(rows: pd.DataFrame) -> Table:
    """The points (p, f, loss) of one target, one a cell: the geometric mean of its seeds.

    rows: columns p (pre-training steps), f (pairs), loss (nats), state.  Diverged runs are left out,
    censored ones are upper bounds.  Raises `UserError` where nothing is left.
    """
    usable = rows[rows["state"] != "diverged"]
    where = "the points of transfer"
    table = from_frame(usable, loss="loss", state="state", p="p", f="f", where=where)
    return replace(table.means(), weights=None)


def lacking(table: Table, spare: int = 0) -> str:
    """Why these points do not determine the law ("" where they do), with `spare` values left out."""
    exact = table.bound == 0
    n_p, n_f = (len(np.unique(table.columns[name][exact])) for name in ("p", "f"))
    if n_p >= LEAST_P + spare and n_f >= LEAST_F + spare:
        return ""
    said = f"{n_p} checkpoint{'s' if n_p != 1 else ''} and {n_f} data size{'s' if n_f != 1 else ''}"
    said += " (f = 0 included)"
    asked = f"{LEAST_P + spare} and {LEAST_F + spare}"
    what = "leaving one out takes" if spare else "the transfer law takes"
    return f"{said} reached a minimum: {what} {asked}"


def laws(table: Table) -> list[dict[str, Any]]:
    """The transfer law and the simpler forms on the same points, a row each (plain data).

    loo_p, loo_f: mean relative error on a checkpoint, or a size, that the fit did not see (each at
    most 1); the start (f = 0) stays in every fit, for it is known before a label is bought.
    """
    return [_law(form, table) for form in (FULL, *SIMPLER)]


def _law(form: Form, table: Table) -> dict[str, Any]:
    row: dict[str, Any] = {"form": form.name, "title": form.title, "formula": form.formula}
    row |= {"n": len(table), "k": form.n_free, "params": None, "ci95": None, "residual": None}
    row |= {"loo_p": None, "loo_f": None, "by_p": {}, "by_f": {}, "note": ""}
    try:
        fitted = fit(form, table)
    except UserError as error:
        return row | {"note": error.what}
    with np.errstate(over="ignore"):  # what is not determined has an endless interval
        ends = intervals(fitted)
    notes = [note for note in fitted.warnings if "rows are only bounds" not in note]
    row["params"] = {name: finite(value) for name, value in fitted.parameters.items()}
    row["ci95"] = {name: interval(found) for name, found in ends.items()}
    row["residual"] = finite(fitted.sigma)
    for by in ("p", "f"):
        try:
            out = leave_one_out(form, table, by)
        except UserError as error:
            notes.append(f"leave one {by} out: {error.what}")
            continue
        errors = np.minimum(np.where(np.isfinite(out.errors), out.errors, CAP), CAP)
        groups = {float(g): float(errors[out.group == g].mean()) for g in out.group if g > 0}
        row[f"by_{by}"] = {f"{g:g}": error for g, error in groups.items()}
        row[f"loo_{by}"] = float(np.mean(list(groups.values()))) if groups else None
    return row | {"note": "; ".join(notes)}


def ratios(
    targets: Sequence[Sequence[Mapping[str, Any]]], rng: np.random.Generator, draws: int = 4000
) -> dict[str, tuple[float, tuple[float, float]]]:
    """Simpler form -> its left-out error over that of the transfer law, with a 95 % interval.

    targets: the rows of `laws` of each target.  Errors are means over what is left out (each
    checkpoint, each size, of every target); the interval resamples these.
    """
    found = {}
    for place, rival in enumerate(SIMPLER, start=1):
        pairs = []
        for rows in targets:
            for by in ("by_p", "by_f"):
                common = [g for g in rows[0][by] if g in rows[place][by]]
                pairs += [(rows[place][by][g], rows[0][by][g]) for g in common]
        if not pairs:
            continue
        errors = np.array(pairs) + 1e-9  # a law without error, against itself
        drawn = errors[rng.integers(len(errors), size=(draws, len(errors)))].mean(axis=1)
        low, high = np.quantile(drawn[:, 0] / drawn[:, 1], [0.025, 0.975])
        mean = errors.mean(axis=0)
        found[rival.name] = (float(mean[0] / mean[1]), (float(low), float(high)))
    return found


def drawn(fitted: Fit, rng: np.random.Generator, draws: int = DRAWS) -> dict[str, Array]:
    """Parameters of re-fits to the law plus resampled residuals: name -> (R,)."""
    return bootstrap(fitted, draws, rng, "residuals").parameters


def relative_widths(fitted: Fit, covariance: Array, df: int) -> dict[str, float | None]:
    """Half of the 95 % interval over the value, by parameter; of a constant, that of its logarithm.

    None where the parameter rests at a bound, so that its interval has one side alone.
    """
    slope = fitted.printed_slope
    sd = np.sqrt(np.maximum(np.diag(slope @ covariance @ slope.T), 0.0))
    found: dict[str, float | None] = {}
    for name in NAMES:
        i, value = fitted.form.names.index(name), fitted.parameters[name]
        scale = 1.0 if fitted.form.parameter(name).kind in LOGGED else abs(value)
        half = float(student.ppf(0.975, df)) * float(sd[i])
        found[name] = half / scale if fitted.free[i] and scale > 0 else None
    return found


def widths_by_points(fitted: Fit, rng: np.random.Generator) -> list[dict[str, Any]]:
    """How relative widths fall with the number of points: medians over random subsets, a row a number.

    A subset keeps enough checkpoints and sizes to determine the law; the last row holds all points.
    """
    table, size = fitted.table, len(fitted.table)
    counts = np.unique(np.geomspace(fitted.n_free + 4, size, 6).round().astype(int))
    rows = []
    for count in counts[counts <= size]:
        masks = _subsets(table, int(count), rng)
        if not masks:
            continue
        sample = refit(fitted, weights=np.array(masks, dtype=float))
        every = []
        for mask, theta in zip(masks, sample.theta.T, strict=True):
            part = replace(fitted, table=table.take(mask), theta=theta)
            every.append(relative_widths(part, part.covariance, part.df))
        row: dict[str, Any] = {"points": int(count), "subsets": len(masks)}
        for name in NAMES:
            values = [one[name] if one[name] is not None else np.inf for one in every]
            row[name] = finite(float(np.median(np.array(values, dtype=float))))
        rows.append(row)
    return rows


def _subsets(table: Table, count: int, rng: np.random.Generator) -> list[NDArray[np.bool_]]:
    if count == len(table):
        return [np.ones(count, dtype=bool)]
    found = []
    for _ in range(5 * SUBSETS):
        mask = np.zeros(len(table), dtype=bool)
        mask[rng.permutation(len(table))[:count]] = True
        if not lacking(table.take(mask)):
            found.append(mask)
        if len(found) == SUBSETS:
            break
    return found


def widths_of_150(fitted: Fit, sigma: float) -> dict[str, float | None]:
    """The relative widths that the paper's number of points would have under this law; sigma: residual.

    15 checkpoints between our first and last, 10 sizes (0 and nine between our smallest and largest).
    """
    p, f = fitted.table.columns["p"], fitted.table.columns["f"]
    sizes = np.concatenate([[0.0], np.geomspace(f[f > 0].min(), f.max(), PAPER_F - 1)])
    steps = np.geomspace(p.min(), p.max(), PAPER_P)
    grid = [axis.ravel() for axis in np.meshgrid(steps, sizes, indexing="ij")]
    design = Table(np.ones(len(grid[0])), extra={"p": grid[0], "f": grid[1]})
    free = np.flatnonzero(fitted.free)
    rows = fitted.jacobian(design)[free]
    covariance = np.zeros((len(fitted.theta), len(fitted.theta)))
    covariance[np.ix_(free, free)] = sigma**2 * np.linalg.pinv(rows @ rows.T, hermitian=True)
    return relative_widths(fitted, covariance, len(design) - fitted.n_free)


def widths_of_150_drawn(
    fitted: Fit, draws: Mapping[str, Array], count: int = 100
) -> dict[str, list[float] | None]:
    """The 95 % interval of each width at 150 points, over draws of the law (None: reaches a bound)."""
    form = fitted.form
    natural = np.maximum(np.array([draws[name] for name in form.names])[:, :count], 1e-300)
    theta = to_internal(form.shape, natural, fitted.centre)
    every = [widths_of_150(replace(fitted, theta=one), fitted.sigma) for one in theta.T]
    found: dict[str, list[float] | None] = {}
    for name in NAMES:
        values = [np.inf if one[name] is None else one[name] for one in every]
        ends = np.quantile(np.array(values, dtype=float), [0.025, 0.975], method="nearest")
        found[name] = interval((float(ends[0]), float(ends[1])))
    return found
