"""What the runs with weight decay say: answers of notebook 07 to the claims M16 to M19."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import t as student

from repro import seeds as streams
from repro.experiments import law_fits
from repro.experiments.answer import Answer, answer, part
from repro.experiments.replicates import NOT_EXACT
from repro.laws.fit import fit
from repro.laws.intervals import intervals
from repro.params import UserError

Array = NDArray[np.float64]
DRAWS = 1000  # of validation pairs, for the interval of an optimum
METRICS = ("test_entropy", "mrr10", "recall100", "ndcg10", "map10")


def answers(
    table: pd.DataFrame,
    targets: pd.DataFrame,
    losses: dict[tuple[float, int], Array],
    seed: int = 1,
) -> dict[str, Any]:
    """Claim -> answer, with `scan` (a row a size), `differences` and `exponents` beside; plain data.

    table, targets, losses: from the functions of `weight_decay` of these names (losses: `pair_losses`).
    """
    scanned = table[table["part"] == "scan"]
    rows = [_size(scanned[scanned["d"] == d], losses, seed) for d in sorted(set(scanned["d"]))]
    differences = compare(table[table["part"] == "compared"], targets)
    exponents = _exponents(table[table["part"] == "law"])
    return {
        "M16": _rule(rows),
        "M17": _largest(rows),
        "M18": _better(differences),
        "M19": _moved(exponents),
        "scan": [{k: v for k, v in row.items() if k != "draws"} for row in rows],
        "differences": differences.to_dict("records"),
        "exponents": exponents,
    }


def _size(own: pd.DataFrame, losses: dict[tuple[float, int], Array], seed: int) -> dict[str, Any]:
    """The optimum at one size: by a parabola in log decay, with draws over the validation pairs."""
    usable = own[~own["state"].isin(NOT_EXACT)]
    with_decay = usable[usable["weight_decay"] > 0].sort_values("weight_decay")
    decays, mael = (with_decay[name].to_numpy(float) for name in ("weight_decay", "mael"))
    d = int(own["d"].iloc[0])
    none = usable.loc[usable["weight_decay"] == 0, "mael"]
    draws = np.empty(0)
    if all((decay, d) in losses for decay in decays) and len(decays):
        pairs = np.array([losses[decay, d] for decay in decays])
        rng = streams.stream(seed, "weight decay", d)
        counts = rng.multinomial(pairs.shape[1], np.full(pairs.shape[1], 1 / pairs.shape[1]), DRAWS)
        draws = np.array([optimum(decays, one) for one in counts @ pairs.T / pairs.shape[1]])
    best = optimum(decays, mael) if len(decays) else None
    at_end = best is not None and best in (decays[0], decays[-1])
    known = len(draws) and not at_end  # beyond an end nothing is known, whatever the draws say
    return {
        "d": d,
        "lr": float(own["lr"].iloc[0]),
        "decays": decays.tolist(),
        "mael": mael.tolist(),
        "none": float(none.iloc[0]) if len(none) else None,
        "optimum": best,
        "at_end": at_end,
        "ci95": [float(q) for q in np.quantile(draws, [0.025, 0.975])] if known else None,
        "draws": draws,
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


def _rule(rows: Sequence[dict[str, Any]]) -> Answer:
    """M16: the slope of log optimum on log D; the paper's rule says -1."""
    known = [row for row in rows if row["optimum"] is not None]
    ends = [row["d"] for row in known if row["at_end"]]
    if len(known) < 3:
        why = f"{len(known)} data sizes with an optimum: a slope takes three"
        return answer(None, why, n=len(known), blocked=why)
    x = np.log([row["d"] for row in known])
    slope = float(np.polyfit(x, np.log([row["optimum"] for row in known]), 1)[0])
    interval = None
    if all(len(row["draws"]) for row in known):
        drawn = np.polyfit(x, np.log([row["draws"] for row in known]), 1)[0]
        low, high = np.quantile(drawn, [0.025, 0.975])
        interval = (float(low), float(high))
    listed = ", ".join(f"{row['optimum']:.3g}" for row in known)
    why = f"optima {listed}; interval over draws of the validation pairs, seeds not in it"
    if ends:
        why += f"; at an end of the scan on {', '.join(f'{d:,}' for d in ends)} pairs"
        return answer(slope, why, n=len(known), ci95=interval, blocked=why)
    holds = None
    if interval:
        inside = interval[0] <= -1 <= interval[1]
        holds = False if not inside else True if interval[1] < 0 else None
    return answer(slope, why, n=len(known), ci95=interval, holds=holds)


def _largest(rows: Sequence[dict[str, Any]]) -> Answer:
    """M17: the best decay at the largest size."""
    row = rows[-1] if rows else None
    if row is None or row["optimum"] is None:
        return answer(None, "no optimum", n=0, blocked="no decay reached a minimum there")
    why = f"at D = {row['d']:,}, lr {row['lr']:g}"
    why += ", at an end of the scan" if row["at_end"] else ""
    ends = (row["ci95"][0], row["ci95"][1]) if row["ci95"] else None
    parts = {"decay": part(row["optimum"], ends)}
    return answer(row["optimum"], why, n=len(row["decays"]), ci95=ends, parts=parts)


def compare(table: pd.DataFrame, targets: pd.DataFrame) -> pd.DataFrame:
    """Tuned less none, paired by seed: a row a size, place and metric, with a t-interval over seeds.

    Places: `in domain`, each target, and `mean of targets`.  `better` is the gain: a fall of entropy
    or MAEL, a rise of the others.
    """
    if table.empty:
        return pd.DataFrame(columns=["d", "place", "metric", "better", "ci95", "seeds"])
    own = [table.assign(place="in domain")]
    if len(targets):
        own.append(targets.rename(columns={"target": "place"}))
        keys = ["d", "seed", "weight_decay"]
        mean = targets.groupby(keys)[list(METRICS)].mean().reset_index()
        own.append(mean.assign(place="mean of targets"))
    rows = pd.concat(own, ignore_index=True)
    found = []
    for (d, place), group in rows.groupby(["d", "place"], sort=False):
        for metric in (*METRICS, "mael"):
            if metric not in group or group[metric].isna().any():
                continue
            by_seed = group.pivot_table(index="seed", columns="weight_decay", values=metric)
            if by_seed.shape[1] != 2:
                continue
            gain = (by_seed.iloc[:, 1] - by_seed.iloc[:, 0]).dropna().to_numpy(float)
            gain = -gain if metric in ("mael", "test_entropy") else gain
            n = len(gain)
            half = np.inf if n < 2 else student.ppf(0.975, n - 1) * gain.std(ddof=1) / n**0.5
            ends = [gain.mean() - half, gain.mean() + half] if np.isfinite(half) else None
            row = {"d": d, "place": place, "metric": metric, "better": gain.mean()}
            found.append({**row, "ci95": ends, "seeds": n})
    return pd.DataFrame(found)


def _better(differences: pd.DataFrame) -> Answer:
    """M18: at the largest size compared, in domain and over the mean of the targets (test entropy)."""
    if differences.empty:
        why = "the comparison was not run"
        return answer(None, why, n=0, blocked=why)
    last = differences[differences["d"] == differences["d"].max()]
    last = last[last["metric"] == "test_entropy"].set_index("place")
    parts = {}
    for name, place in (("in_domain", "in domain"), ("targets", "mean of targets")):
        if place in last.index:
            row = last.loc[place]
            parts[name] = part(row["better"], tuple(row["ci95"]) if row["ci95"] else None)
    seeds = int(last["seeds"].min())
    why = f"fall of test entropy by the best decay, D = {int(differences['d'].max()):,}, {seeds} seeds"
    if len(parts) < 2 or any(each["ci95"] is None for each in parts.values()):
        return answer(None, why, n=seeds, parts=parts, blocked=f"{why}: not everything is there")
    low = [each["ci95"][0] for each in parts.values()]
    high = [each["ci95"][1] for each in parts.values()]
    holds = True if min(low) > 0 else False if min(high) < 0 else None
    return answer(parts["in_domain"]["value"], why, n=seeds, parts=parts, holds=holds)


def _exponents(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The product law on the small grid, without and with decay: exponents with intervals."""
    found = []
    for name, own in (
        ("no decay", table[table["weight_decay"] == 0] if len(table) else table),
        ("tuned decay", table[table["weight_decay"] > 0] if len(table) else table),
    ):
        try:
            fitted = fit("product", law_fits.losses(own))
        except (UserError, KeyError):
            continue
        ends = intervals(fitted)
        for exponent in ("alpha", "beta"):
            given = ends.get(exponent)
            row = {"law": name, "exponent": exponent, "value": float(fitted.parameters[exponent])}
            found.append({**row, "ci95": list(given) if given else None, "n": len(own)})
    return found


def _moved(exponents: Sequence[dict[str, Any]]) -> Answer:
    """M19: are the intervals of an exponent with and without decay apart?"""
    by = {(row["law"], row["exponent"]): row for row in exponents}
    if len(by) < 4 or any(row["ci95"] is None for row in by.values()):
        why = "the law was not refitted with tuned decay"
        return answer(None, why, n=len(by), blocked=why)
    apart, parts = [], {}
    for name in ("alpha", "beta"):
        before, after = by["no decay", name], by["tuned decay", name]
        apart.append(after["ci95"][0] > before["ci95"][1] or after["ci95"][1] < before["ci95"][0])
        parts[name] = part(after["value"], tuple(after["ci95"]))
        parts[f"{name}_none"] = part(before["value"], tuple(before["ci95"]))
    why = "; ".join(f"{k} {v['value']:.3f}" for k, v in parts.items())
    n = by["no decay", "alpha"]["n"]
    return answer(None, why, n=n, parts=parts, holds=True if any(apart) else None)
