"""Every law fitted to one grid: parameters, intervals, held-out errors; and what N should mean."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import t as student

from repro.errors import UserError
from repro.experiments.answer import finite, interval
from repro.experiments.regime import cells
from repro.laws import holdout
from repro.laws.fit import Fit, fit
from repro.laws.intervals import intervals
from repro.laws.table import Table, from_frame

FORMS = (
    "product", "product_floor", "product_d0", "product_capped",
    "additive", "additive_floor", "joint", "joint_floor",
)  # fmt: skip
COUNTS = {
    "n_encoder": "encoder",
    "n_encoder_pooler": "encoder + pooler",
    "n_drscale": "rule of SIGIR'24's code",
    "n_total": "everything",
}


def losses(table: pd.DataFrame, n: str = "n_encoder", sizes: Sequence[int] = ()) -> Table:
    """The grid as a table for the laws, one row a cell: MAEL (nats) of (N, D).

    A cell is the geometric mean of its seeds, and every cell weighs the same, however many seeds it
    has: what laws miss is shared by the seeds of a cell.  Censored runs are upper bounds (dropped
    where another seed reached its minimum), diverged ones are left out.  sizes: take these data sizes
    alone (all without).  Raises `UserError` where nothing is left.
    """
    usable = table[table["state"] != "diverged"]
    if len(sizes):
        usable = usable[usable["d"].isin(sizes)]
    runs = from_frame(usable, loss="mael", n=n, d="d", state="state", where="the grid's table")
    return replace(runs.means(), weights=None)


def laws(table: Table, forms: Sequence[str] = FORMS) -> dict[str, dict[str, Any]]:
    """Form -> params, ci95, aicc, r2_log, loo_model_mre, loo_size_mre, corner_mre, ... (plain data).

    A figure that this grid does not determine is None; `note` says why.
    """
    return {name: _law(name, table) for name in forms}


def exponents_by_count(table: pd.DataFrame, sizes: Sequence[int] = ()) -> list[dict[str, Any]]:
    """The product law's exponents under each of the four counts of N, a row each."""
    rows: list[dict[str, Any]] = []
    for column, meaning in COUNTS.items():
        try:
            fitted = fit("product", losses(table, column, sizes))
        except UserError as error:
            rows.append({"count": column, "meaning": meaning, "note": error.what})
            continue
        ends = intervals(fitted)
        values = {
            name: {"value": finite(fitted.parameters[name]), "ci95": interval(ends.get(name))}
            for name in ("alpha", "beta")
        }
        rows.append({"count": column, "meaning": meaning, **values, "residual": fitted.sigma})
    return rows


def depth_at_width(table: pd.DataFrame, n: str = "n_encoder") -> list[dict[str, Any]]:
    """The exponent in N between models of one width, from their names (2x64: 2 layers, width 64).

    If layers add parameters but lower nothing, N is not the variable.  One row a pair of neighbours:
    width, models, slope (-d log MAEL / d log N, mean over D), ci95 (t over data sizes), n.
    """
    grid = cells(table, n).map(np.log)
    size = table.groupby("model")[n].first()
    widths: dict[int, list[str]] = {}
    for model in grid.index:
        if width := _width(str(model)):
            widths.setdefault(width, []).append(model)
    rows = []
    for width, models in sorted(widths.items()):
        for small, large in pairwise(models):
            drop = (grid.loc[small] - grid.loc[large]).dropna().to_numpy()
            slope = drop / np.log(size[large] / size[small])
            mean = float(slope.mean()) if len(slope) else None
            ends = None if mean is None else (mean - half_width(slope), mean + half_width(slope))
            row = {"width": width, "models": [small, large], "slope": finite(mean)}
            rows.append(row | {"ci95": interval(ends), "n": len(slope)})
    return rows


def half_width(values: np.ndarray) -> float:
    """Half of the 95 % t-interval of a mean; NaN for fewer than two values."""
    if len(values) < 2:
        return float("nan")
    spread = values.std(ddof=1) / np.sqrt(len(values))
    return float(student.ppf(0.975, len(values) - 1) * spread)


def _law(name: str, table: Table) -> dict[str, Any]:
    try:
        fitted = fit(name, table)
        row = holdout.compare([name], table).iloc[0]
    except UserError as error:
        empty = dict.fromkeys(
            ("params", "ci95", "aicc", "r2_log", "loo_model_mre", "loo_size_mre", "corner_mre")
        )
        return {**empty, "n": len(table), "note": error.what}
    with np.errstate(over="ignore"):  # a constant that is not determined has an endless interval
        found = intervals(fitted)
    return {
        "params": {key: finite(value) for key, value in fitted.parameters.items()},
        "ci95": {key: interval(ends) for key, ends in found.items()},
        "aicc": finite(row["aicc"]),
        "r2_log": finite(row["r2_log"]),
        "loo_model_mre": finite(row["loo_n"]),
        "loo_size_mre": finite(row["loo_d"]),
        "corner_mre": finite(row["corner"]),
        "loo_model_worst": finite(row["loo_n_worst"]),
        "loo_size_worst": finite(row["loo_d_worst"]),
        "residual": finite(fitted.sigma),
        "title": fitted.form.title,
        "formula": fitted.form.formula,
        "latex": fitted.form.latex,
        "source": fitted.form.source,
        "interval": found.method,
        "n": len(table),
        "note": str(row["note"]),
    }


def _width(model: str) -> int | None:
    """The width in a name such as 2x64 (layers x width) or bert_uncased_L-2_H-128."""
    found = re.search(r"\d+x(\d+)", model) or re.search(r"H-?(\d+)", model)
    return int(found[1]) if found else None


def product(table: pd.DataFrame, sizes: Sequence[int] = ()) -> Fit | None:
    """The product law through the cells of these sizes (none: all); None where it cannot be fitted."""
    try:
        return fit("product", losses(table, sizes=sizes))
    except UserError:
        return None
