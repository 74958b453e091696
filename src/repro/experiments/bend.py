"""Do the local slopes in D bend, and which law says how: a head start, chance, or a floor?

A start that is worth D0 pairs, or a loss held up by chance, makes the slopes grow with D; a floor
makes them shrink.  Each such law is fitted to all sizes beside the plain product law, and its slopes
are set against the measured ones.  A fitted bend is no power law: verdicts on the product law are
taken inside the regime alone (see `regime`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import f as fisher

from repro.errors import UserError
from repro.experiments import law_fits
from repro.experiments.answer import finite
from repro.experiments.regime import cells as cells_of
from repro.experiments.regime import local_slopes
from repro.experiments.replicates import cell_means, seed_noise
from repro.laws.fit import fit
from repro.laws.holdout import leave_one_out
from repro.laws.table import Table

LAWS = {  # form -> what a bend of this kind is called
    "product": "",
    "product_d0": "head start",
    "product_capped": "chance",
    "product_floor": "floor",
}
SMALL = 0.25  # of the mean slope: a change from end to end under it is no bend worth a law
LESS = 0.75  # of the plain law's error on left-out sizes: a bend that says less is not told apart


def bend(table: pd.DataFrame, laws: Mapping[str, Any], n: str = "n_encoder") -> dict[str, Any]:
    """The measured local slopes, those of each law, and what bends them; plain data.

    laws: `law_fits.laws` of all sizes of `table`.  `change`: of the local slope from the first step in D
    to the last, by a parabola through each model, a t-interval over models (a model's own level plays
    no part), with the mean slope.  `kind`: straight (that interval holds zero, or the change is under a
    quarter of the slope), head start, chance or floor (that law misses the left-out sizes by a quarter
    less than the plain law, and by the least), open (two such laws within a quarter of each other),
    unexplained (bent, but no law says it better than the plain one), or unknown (not determined).
    `laws`: a row each with parameters, ci95, residual, errors, slopes (mean of models, a step in D
    each), inside (how many of them lie in the measured mean's 95 % interval), size_error (of left-out
    sizes, in the mean of models) and beyond_noise (p of an F test that the law leaves no more than
    seeds do; None without seeds).
    """
    measured = local_slopes(table, n)
    nothing: dict[str, Any] = {"kind": "unknown", "change": None, "measured": [], "laws": []}
    if measured.empty:  # a single size
        return nothing
    try:
        cells = law_fits.losses(table, n)
    except UserError:
        return nothing
    rows = [_row(name, laws[name], table, cells, measured, n) for name in LAWS if laws.get(name)]
    change = _change(cells_of(table, n))
    shown = measured[["d_low", "d_high", "slope", "low", "high"]].astype(object)
    return {
        "kind": _kind({row["name"]: row["size_error"] for row in rows}, change),
        "change": change,
        "measured": shown.where(shown.notna(), None).to_dict("records"),
        "laws": rows,
    }


def _row(
    name: str,
    law: Mapping[str, Any],
    table: pd.DataFrame,
    cells: Table,
    measured: pd.DataFrame,
    n: str,
) -> dict[str, Any]:
    kept = (
        "title",
        "formula",
        "params",
        "ci95",
        "residual",
        "loo_model_mre",
        "loo_size_mre",
        "corner_mre",
    )
    row: dict[str, Any] = {"name": name, "kind": LAWS[name], **{key: law.get(key) for key in kept}}
    row |= {"slopes": [], "inside": None, "size_error": None, "beyond_noise": None}
    if not law.get("params"):
        return row
    fitted = fit(name, cells)
    drawn = table.assign(mael=fitted.predict(table[n].to_numpy(float), table["d"].to_numpy(float)))
    slopes = local_slopes(drawn, n)["slope"].to_numpy(float)
    inside = (measured["low"] <= slopes) & (slopes <= measured["high"])
    row["slopes"] = [finite(slope) for slope in slopes]
    row["inside"] = int(inside.sum())
    row["size_error"] = _size_error(name, cells)
    row["beyond_noise"] = _beyond(fitted.sigma, fitted.df, table)
    return row


def _size_error(name: str, cells: Table) -> float | None:
    """How far the mean over models of a left-out size is missed (relative, mean over sizes).

    A model that lies off the law as a whole is off at every size and cancels.
    """
    try:
        out = leave_one_out(name, cells, "d")
    except UserError:
        return None
    miss = pd.Series(np.log(out.predicted / out.actual)).groupby(out.group).mean()
    return finite(float(miss.abs().mean()))


def _beyond(sigma: float, df: int, table: pd.DataFrame) -> float | None:
    """p of the F test of residuals of cell means (relative sd, df) against the noise of seeds."""
    noise = seed_noise(table)
    if noise is None or noise.relative == 0:
        return None
    share = float((1 / cell_means(table)["seeds"]).mean())  # the mean of k seeds has a k-th of it
    return float(fisher.sf(sigma**2 / (noise.relative**2 * share), df, noise.df))


def _change(grid: pd.DataFrame) -> dict[str, Any] | None:
    """Change of the local slope along D, mean over models, with ci95; None for fewer than two models.

    grid: MAEL, models x D.  Models with fewer than three sizes have no say.
    """
    x = np.log(np.array(grid.columns, dtype=float))
    found, slopes = [], []
    for line in np.log(grid.to_numpy(float)):
        known = np.isfinite(line)
        if known.sum() > 2:
            second = np.polyfit(x[known], line[known], 2)[0]
            slopes.append(-np.polyfit(x[known], line[known], 1)[0])
            found.append(
                -second * (x[-1] + x[-2] - x[0] - x[1])
            )  # between the middles of two steps
    if len(found) < 2:
        return None
    mean, half = float(np.mean(found)), law_fits.half_width(np.array(found))
    slope = float(np.mean(slopes))
    return {"value": mean, "ci95": [mean - half, mean + half], "models": len(found), "slope": slope}


def _kind(errors: Mapping[str, float | None], change: Mapping[str, Any] | None) -> str:
    """errors: law -> its `size_error`."""
    plain = errors.get("product")
    if plain is None or change is None:
        return "unknown"
    low, high = change["ci95"]
    if (low <= 0 <= high) or abs(change["value"]) < SMALL * abs(change["slope"]):
        return "straight"
    better = {
        name: error
        for name, error in errors.items()
        if name != "product" and error is not None and error < LESS * plain
    }
    if not better:
        return "unexplained"
    best = min(better, key=lambda name: better[name])
    rivals = [name for name in better if name != best and LESS * better[name] <= better[best]]
    return "open" if rivals else LAWS[best]
