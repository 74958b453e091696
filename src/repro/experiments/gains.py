"""Is the grid sound, and does each step along it lower the loss by more than noise?

Two kinds of noise: another seed of the runs, and another draw of the evaluation pairs.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from repro.experiments.regime import FACTOR, cells, find_regime, local_slopes
from repro.experiments.replicates import NOT_EXACT, PairLosses, SeedNoise

# What is asked of a grid before its laws are believed; fixed before the grid was run.
MOST_NOT_TURNED = 0.10  # of the cells
LEAST_STEPS = 40  # optimiser steps to the minimum
LEAST_MAEL = 0.3  # nats
LEAST_SDS = 2.0  # pooled standard deviations between seeds, by which each step lowers MAEL
LEAST_ERRORS = 2.0  # standard errors over the validation pairs, by which it is more than their draw


def steps(
    table: pd.DataFrame,
    noise: SeedNoise | None,
    n: str = "n_encoder",
    pair_losses: PairLosses | None = None,
) -> pd.DataFrame:
    """The fall of MAEL from each cell to its neighbour in D, and to its neighbour in N.

    Columns: along (D or N), model and d (of the cell that is stepped to), before (the D, or model,
    stepped from), drop (nats, positive where MAEL falls), relative (share of MAEL), sds (drop over
    the pooled sd between seeds), errors (drop over the standard error of its paired mean over the
    validation pairs), test (the fall of the entropy of the test pairs, nats); NaN where not known.
    A cell with several seeds counts with their mean; steps from or to a cell without an exact run
    are NaN.

    pair_losses: run (model, D, seed) -> loss of each validation pair at its minimum, nats.
    """
    grid = cells(table, n)
    models, sizes = [str(m) for m in grid.index], [int(d) for d in grid.columns]
    values = grid.to_numpy(float)
    mael = {(m, d): values[i, j] for i, m in enumerate(models) for j, d in enumerate(sizes)}
    other = _other_pairs(table, pair_losses or {})
    pairs = [("D", (m, a), (m, b)) for m in models for a, b in pairwise(sizes)]
    pairs += [("N", (a, d), (b, d)) for a, b in pairwise(models) for d in sizes]
    rows = []
    for along, before, cell in pairs:
        start, drop = mael[before], mael[before] - mael[cell]
        rows.append(
            {
                "along": along,
                "model": cell[0],
                "d": cell[1],
                "before": str(before[0]) if along == "N" else f"{before[1]:,}",
                "drop": drop,
                "relative": drop / start,
                "sds": drop / noise.sd if noise and noise.sd > 0 else np.nan,
                **_on_other_pairs(drop, other.get(before), other.get(cell)),
            }
        )
    columns = ["along", "model", "d", "before", "drop", "relative", "sds", "errors", "test"]
    return pd.DataFrame(rows, columns=columns)


def soundness(
    table: pd.DataFrame,
    noise: SeedNoise | None,
    n: str = "n_encoder",
    pair_losses: PairLosses | None = None,
) -> list[dict[str, Any]]:
    """What is asked of the grid, a row each: check, asked, found, met (None: not known), where."""
    used = table[table["state"] != "diverged"].dropna(subset=["steps", "mael"])
    rows = [_turned(table)]
    if len(used):
        rows += [_least(used, "steps", "smallest S (steps to the minimum)", LEAST_STEPS, "")]
        rows += _first_readings(used)
        rows += [_least(used, "mael", "smallest MAEL", LEAST_MAEL, " nats")]
    moves = steps(table, noise, n, pair_losses)
    for along in "DN":
        rows += [_falls(moves, along), _confirmed(moves, along)]
    return [*rows, *_agreement(table, n)]


def confirmed(moves: pd.DataFrame) -> pd.Series:
    """Whether each step is more than the draw of its evaluation pairs: bool, a row each.

    It lowers MAEL by `LEAST_ERRORS` standard errors or more, and the entropy of the test pairs too.
    """
    return (moves["errors"] >= LEAST_ERRORS) & (moves["test"] > 0)


def name(step: Mapping[str, Any] | pd.Series) -> str:
    """A step in words: `2x64, 320 to 640` or `D = 640, 1x32 to 1x64`."""
    if step["along"] == "D":
        return f"{step['model']}, {step['before']} to {step['d']:,}"
    return f"D = {step['d']:,}, {step['before']} to {step['model']}"


def _other_pairs(
    table: pd.DataFrame, pair_losses: PairLosses
) -> dict[tuple[str, int], tuple[NDArray[np.floating[Any]] | None, float]]:
    """Cell (model, D) -> loss of each validation pair [m] (or None) and test entropy, over its seeds."""
    found = {}
    exact = table[~table["state"].isin(NOT_EXACT)]
    for _, runs in exact.groupby(["model", "d"]):
        model, d = str(runs["model"].iloc[0]), int(runs["d"].iloc[0])
        seeds = [pair_losses.get((model, d, int(seed))) for seed in runs["seed"]]
        known = [losses for losses in seeds if losses is not None]
        validation = np.mean(known, axis=0) if len(known) == len(seeds) else None
        test = float(runs["test_entropy"].mean()) if "test_entropy" in runs else np.nan
        found[model, d] = (validation, test)
    return found


def _on_other_pairs(drop: float, before: Any, after: Any) -> dict[str, float]:
    """`errors` and `test` of a step (see `steps`) from two cells of `_other_pairs`."""
    if before is None or after is None:
        return {"errors": np.nan, "test": np.nan}
    errors = np.nan
    if before[0] is not None and after[0] is not None:
        falls = before[0] - after[0]
        error = float(falls.std(ddof=1)) / np.sqrt(len(falls))
        errors = drop / error if error > 0 else np.nan
    return {"errors": errors, "test": before[1] - after[1]}


def _turned(table: pd.DataFrame) -> dict[str, Any]:
    runs = table.groupby(["model", "d"], sort=False)["state"]
    lacking = {cell: set(states) - {"turned"} for cell, states in runs if set(states) != {"turned"}}
    share = len(lacking) / max(runs.ngroups, 1)
    where = "; ".join(
        f"{model} on {d:,}: {', '.join(sorted(states))}" for (model, d), states in lacking.items()
    )
    asked = f"at most {100 * MOST_NOT_TURNED:.0f} %"
    found = f"{len(lacking)} of {runs.ngroups} ({100 * share:.0f} %)"
    return _row("cells with a run that did not turn", asked, found, share <= MOST_NOT_TURNED, where)


def _least(table: pd.DataFrame, column: str, check: str, asked: float, unit: str) -> dict[str, Any]:
    run = table.iloc[int(table[column].to_numpy(float).argmin())]
    value = float(run[column])
    found = f"{value:.0f}" if column == "steps" else f"{value:.2f}"
    where = f"{run['model']} on {run['d']:,} pairs, seed {run['seed']}"
    return _row(check, f"at least {asked:g}{unit}", found + unit, value >= asked, where)


def _first_readings(used: pd.DataFrame) -> list[dict[str, Any]]:
    """The runs whose first reading is the lowest: their S is an upper bound; no row without them."""
    own = used[used["at_first"]] if "at_first" in used else used.iloc[:0]
    if own.empty:
        return []
    where = "; ".join(f"{r.model} on {r.d:,} pairs, seed {r.seed}" for r in own.itertuples())
    return [
        _row("runs lowest at their first reading (S unknown)", "none", f"{len(own)}", False, where)
    ]


def _falls(moves: pd.DataFrame, along: str) -> dict[str, Any]:
    own = moves[moves["along"] == along]
    check = f"moves in {along} that lower MAEL by {LEAST_SDS:g} seed sds or more"
    sds = own["sds"].to_numpy(float)
    if not len(own) or (np.isnan(sds).all() and own["drop"].notna().any()):
        why = "no cell has two seeds" if len(own) else f"one value of {along}"
        return _row(check, "all", "not known", None, why)
    enough = sds >= LEAST_SDS
    weak = own[~enough].sort_values("sds")
    lacking = [f"{name(step)} ({_sds(step['sds'])})" for _, step in weak.iterrows()]
    return _row(
        check, "all", f"{enough.sum()} of {len(own)}", bool(enough.all()), "; ".join(lacking)
    )


def _confirmed(moves: pd.DataFrame, along: str) -> dict[str, Any]:
    own = moves[moves["along"] == along]
    check = (
        f"moves in {along} that other pairs bear out (a fall of {LEAST_ERRORS:g} paired standard "
        "errors, and a fall on the test pairs)"
    )
    if own["errors"].isna().all():
        return _row(check, "all", "not known", None, "the losses of single pairs are not there")
    held = confirmed(own)
    lacking = [
        f"{name(step)} (not measured)"
        if np.isnan(step["errors"])
        else f"{name(step)} ({step['errors']:.1f} errors, test {step['test']:+.3f})"
        for _, step in own[~held].sort_values("errors").iterrows()
    ]
    return _row(check, "all", f"{held.sum()} of {len(own)}", bool(held.all()), "; ".join(lacking))


def _agreement(table: pd.DataFrame, n: str) -> list[dict[str, Any]]:
    """How many models have local slopes in D that agree over enough sizes; and over the same sizes."""
    found = find_regime(local_slopes(table, n))
    agree = f"agree within a factor of {FACTOR:g} over {found.least_sizes} sizes or more"
    where = "; ".join(f"{model}: {_sizes(sizes)}" for model, sizes in found.ranges.items())
    enough = f"{found.least_models} of {len(found.ranges)}"
    shared = f"{found.sizes[0]:,} to {found.sizes[-1]:,}" if found else "none"
    return [
        _row(
            f"models whose local slopes in D {agree} (each over its own)",
            f"at least {enough}",
            str(found.agreeing),
            found.agreeing >= found.least_models,
            where,
        ),
        _row(
            f"sizes over which the slopes agree in the mean and in {enough} models (a regime)",
            f"at least {found.least_sizes}",
            shared,
            bool(found),
            "",
        ),
    ]


def _sizes(sizes: tuple[int, ...]) -> str:
    return f"{len(sizes)} sizes, {sizes[0]:,} to {sizes[-1]:,}" if sizes else "none"


def _sds(value: float) -> str:
    return "not measured" if np.isnan(value) else f"{value:.1f} sd"


def _row(check: str, asked: str, found: str, met: bool | None, where: str) -> dict[str, Any]:
    return {"check": check, "asked": asked, "found": found, "met": met, "where": where}
