"""What the runs on several kinds of labels say: answers of notebook 05 to the claims S7 to S9."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import t as student

from repro import seeds as streams
from repro.experiments.answer import Answer, answer, finite, interval, part
from repro.experiments.regime import FACTOR
from repro.experiments.replicates import NOT_EXACT

Array = NDArray[np.float64]
DRAWS = 1000  # of validation pairs, for the intervals of exchange rates
LEAST = 3  # data sizes for a slope with an interval
GENERATED = ("doc2query", "extracted")  # supervised generation, and what stands in for it


def answers(
    table: pd.DataFrame,
    losses: Mapping[tuple[str, int], Array],
    made: Sequence[Mapping[str, Any]],
    seed: int = 1,
) -> dict[str, Any]:
    """Claim -> answer, with curves, laws, against, exchange and made beside; plain data.

    table, losses, made: from the functions of `labels` of these names (losses: `pair_losses`).  The first
    kind of the table is the dataset's own.
    """
    curves = _curves(table)
    kinds = list(curves)
    role = {each["name"]: each["kind"] for each in made} | {kinds[0]: "own"} if kinds else {}
    laws = [_law(name, curve) for name, curve in curves.items()]
    against = [contrast(curves, name, kinds[0]) for name in kinds[1:]]
    wanted = {name: role[name] for name in kinds}
    return {
        "S7": _power(laws, wanted),
        "S8": _flattest(curves, wanted),
        "S9": _order(curves, wanted),
        "curves": [
            {"kind": name, "d": int(d), "mael": float(mael)}
            for name, curve in curves.items()
            for d, mael in curve.items()
        ],
        "laws": laws,
        "against": [row for row in against if row],
        "exchange": _exchange(curves, losses, seed),
        "made": [dict(each) for each in made],
        "states": _states(table),
    }


def _curves(table: pd.DataFrame) -> dict[str, dict[int, float]]:
    """Kind -> D -> MAEL, the geometric mean over seeds, of runs that reached a minimum."""
    if table.empty:
        return {}
    usable = table[~table["state"].isin(NOT_EXACT)]
    found: dict[str, dict[int, float]] = {name: {} for name in table["kind"].unique()}
    for (name, d), own in usable.groupby(["kind", "d"], sort=True):
        found[str(name)][int(str(d))] = float(np.exp(np.log(own["mael"].to_numpy(float)).mean()))
    return found


def _states(table: pd.DataFrame) -> dict[str, int]:
    counts = table["state"].value_counts() if len(table) else pd.Series(dtype=int)
    return {str(state): int(n) for state, n in counts.items()}


def line(d: Sequence[int], log_loss: Array) -> dict[str, Any]:
    """The line through log losses over log D: slope and level (at the geometric middle), each with a 95 %
    t-interval from the scatter about it; None where there are too few sizes for one."""
    x = np.log(np.asarray(d, float))
    x = x - x.mean()
    slope = float(x @ log_loss / (x @ x))
    level, df = float(log_loss.mean()), len(x) - 2
    found: dict[str, Any] = {"slope": slope, "level": level, "slope_ci95": None, "level_ci95": None}
    if df > 0:
        residual = log_loss - level - slope * x
        sd = float(np.sqrt(residual @ residual / df))
        q = float(student.ppf(0.975, df))
        for name, value, error in (
            ("slope", slope, sd / np.sqrt(x @ x)),
            ("level", level, sd / np.sqrt(len(x))),
        ):
            found[f"{name}_ci95"] = [float(value - q * error), float(value + q * error)]
    return found


def _law(name: str, curve: Mapping[int, float]) -> dict[str, Any]:
    """The power law of a kind: exponent, level (nats, at the middle size), local slopes, bend."""
    d, log_loss = list(curve), np.log(list(curve.values()))
    row: dict[str, Any] = {"kind": name, "n": len(d), "exponent": None, "exponent_ci95": None}
    row |= {"level": None, "level_ci95": None, "middle": None, "local": [], "bend_ci95": None}
    if len(d) < 2:
        return row
    fitted = line(d, log_loss)
    ends = fitted["slope_ci95"]
    row["exponent"] = -fitted["slope"]
    row["exponent_ci95"] = interval([-ends[1], -ends[0]]) if ends else None
    row["level"] = float(np.exp(fitted["level"]))
    row["level_ci95"] = [float(np.exp(e)) for e in fitted["level_ci95"]] if ends else None
    row["middle"] = float(np.exp(np.mean(np.log(d))))
    row["local"] = [
        float((log_loss[i] - log_loss[j]) / np.log(d[j] / d[i])) for i, j in pairwise(range(len(d)))
    ]
    row["bend_ci95"] = _bend(d, log_loss)
    return row


def _bend(d: Sequence[int], log_loss: Array) -> list[float] | None:
    """95 % interval of the quadratic coefficient of log loss in log D; None under four sizes."""
    df = len(d) - 3
    if df < 1:
        return None
    x = np.log(np.asarray(d, float))
    x = x - x.mean()
    design = np.stack([np.ones_like(x), x, x**2], axis=1)
    weights, *_ = np.linalg.lstsq(design, log_loss, rcond=None)
    residual = log_loss - design @ weights
    error = np.sqrt(residual @ residual / df * np.linalg.inv(design.T @ design)[2, 2])
    half = float(student.ppf(0.975, df) * error)
    return interval([weights[2] - half, weights[2] + half])


def contrast(
    curves: Mapping[str, Mapping[int, float]], name: str, other: str
) -> dict[str, Any] | None:
    """One kind against another over the sizes of both: exponent less the other's, and level over it.

    `slope`: difference of the exponents; below 0: flatter.  `level`: ratio of the losses at the middle
    size, less one; above 0: worse.  Each with a 95 % interval from the scatter over sizes.  None for
    fewer than two sizes.
    """
    sizes = [d for d in curves[name] if d in curves[other]]
    if len(sizes) < 2:
        return None
    ratio = np.array([np.log(curves[name][d] / curves[other][d]) for d in sizes])
    found = line(sizes, ratio)
    slope, level = found["slope_ci95"], found["level_ci95"]
    return {
        "kind": name,
        "other": other,
        "n": len(sizes),
        "slope": -found["slope"],
        "slope_ci95": [-slope[1], -slope[0]] if slope else None,
        "level": float(np.expm1(found["level"])),
        "level_ci95": [float(np.expm1(end)) for end in level] if level else None,
    }


def _exchange(
    curves: Mapping[str, Mapping[int, float]],
    losses: Mapping[tuple[str, int], Array],
    seed: int,
) -> list[dict[str, Any]]:
    """How many labels of a kind do as well as D of the dataset's own: a row a kind and D.

    needed: by a line in logs between measured sizes; None with `bound` "over" or "under" where the loss
    lies beyond the kind's largest or smallest size.  ci95: over draws of validation pairs, in which
    an end may be a bound.
    """
    if not curves:
        return []
    own, *others = curves
    found = []
    for name in others:
        sizes = list(curves[name])
        if not sizes or not curves[own]:
            continue  # no run on these labels reached a minimum
        drawn = _drawn(losses, own, name, list(curves[own]), sizes, seed)
        for place, d in enumerate(curves[own]):
            needed, bound = equal(sizes, list(curves[name].values()), curves[own][d])
            row = {"kind": name, "d": d, "needed": finite(needed), "bound": bound, "ci95": None}
            if drawn is not None and not bound:
                mine, theirs = drawn
                each = [equal(sizes, t, m)[0] for m, t in zip(mine[:, place], theirs, strict=True)]
                row["ci95"] = [float(q) for q in np.quantile(each, [0.025, 0.975])]
            found.append(row)
    return found


def equal(sizes: Sequence[int], losses: Sequence[float], wanted: float) -> tuple[float, str]:
    """The size at which a curve comes to the loss `wanted`, and "over" or "under" where it is beyond an end.

    Beyond an end the size is that end.  A curve that is not falling is taken at its lowest so far.
    """
    falling = np.minimum.accumulate(np.asarray(losses, float))
    if wanted < falling[-1]:
        return float(sizes[-1]), "over"
    if wanted > falling[0]:
        return float(sizes[0]), "under"
    first = np.flatnonzero(np.diff(falling, prepend=np.inf) < 0)  # where it fell to what it is
    x, y = np.log(np.asarray(sizes, float))[first], np.log(falling[first])
    return float(np.exp(np.interp(-np.log(wanted), -y, x))), ""


def _drawn(
    losses: Mapping[tuple[str, int], Array],
    own: str,
    name: str,
    own_sizes: Sequence[int],
    sizes: Sequence[int],
    seed: int,
) -> tuple[Array, Array] | None:
    """Mean losses in draws of the validation pairs, the same for both kinds: [draws, sizes] each."""
    places = [(own, d) for d in own_sizes], [(name, d) for d in sizes]
    if any(place not in losses for each in places for place in each):
        return None
    mine, theirs = (np.array([losses[place] for place in each]) for each in places)
    n_pairs = mine.shape[1]
    random = streams.stream(seed, "label exchange")
    counts = random.multinomial(n_pairs, np.full(n_pairs, 1 / n_pairs), DRAWS) / n_pairs
    return counts @ mine.T, counts @ theirs.T


def _power(laws: Sequence[Mapping[str, Any]], role: Mapping[str, str]) -> Answer:
    """S7: local slopes of each kind, labels made wrong on purpose left out."""
    kept = [law for law in laws if role[law["kind"]] != "wrong" and len(law["local"]) > 1]
    ratio = {law["kind"]: _ratio(law["local"]) for law in kept}
    if not kept:
        why = "no kind has three data sizes"
        return answer(None, why, n=0, blocked=why)
    bent = [
        law["kind"]
        for law in kept
        if ratio[law["kind"]] > FACTOR
        and law["bend_ci95"]
        and (law["bend_ci95"][0] > 0 or law["bend_ci95"][1] < 0)
    ]
    holds = True if max(ratio.values()) <= FACTOR else False if bent else None
    listed = ", ".join(f"{k} {v:.2g}" if np.isfinite(v) else f"{k} rises" for k, v in ratio.items())
    why = f"largest local slope over the smallest: {listed}"
    why += f"; a bend that is no scatter: {', '.join(bent)}" if bent else ""
    return answer(None, why, n=sum(law["n"] for law in kept), holds=holds)


def _ratio(local: Sequence[float]) -> float:
    return max(local) / min(local) if min(local) > 0 else float("inf")


def _flattest(curves: Mapping[str, Mapping[int, float]], role: Mapping[str, str]) -> Answer:
    """S8: ICT against every other kind that is not wrong on purpose: flatter, and worse."""
    ict = [name for name, kind in role.items() if kind == "ict"]
    others = [name for name, kind in role.items() if kind not in ("ict", "wrong")]
    rows = [contrast(curves, ict[0], other) for other in others] if ict else []
    known = [row for row in rows if row and row["slope_ci95"]]
    if not known or len(known) < len(others):
        why = "ICT labels were not run, or on fewer than three data sizes"
        return answer(None, why, n=len(known), blocked=why)
    parts = {}
    for row in known:
        parts[f"slope against {row['other']}"] = part(row["slope"], tuple(row["slope_ci95"]))
        parts[f"level against {row['other']}"] = part(row["level"], tuple(row["level_ci95"]))
    sure = [row["slope_ci95"][1] < 0 and row["level_ci95"][0] > 0 for row in known]
    against = [row["slope_ci95"][0] > 0 or row["level_ci95"][1] < 0 for row in known]
    holds = True if all(sure) else False if any(against) else None
    why = "; ".join(
        f"against {row['other']}: exponent {row['slope']:+.3f}, level {100 * row['level']:+.1f} %"
        for row in known
    )
    return answer(None, why, n=known[0]["n"], parts=parts, holds=holds)


def _order(curves: Mapping[str, Mapping[int, float]], role: Mapping[str, str]) -> Answer:
    """S9: the own labels best, and generated ones better than a language model's, in the level."""
    by = {kind: name for name, kind in role.items()}
    generated = next((by[kind] for kind in GENERATED if kind in by), None)
    wanted = [("own", "llm"), ("generated", "llm"), ("own", "generated")]
    named = {"own": by.get("own"), "llm": by.get("llm"), "generated": generated}
    parts, rows = {}, []
    for better, worse in wanted:
        first, second = named[better], named[worse]
        row = contrast(curves, second, first) if first and second else None
        rows.append(row)
        if row and row["level_ci95"]:
            parts[f"{second} over {first}"] = part(row["level"], tuple(row["level_ci95"]))
    why = "; ".join(f"level of {name} {100 * each['value']:+.1f} %" for name, each in parts.items())
    if any(row is None or not row["level_ci95"] for row in rows):
        lacking = [name for name, own in named.items() if own is None]
        reason = f"no {' and no '.join(lacking)} labels here" if lacking else "too few data sizes"
        why = f"{reason}; {why}" if why else reason
        return answer(None, why, n=len(parts), parts=parts, blocked=why)
    ends = [row["level_ci95"] for row in rows if row]
    holds = True if min(e[0] for e in ends) > 0 else False if any(e[1] < 0 for e in ends) else None
    return answer(None, why, n=len(parts), parts=parts, holds=holds)
