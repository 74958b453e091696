"""Do the curves of different learning rates fall on one another over lr-steps?  M2, as a number.

The spread of a bundle of curves is the standard deviation of their losses at equal x, a mean over
`POINTS` places that are log-spaced in x, from the first reading of any curve to the first minimum of
any: before 1 x minimum, where the papers show the collapse.  Between readings a curve is a straight
line in log x, before its first one a straight line in x from the loss at step 0.  The number is the
ratio of two spreads of the same curves: with lr-steps for x, over that with raw steps.  Curves that
depend on lr-steps alone give 0; rates that make no difference to the steps give more than 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from repro.experiments.answer import Answer, answer, part
from repro.experiments.law_fits import half_width

Array = NDArray[np.float64]
POINTS = 64
# Of a ratio, so that curves that fall on one another to the last digit have a logarithm.
LIMITS = (1e-3, 1e3)
AXES = ("step", "lr_steps")


@dataclass(frozen=True)
class Curve:
    """Readings up to the lowest one: x (by axis) and loss (nats), float64 [r]; start: loss at step 0."""

    x: Mapping[str, Array]
    loss: Array
    start: float

    def at(self, axis: str, places: Array) -> Array:
        """The loss at `places` of an axis, none past the last reading."""
        x = self.x[axis]
        early = self.start + (self.loss[0] - self.start) * places / x[0]
        return np.where(places < x[0], early, np.interp(np.log(places), np.log(x), self.loss))


def spreads(table: pd.DataFrame, readings: pd.DataFrame) -> list[dict[str, Any]]:
    """A row for each bundle of curves: of, d, curves, step, lr_steps (nats) and their ratio.

    of: `reached` (rates whose minimum was reached, at one D and seed), `all` (with the others), or
    `seeds` (the seeds of one rate at one D, whose spread a perfect collapse would have).  table,
    readings: as from `lr_invariance`.  A curve with fewer than two readings up to its lowest shows
    no fall and is left out; a bundle needs two curves.
    """
    curves = _curves(table, readings)
    own = table[table["role"] == "rate"]
    bundles = [("reached", cell) for _, cell in own[own["reached"]].groupby(["d", "seed"])]
    bundles += [("all", cell) for _, cell in own.groupby(["d", "seed"])]
    bundles += [("seeds", cell) for _, cell in table[table["reached"]].groupby(["d", "lr"])]
    rows = [
        _row(of, cell, [curves[run] for run in cell["run"] if run in curves])
        for of, cell in bundles
    ]
    return [row for row in rows if row["curves"] > 1]


def spread(curves: Sequence[Curve], axis: str) -> float | None:
    """The mean spread of curves over an axis, nats; None where no stretch of it is common."""
    low = min(curve.x[axis][0] for curve in curves)
    high = min(curve.x[axis][-1] for curve in curves)
    if high <= low:
        return None
    places = np.geomspace(low, high, POINTS)
    losses = np.array([curve.at(axis, places) for curve in curves])
    return float(losses.std(axis=0, ddof=1).mean())


def claim(rows: Sequence[Mapping[str, Any]], n: int) -> Answer:
    """M2: the geometric mean of the ratio over D, t over D; holds if the whole interval is below 1."""
    ratios = {of: _by_size(rows, of) for of in ("reached", "all")}
    means = {of: float(np.exp(np.log(r).mean())) if r else None for of, r in ratios.items()}
    few, value = ratios["reached"], means["reached"]
    others = part(means["all"])
    if value is None:
        why = "no two rates of one D reached a minimum: there are no curves to lay on one another"
        return answer(None, why, n=n, parts={"all": others}, blocked=why)
    half = half_width(np.log(few))
    ci95 = (value * np.exp(-half), value * np.exp(half)) if np.isfinite(half) else None
    holds = None if ci95 is None else True if ci95[1] < 1 else False if ci95[0] >= 1 else None
    own = [row for row in rows if row["of"] == "reached"]
    why = (
        f"before the first minimum the curves of different rates differ by {_mean(own, 'lr_steps'):.3f} "
        f"nats (sd) at equal lr-steps and by {_mean(own, 'step'):.3f} at equal steps; geometric mean of "
        f"the ratio over {len(few)} data size{'s' if len(few) > 1 else ''}"
    )
    why += " (t over them)" if ci95 else ": no interval"
    why += f"; with rates that did not reach it {means['all']:.2f}" if means["all"] else ""
    again = [row for row in rows if row["of"] == "seeds"]
    why += f"; seeds of one rate differ by {_mean(again, 'lr_steps'):.3f}" if again else ""
    parts = {"reached": part(value, ci95), "all": others}
    return answer(value, why, n=n, ci95=ci95, parts=parts, holds=holds)


def _by_size(rows: Sequence[Mapping[str, Any]], of: str) -> list[float]:
    """The ratio of each D, a mean over its seeds, kept within `LIMITS`."""
    known: dict[int, list[float]] = {}
    for row in rows:
        if row["of"] == of and row["ratio"] is not None:
            known.setdefault(row["d"], []).append(row["ratio"])
    return [float(np.clip(np.mean(ratios), *LIMITS)) for ratios in known.values()]


def _mean(rows: Sequence[Mapping[str, Any]], axis: str) -> float:
    found = [row[axis] for row in rows if row[axis] is not None]
    return float(np.mean(found)) if found else float("nan")


def _row(of: str, cell: pd.DataFrame, curves: Sequence[Curve]) -> dict[str, Any]:
    both = [spread(curves, axis) if len(curves) > 1 else None for axis in AXES]
    steps, lr_steps = both
    ratio = lr_steps / steps if steps and lr_steps is not None else None
    return {
        "of": of, "d": int(cell["d"].iloc[0]), "curves": len(curves),
        "step": steps, "lr_steps": lr_steps, "ratio": ratio,
    }  # fmt: skip


def _curves(table: pd.DataFrame, readings: pd.DataFrame) -> dict[str, Curve]:
    """Run -> its curve, where it has two finite readings or more up to its lowest."""
    found = {}
    groups = dict(tuple(readings.groupby(["d", "seed", "lr"])))
    for row in table.to_dict("records"):
        frame = groups.get((row["d"], row["seed"], row["lr"]))
        if frame is None:
            continue
        frame = frame[np.isfinite(frame["loss"])].sort_values("step")
        end = int(np.argmin(frame["loss"])) + 1 if len(frame) else 0
        if end > 1:
            x = {axis: frame[axis].to_numpy(float)[:end] for axis in AXES}
            loss = frame["loss"].to_numpy(float)[:end]
            found[str(row["run"])] = Curve(x, loss, float(row["zero_shot"]))
    return found
