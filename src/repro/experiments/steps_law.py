"""The steps to the minimum as a law of N and D, under each reading of what a step is.

The MAEL paper prints S ~ N^-a D^b and builds on it that a larger model is the better use of compute,
but does not say which steps it counts; with a rate that falls as models grow the answer turns.  So
every reading is fitted here, each with its efficiencies and their ratio.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from repro import seeds
from repro.errors import UserError
from repro.experiments import law_fits
from repro.experiments.answer import finite, part
from repro.experiments.replicates import NOT_EXACT
from repro.laws import efficiency as eff
from repro.laws.effects import between
from repro.laws.fit import Fit, fit
from repro.laws.intervals import intervals
from repro.laws.table import Table, from_frame

LEAST_MODELS = 3  # that share a rate, to measure a common one
MOST = 99.0  # ratios are cut here: a larger model that costs no more compute has none
DRAWS = 4000


@dataclass(frozen=True)
class Reading:
    """What counts as a step: the rows with a column `counted`, and how it was had, in words."""

    name: str
    title: str
    how: str
    rows: pd.DataFrame


def readings(table: pd.DataFrame, n: str = "n_encoder") -> list[Reading]:
    """The four readings of the grid's runs: raw steps, lr-steps, a common rate, measured FLOP."""
    usable = table[table["state"] != "diverged"]
    raw = usable.assign(counted=usable["steps"])
    lr = usable.assign(counted=usable["lr_steps"])
    per_parameter = usable["flop"] / usable[n]
    return [
        Reading("raw", "raw steps", "optimiser steps, each model at its own rate", raw),
        Reading("lr_steps", "lr-steps", "the sum of the rates up to the minimum", lr),
        _common(usable),
        Reading(
            "flop",
            "measured FLOP",
            "FLOPs of the tokens really processed, attention and head included, over N",
            usable.assign(counted=per_parameter),
        ),
    ]


def steps_table(rows: pd.DataFrame, n: str = "n_encoder") -> Table:
    """Counted steps as a table for the steps law, one row a cell.

    A censored run's steps are a lower bound, those of a run whose lowest reading is its first
    (`at_first`) an upper one; both give way to another seed of the cell that has its minimum.
    Raises `UserError` where no run is left.
    """
    found = from_frame(
        rows, loss="counted", n=n, d="d", state="state", censored=-1, where="the grid's table"
    )
    bound = np.where(at_first(rows) & (found.bound == 0), 1, found.bound).astype(np.int8)
    return replace(replace(found, bound=bound).means(), weights=None)


def at_first(table: pd.DataFrame) -> np.ndarray:
    """Which runs have their lowest reading at the first one, bool [runs]; none where it is not known."""
    if "at_first" not in table.columns:
        return np.zeros(len(table), bool)
    return table["at_first"].fillna(False).astype(bool).to_numpy()


def exact(table: pd.DataFrame) -> pd.DataFrame:
    """The runs whose minimum lies between readings: neither bounds nor diverged."""
    return table[~table["state"].isin(NOT_EXACT).to_numpy() & ~at_first(table)]


def bounds(table: pd.DataFrame) -> dict[str, list[str]]:
    """The runs that do not give S as it is, named, by what they are."""
    first = at_first(table) & ~table["state"].isin(NOT_EXACT).to_numpy()
    kinds = {state: (table["state"] == state).to_numpy() for state in NOT_EXACT}
    return {
        kind: [f"{row.model} D={row.d:,} seed {row.seed}" for row in table[mask].itertuples()]
        for kind, mask in {**kinds, "at_first": first}.items()
    }


def law(reading: Reading, n: str = "n_encoder") -> Fit:
    """S = k N^-a D^b fitted to a reading; raises `UserError` where it is not determined."""
    return fit("steps", steps_table(reading.rows, n))


def exponents(reading: Reading, n: str = "n_encoder") -> dict[str, Any]:
    """The steps law of a reading in figures: n (cells), a, b, cost_n (exponent of compute in N: 1 - a),
    parts with 95 % intervals that count models and sizes as the facts (endless where there are fewer
    than three, which decide nothing); residual; note.

    Where the runs do not determine it the parts are empty and `note` says why.
    """
    try:
        steps = law(reading, n)
    except UserError as error:
        nothing = {key: part(None) for key in ("a", "b", "cost_n")}
        return {**nothing, "n": 0, "residual": None, "note": error.what}
    ends = intervals(steps)
    a, (low, high) = steps.parameters["a"], ends["a"]
    few = {v: between(steps.table, v, (other,)) is None for v, other in (("n", "d"), ("d", "n"))}
    return {
        "n": len(steps.table),
        "a": part(a, ends["a"], endless=few["n"]),
        "b": part(steps.parameters["b"], ends["b"], endless=few["d"]),
        "cost_n": part(1 - a, (1 - high, 1 - low), endless=few["n"]),
        "residual": finite(steps.sigma),
        "note": "; ".join(ends.notes),
    }


def fitted(
    reading: Reading, sizes: tuple[int, ...] = (), n: str = "n_encoder", seed: int = 1
) -> dict[str, Any]:
    """One reading in figures: its `exponents`, and the efficiencies `model`, `data` and their `ratio`.

    Beside them name, title, how, models.  sizes: take the efficiencies over these D alone.
    """
    return {
        "name": reading.name,
        "title": reading.title,
        "how": reading.how,
        "models": int(reading.rows["model"].nunique()),
        **exponents(reading, n),
        **{key: part(None) for key in ("model", "data", "ratio")},
        **_efficiencies(reading, sizes, n, seed),
    }


def _efficiencies(reading: Reading, sizes: tuple[int, ...], n: str, seed: int) -> dict[str, Any]:
    """model, data and ratio, from both laws on the same cells."""
    rows = reading.rows[reading.rows["d"].isin(sizes)] if sizes else reading.rows
    try:
        steps = law(replace(reading, rows=rows), n)
        losses = fit("product", law_fits.losses(rows, n))
    except UserError:
        return {}
    alpha, beta = (losses.parameters[name] for name in ("alpha", "beta"))
    a, b = (steps.parameters[name] for name in ("a", "b"))
    one = [np.array([value]) for value in (alpha, beta, a, b)]  # (1,) each, as draws are
    found = {
        "model": (alpha / (1 - a) if a < 1 else None, None),
        "data": (beta / b if b > 0 else None, None),
        "ratio": (float(eff.ratio(one[0], one[1], one[2], one[3], MOST)[0]), None),
    }
    try:
        used = exact(rows)
        tables = law_fits.losses(used, n), steps_table(used, n)
        rng = seeds.stream(seed, "allocation", "efficiencies", reading.name)
        draws = eff.exponent_draws(*tables, DRAWS, rng)
    except UserError:
        return {name: part(value, endless=True) for name, (value, _) in found.items()}
    with np.errstate(divide="ignore"):
        model = np.where(draws[2] < 1, draws[0] / (1 - draws[2]), np.inf)
        data = np.where(draws[3] > 0, draws[1] / draws[3], np.inf)
    ratios = eff.ratio(*draws, most=MOST)
    sample = {"model": model, "data": data, "ratio": ratios}
    return {name: _with_ends(value, sample[name]) for name, (value, _) in found.items()}


def _with_ends(value: float | None, draws: np.ndarray) -> dict[str, Any]:
    """A part with the 2.5th and 97.5th percentile of its draws; endless where one is not finite."""
    known = draws[~np.isnan(draws)]
    if not len(known):
        return part(value, endless=True)
    low, high = np.percentile(known, (2.5, 97.5), method="nearest")
    return part(value, (float(low), float(high)), endless=not np.isfinite([low, high]).all())


def _common(usable: pd.DataFrame) -> Reading:
    """Steps at one rate: measured where three models share one, else raw steps times their rate."""
    title = "a common rate"
    models = usable.groupby("lr")["model"].nunique()
    if len(models) and models.max() >= LEAST_MODELS:
        rate = float(models.index[int(models.to_numpy().argmax())])
        rows = usable[usable["lr"] == rate]
        shared = int(models.max())
        how = f"optimiser steps of the {shared} models that were trained at {rate:g}"
        return Reading("common", title, how, rows.assign(counted=rows["steps"]))
    how = (
        "not trained: optimiser steps times each model's rate, over one rate for all, as if steps and "
        "rate could be traded one for one"
    )
    scale = usable["lr"] / np.exp(np.log(usable["lr"]).mean()) if len(usable) else usable["lr"]
    return Reading("common", title, how, usable.assign(counted=usable["steps"] * scale))
