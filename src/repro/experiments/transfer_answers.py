"""Pre-train or annotate?  Answers of notebook 08 (claims T1 to T5), from the table of its runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import chi2

from repro import seeds as streams
from repro.errors import UserError
from repro.experiments import transfer_budget, transfer_fits, transfer_worth
from repro.experiments.answer import Answer, answer, part
from repro.laws.fit import fit
from repro.laws.shapes import Array
from repro.laws.transfer import FULL, SIMPLER

LEAST_TARGETS = 3  # for a spread over targets
SMALL = 0.25  # relative half-width of an interval that may be called small; fixed beforehand
ONE_PAIR = 1.0  # a head start of less is none
ALIKE = 0.05  # exponents of targets differ where homogeneity is rejected at this level


def answers(
    table: pd.DataFrame | None, prices: Sequence[float] = transfer_budget.PRICES, seed: int = 1
) -> dict[str, Any]:
    """Claim -> answer, with `targets` (a dictionary each, plain data) and `points` beside.

    table: as from `transfer.table`; None where the profile does not ask for transfer: then T3:calc
    alone, which needs no run.  prices: of a labelled pair, in pre-training steps.
    """
    found: dict[str, Any] = {"T3:calc": transfer_budget.by_formula(), "targets": [], "points": []}
    if table is None:
        return found
    names = list(dict.fromkeys(table["target"]))
    targets = [_target(name, table[table["target"] == name], prices, seed) for name in names]
    rng = streams.stream(seed, "transfer", "targets")
    found["T1"] = _described(targets, rng)
    found["T2"] = _exponents(targets)
    found["T3"] = _moves(targets)
    found["T4"] = _known(targets)
    found["T5"] = _worth(targets)
    found["targets"] = [{k: v for k, v in one.items() if k != "draws"} for one in targets]
    found["points"] = table.drop(columns="weights").to_dict("records")
    return found


def _target(name: str, rows: pd.DataFrame, prices: Sequence[float], seed: int) -> dict[str, Any]:
    """Everything that is fitted to the points of one target; `problem` says what could not be."""
    rng = streams.stream(seed, "transfer", name)
    counts = rows.loc[rows["f"] > 0, "state"].value_counts()
    found: dict[str, Any] = {"target": name, "n": 0, "problem": "", "laws": [], "draws": None}
    found |= {"states": {str(k): int(v) for k, v in counts.items()}, "splits": [], "falls": []}
    found |= {"gap_left": None, "widths": [], "at_150": None, "worth": None, "equivalents": []}
    try:
        points = transfer_fits.points(rows)
        found["n"] = len(points)
        found["worth"] = transfer_worth.head_starts(points, rng)
        found["equivalents"] = transfer_worth.equivalents(points)
        found["problem"] = transfer_fits.lacking(points)
        if found["problem"]:
            return found
        fitted = fit(FULL, points)
    except UserError as error:
        return found | {"problem": error.what}
    found["laws"] = transfer_fits.laws(points)
    found["unspared"] = transfer_fits.lacking(points, spare=1)
    draws = transfer_fits.drawn(fitted, rng)
    found |= {"draws": draws, "gap_left": transfer_budget.gap_left(fitted, draws)}
    found["splits"] = transfer_budget.splits(fitted, draws, prices)
    found["falls"] = transfer_budget.falls(fitted, draws, prices)
    found["widths"] = transfer_fits.widths_by_points(fitted, rng)
    found["at_150"] = transfer_fits.widths_of_150(fitted, fitted.sigma)
    found["at_150_ci95"] = transfer_fits.widths_of_150_drawn(fitted, draws)
    return found


def _problems(targets: Sequence[dict[str, Any]]) -> str:
    """Why nothing can be said, of every target ("" where one determines the law)."""
    if not targets:
        return "no run of transfer has finished"
    if any(not one["problem"] for one in targets):
        return ""
    return "; ".join(f"{one['target']}: {one['problem']}" for one in targets)


def _described(targets: Sequence[dict[str, Any]], rng: np.random.Generator) -> Answer:
    """T1: the left-out error of each simpler form over that of the transfer law."""
    why = _problems(targets)
    usable = [one for one in targets if one["laws"] and not one["unspared"]]
    if not why and not usable:
        why = "; ".join(f"{one['target']}: {one['unspared']}" for one in targets if one["laws"])
    found = transfer_fits.ratios([one["laws"] for one in usable], rng) if not why else {}
    n = sum(one["n"] for one in usable)
    if not why and len(found) < len(SIMPLER):
        why = "not every form could be fitted with a checkpoint or a size left out"
    if why:
        return answer(None, why, n=n, blocked=why)
    worst = min(found, key=lambda name: found[name][0])
    titles = {form.name: form.title for form in SIMPLER}
    own = [one["laws"][0][by] for one in usable for by in ("loo_p", "loo_f")]
    why = f"left-out error {100 * np.mean(own):.1f} %; simpler forms over it: "
    why += ", ".join(f"{titles[k]} {v:.2f} [{e[0]:.2f}, {e[1]:.2f}]" for k, (v, e) in found.items())
    low = min(ends[0] for _, ends in found.values())
    high = min(ends[1] for _, ends in found.values())
    holds = True if low > 1 else False if high <= 1 + 1e-6 else None
    parts = {name: part(value, ends) for name, (value, ends) in found.items()}
    return answer(found[worst][0], why, n=n, ci95=found[worst][1], parts=parts, holds=holds)


def _exponents(targets: Sequence[dict[str, Any]]) -> Answer:
    """T2: the spread of beta over targets against that of alpha, both over their means."""
    usable = [one for one in targets if one["draws"]]
    if len(usable) < LEAST_TARGETS:
        why = f"{len(usable)} target{'s' if len(usable) != 1 else ''} with a determined law: "
        why += f"a spread takes {LEAST_TARGETS}"
        return answer(None, why, n=len(usable), blocked=why)
    spread, apart, said = {}, {}, []
    for name in ("alpha", "beta"):
        drawn = np.array([one["draws"][name] for one in usable])
        values = np.array([one["laws"][0]["params"][name] for one in usable])
        spread[name] = np.concatenate([[_variation(values)], _variation(drawn)])
        ends = [
            one["laws"][0]["ci95"].get(name) for one in usable
        ]  # wide where draws rest at a bound
        half = np.array([(end[1] - end[0]) / 4 if end else 0.0 for end in ends])
        errors = np.maximum(drawn.std(axis=1, ddof=1), half)
        apart[name] = _homogeneity(values, errors) < ALIKE
        said.append(f"{name} {', '.join(f'{v:.2f}' for v in values)}")
        said[-1] += " (differ)" if apart[name] else " (no difference beyond their errors)"
    ratio = spread["beta"] / np.maximum(spread["alpha"], 1e-9)
    low, high = (float(q) for q in np.quantile(ratio[1:], [0.025, 0.975]))
    holds = None
    if low > 1 and apart["beta"]:
        holds = True
    elif high <= 1 and apart["alpha"]:
        holds = False
    parts = {name: part(float(spread[name][0])) for name in spread}
    why = "; ".join(said) + "; value: relative spread of beta over that of alpha"
    return answer(float(ratio[0]), why, n=len(usable), ci95=(low, high), parts=parts, holds=holds)


def _variation(values: Array) -> Array:
    """Standard deviation over mean, over targets (the first axis)."""
    return np.asarray(values.std(axis=0, ddof=1) / np.maximum(values.mean(axis=0), 1e-9))


def _homogeneity(values: Array, errors: Array) -> float:
    """p of Cochran's Q: could the values be one value, seen with these errors?"""
    weights = 1 / np.maximum(errors, 1e-12) ** 2
    q = float(np.sum(weights * (values - np.average(values, weights=weights)) ** 2))
    return float(chi2.sf(q, len(values) - 1))


def _moves(targets: Sequence[dict[str, Any]]) -> Answer:
    """T3: the pre-training share of the best split falls as G grows, at every price and target."""
    why = _problems(targets)
    if why:
        return answer(None, why, n=0, blocked=why)
    rows = [(one, row) for one in targets for row in one["falls"]]
    least = max(rows, key=lambda pair: pair[1]["change"])[1]
    lows = [row["ci95"][0] if row["ci95"] else -np.inf for _, row in rows]
    highs = [row["ci95"][1] if row["ci95"] else np.inf for _, row in rows]
    holds = True if max(highs) < 0 else False if max(lows) >= 0 else None
    left = [f"{one['gap_left']['value']:.0%}" for one in targets if one["gap_left"]]
    why = (
        f"share spent on pre-training changes by {least['change']:+.2f} or more from no gap to a large "
        "one (a property of the form wherever alpha is above 0); of the gap at the last checkpoint "
        f"no pre-training closes {', '.join(left)}"
    )
    return answer(least["change"], why, n=len(rows), ci95=least["ci95"], holds=holds)


def _known(targets: Sequence[dict[str, Any]]) -> Answer:
    """T4: the widest relative half-width at 150 points, over parameters and targets."""
    why = _problems(targets)
    if why:
        return answer(None, why, n=0, blocked=why)
    usable = [one for one in targets if one["at_150"]]
    widest, bound, ends = (0.0, "", ""), [], {}
    for one in usable:
        for name, value in one["at_150"].items():
            if value is None:
                bound.append(f"{name} on {one['target']}")
                continue
            ends[name, one["target"]] = one["at_150_ci95"][name]
            widest = max(widest, (value, name, one["target"]))
    last = [one["widths"][-1] for one in usable if one["widths"]]
    n = sum(one["n"] for one in usable)
    if not widest[1]:
        why = f"every parameter rests at a bound: {', '.join(bound)}"
        return answer(None, why, n=n, blocked=why)
    interval = ends.get((widest[1], widest[2]))
    why = f"widest at 150 points: {widest[1]} on {widest[2]}, half its 95 % interval over its value"
    why += (
        f" (small: under {SMALL:g}); measured on {', '.join(str(r['points']) for r in last)} points"
    )
    why += f"; at a bound: {', '.join(bound)}" if bound else ""
    highs = [each[1] if each else np.inf for each in ends.values()]
    lows = [each[0] if each else np.inf for each in ends.values()]
    holds = True if max(highs) < SMALL and not bound else False if max(lows) > SMALL else None
    pair = (interval[0], interval[1]) if interval else None
    return answer(widest[0], why, n=n, ci95=pair, holds=holds)


def _worth(targets: Sequence[dict[str, Any]]) -> Answer:
    """T5: D0 of the last checkpoint above 0, and D0 growing with p, on curves shared and of their own."""
    usable = [one for one in targets if one["worth"] and one["worth"]["shared_growth"]]
    if not usable:
        why = _problems(targets) or "D0 on one curve takes three checkpoints and four sizes"
        return answer(None, why, n=0, blocked=why)
    decided, said = [], []
    for one in usable:
        worth = one["worth"]
        last = worth["rows"][-1]
        slopes = [worth["shared_growth"], worth["growth"]]
        decided.append(True if last["paid_ci95"] and last["paid_ci95"][0] > ONE_PAIR else None)
        decided += [_decide(slope["ci95"] if slope else None) for slope in slopes]
        said.append(f"{one['target']}: D0 ~ p^{slopes[0]['value']:.2f} on one curve" + (
            f", p^{slopes[1]['value']:.2f} on curves of their own" if slopes[1] else ""
        ))  # fmt: skip
        if worth["p_shared"] is not None and worth["p_shared"] < ALIKE:
            said[-1] += " (one curve does not describe all checkpoints)"
    holds = True if all(d is True for d in decided) else None
    holds = False if all(d is False for d in decided[1::3] + decided[2::3]) else holds
    worth = usable[0]["worth"]
    one_curve = worth["p_shared"] is None or worth["p_shared"] >= ALIKE
    last = worth["rows"][-1]
    value, ends = (last["shared"], last["shared_ci95"]) if one_curve else (last["d0"], last["ci95"])
    why = f"D0 of {last['p']} steps on {'one curve' if one_curve else 'a curve of its own'}; "
    why += "; ".join(said)
    n = sum(one["n"] for one in usable)
    pair = (ends[0], ends[1]) if ends else None
    parts = {"growth": part(worth["shared_growth"]["value"])}
    return answer(value, why, n=n, ci95=pair, parts=parts, holds=holds)


def _decide(ends: Sequence[float] | None) -> bool | None:
    """True where the interval lies above 0, False where it lies at or below, else None."""
    if ends is None or ends[0] <= 0 < ends[1]:
        return None
    return bool(ends[0] > 0)
