"""What published fits say on their own points: Chinchilla's (C3, C6) and that of repeated data (C7).

The tables are not shipped; without them the claims are not run, for that reason.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from repro import seeds
from repro.errors import UserError
from repro.experiments.answer import Answer, answer, part
from repro.laws import published
from repro.laws.table import Table

DRAWS = 1000  # resamples behind the refit's intervals
UNSET = "needs a public table that is not shipped: REPRO_REFERENCE_DATA names no folder"


def answers(folder: Path | None, seed: int = 1) -> tuple[dict[str, Answer], dict[str, Any]]:
    """(claim -> answer, name -> table or value for notebook 09) from the tables in `folder`.

    Without Chinchilla's points the tables come from made ones, and their `source` says so.
    """
    points, source, missing = _points(folder, seed)
    every, _, _ = _points(folder, seed, drop=0)
    refit = _refit(points, every, seed) | {"source": source, "points": len(points)}
    profile = _repeated(folder)
    claims = {
        "C3:calc": _small_to_large(points, missing),
        "C6:calc": _besiroglu(refit, missing),
        "C7:calc": _muennighoff(profile),
    }
    return claims, refit | profile


def _points(folder: Path | None, seed: int, drop: int = 5) -> tuple[Table, str, str]:
    """Points less the `drop` highest, their source, and why they are made ones ("" if they are not)."""
    stream = seeds.stream(seed, "classical", "chinchilla")
    try:
        found = published.chinchilla_points(folder, stream, drop)
        return *found, "" if folder else UNSET
    except UserError as error:
        return *published.chinchilla_points(None, stream, drop), error.what


def _refit(points: Table, every: Table, seed: int) -> dict[str, Any]:
    best, costs = published.chinchilla_refit(points)
    stream = seeds.stream(seed, "classical", "resamples")
    return {
        "refit": dict(best.parameters),
        "every": published.with_allocation(published.chinchilla_refit(every)[0].parameters),
        "hoffmann": published.with_allocation(published.HOFFMANN),
        "costs": costs,
        "reduced": published.mean_or_sum(points),
        "sample": published.chinchilla_sample(best, DRAWS, stream),
    }


def _repeated(folder: Path | None) -> dict[str, Any]:
    try:
        rows = len(published.repeated_points(folder))
        valley, optima = published.repeated_profile(folder)
    except UserError as error:
        why = UNSET if folder is None else error.what
        return {"valley": None, "optima": None, "runs": 0, "repeated": why}
    return {"valley": valley, "optima": optima, "runs": rows, "repeated": ""}


def _small_to_large(points: Table, missing: str) -> Answer:
    """How far off, as a factor, are the largest runs that a fit on the smaller ones predicts?"""
    if missing:
        return answer(None, missing, n=0, blocked=missing)
    held = {law: published.chinchilla_corner(points, law) for law in ("additive_floor", "product")}
    true = held["additive_floor"]
    why = (
        f"{len(true.actual)} of Chinchilla's runs above the 60 % quantiles of both N and D, predicted "
        f"from those below both: mean error {100 * true.mean:.1f} %, worst {100 * true.worst:.1f} % "
        f"(product law {100 * held['product'].mean:.1f} %)"
    )
    factor = float(np.exp(np.mean(np.abs(np.log(true.predicted / true.actual)))))
    return answer(None, why, n=len(points), parts={"factor": part(factor)})


def _besiroglu(refit: dict[str, Any], missing: str) -> Answer:
    if missing:
        return answer(None, missing, n=0, blocked=missing)
    sample = {row["parameter"]: row for row in refit["sample"].to_dict("records")}
    parts = {name: part(row["value"], (row["low"], row["high"])) for name, row in sample.items()}
    unrounded, rounded = refit["costs"]["ratio"].iloc[1:3]
    stopped = refit["reduced"].set_index("Huber reduced by")["ratio"]["mean"]
    width = 2 * 1.2816 * sample["a"]["se"]  # 80 %, as Hoffmann's percentiles
    needed = refit["points"] * (width / 0.001) ** 2  # .454 to .455
    why = (
        f"{refit['points']} points, summed Huber, {DRAWS} resamples; A {sample['A']['value']:.1f}, "
        f"B {sample['B']['value']:.0f} (printed 482.01, 2085.43, from a search that stopped early). "
        f"Hoffmann's constants cost {unrounded:.2f} times the optimum, as printed {rounded:.2f} times; "
        f"a search on the mean of the Huber stops at {stopped:.2f} times; an 80 % range of a as narrow "
        f"as .001 would need some {_rounded(needed):,} runs"
    )
    return answer(None, why, n=refit["points"], parts=parts)


def _muennighoff(profile: dict[str, Any]) -> Answer:
    if profile["optima"] is None:
        return answer(None, profile["repeated"], n=0, blocked=profile["repeated"])
    optima = profile["optima"].set_index("what")
    local, best = optima.loc["polished from there"], optima.loc["best found"]
    parts = {
        "r_d": part(local["R_D"]), "r_n": part(local["R_N"]),
        "best_r_d": part(best["R_D"]), "best_r_n": part(best["R_N"]),
    }  # fmt: skip
    more = 100 * (local["cost"] / best["cost"] - 1)
    why = (
        f"downhill from the published pair the cost is {local['cost']:.7f}; at R_D {best['R_D']:.2f}, "
        f"R_N {best['R_N']:.3f} it is {best['cost']:.7f}, so the former is {more:.2f} % dearer"
    )
    return answer(None, why, n=profile["runs"], parts=parts)


def _rounded(count: float) -> int:
    """`count` to two digits."""
    return int(float(f"{count:.2g}"))
