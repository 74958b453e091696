"""What the scan of decays says: the optimum at each size, its slope in D, and what the convention moves.

A convention says which tensors are decayed (`TrainParams.decayed`).  Runs without decay belong to each.
All runs are read on the same validation pairs, so one set of draws over the pairs serves all of them,
and differences between sizes or conventions are paired by it.  Seeds are in no interval: the scan has one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from repro import seeds as streams
from repro.experiments.answer import Answer, middle, part
from repro.experiments.replicates import NOT_EXACT

Array = NDArray[np.float64]
# Run (convention, decay, D) -> loss of each validation pair at its minimum, float64 [m], nats.
ScanLosses = Mapping[tuple[str, float, int], Array]
DRAWS = 1000  # of validation pairs
NONE: Array = np.empty(0)


def optima(
    scanned: pd.DataFrame, losses: ScanLosses, conventions: Sequence[str], seed: int
) -> dict[str, list[dict[str, Any]]]:
    """Convention -> a row a size: decays, mael, none (MAEL without decay), optimum, at_end, ci95.

    scanned: the rows of the scan in `weight_decay.table`.  draws, floors: of the optimum and of the
    lowest MAEL over the validation pairs, float64 [DRAWS], or empty where losses lack.
    """
    weights = np.empty((DRAWS, 0))
    if losses:
        m = len(next(iter(losses.values())))
        weights = streams.stream(seed, "weight decay").multinomial(m, np.full(m, 1 / m), DRAWS) / m
    every = sorted(set(scanned["d"])) if len(scanned) else []
    found = {}
    for name in conventions:
        own = scanned[(scanned["decayed"] == name) | (scanned["weight_decay"] == 0)]
        found[name] = [_size(own[own["d"] == d], name, losses, weights) for d in every]
    return found


def _size(own: pd.DataFrame, convention: str, losses: ScanLosses, weights: Array) -> dict[str, Any]:
    """The optimum at one size: by a parabola in log decay, with draws over the validation pairs."""
    usable = own[~own["state"].isin(NOT_EXACT)]
    with_decay = usable[usable["weight_decay"] > 0].sort_values("weight_decay")
    decays, mael = (with_decay[name].to_numpy(float) for name in ("weight_decay", "mael"))
    d = int(own["d"].iloc[0])
    none = usable.loc[usable["weight_decay"] == 0, "mael"]
    draws, floors = NONE, NONE
    if all((convention, decay, d) in losses for decay in decays) and len(decays):
        drawn = weights @ np.array([losses[convention, decay, d] for decay in decays]).T
        draws, floors = np.array([optimum(decays, one) for one in drawn]), drawn.min(axis=1)
    best = optimum(decays, mael) if len(decays) else None
    at_end = best is not None and best in (decays[0], decays[-1])
    known = len(draws) and not at_end  # beyond an end nothing is known, whatever the draws say
    return {
        "decayed": convention,
        "d": d,
        "lr": float(own["lr"].iloc[0]),
        "decays": decays.tolist(),
        "mael": mael.tolist(),
        "none": float(none.iloc[0]) if len(none) else None,
        "optimum": best,
        "at_end": at_end,
        "ci95": list(middle(draws)) if known else None,
        "draws": draws,
        "floors": floors,
    }


def optimum(decays: Array, mael: Array) -> float:
    """The decay at the vertex of the parabola through the lowest point and its neighbours, in logs.

    At an end of the scan it is that end: the optimum may lie beyond.
    """
    i = int(np.argmin(mael))
    if i in (0, len(decays) - 1):
        return float(decays[i])
    x, y = np.log(decays[i - 1 : i + 2]), mael[i - 1 : i + 2]
    second, first, _ = np.polyfit(x - x[1], y, 2)
    if second <= 0:
        return float(decays[i])
    return float(np.exp(np.clip(x[1] - first / (2 * second), x[0], x[2])))


def slope(rows: Sequence[Mapping[str, Any]]) -> Answer:
    """The slope of log optimum on log D; without a value from fewer than three optima.

    Without an interval where an optimum lies at an end of the scan.
    """
    known = [row for row in rows if row["optimum"] is not None]
    if len(known) < 3:
        return part(None)
    x = np.log([row["d"] for row in known])
    value = float(np.polyfit(x, np.log([row["optimum"] for row in known]), 1)[0])
    if any(row["at_end"] or not len(row["draws"]) for row in known):
        return part(value)
    return part(value, middle(np.polyfit(x, np.log([row["draws"] for row in known]), 1)[0]))


def moved(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Any] | None:
    """What the second convention moves against the first; None where there is one alone.

    ratio: of the optima; floor: the lowest MAEL less that of the first, nats; each by size (`sizes`) and
    in the mean over them (geometric for the ratio).  An optimum at an end of a scan has no ratio.
    """
    if len(found) < 2:
        return None
    first, second = found
    compared = [
        (a, b)
        for a, b in zip(found[first], found[second], strict=True)
        if a["optimum"] is not None and b["optimum"] is not None
    ]
    ratios = {a["d"]: _ratio(a, b) for a, b in compared if not (a["at_end"] or b["at_end"])}
    floors = {a["d"]: _floor(a, b) for a, b in compared}
    return {
        "first": first,
        "second": second,
        "sizes": [
            {
                "d": d,
                "ratio": _mean([ratios[d]] if d in ratios else [], np.exp),
                "floor": _mean([floor]),
            }
            for d, floor in floors.items()
        ],
        "ratio": _mean(list(ratios.values()), np.exp),
        "floor": _mean(list(floors.values())),
    }


Drawn = tuple[float, Array]  # a value, and its draws (or none)


def _ratio(a: Mapping[str, Any], b: Mapping[str, Any]) -> Drawn:
    """The log of the ratio of the optima."""
    drawn = len(a["draws"]) and len(b["draws"])
    return np.log(b["optimum"] / a["optimum"]), np.log(b["draws"] / a["draws"]) if drawn else NONE


def _floor(a: Mapping[str, Any], b: Mapping[str, Any]) -> Drawn:
    drawn = len(a["floors"]) and len(b["floors"])
    return min(b["mael"]) - min(a["mael"]), b["floors"] - a["floors"] if drawn else NONE


def _mean(found: Sequence[Drawn], scale: Callable[[Any], Any] = lambda value: value) -> Answer:
    """The mean over sizes, on the scale that is wanted; its interval where every size has draws."""
    if not found:
        return part(None)
    value = scale(np.mean([value for value, _ in found]))
    if not all(len(draws) for _, draws in found):
        return part(value)
    return part(value, middle(scale(np.mean([draws for _, draws in found], axis=0))))
