"""What the runs with weight decay say: answers of notebook 07 to the claims M16 to M19."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import t as student

from repro.errors import UserError
from repro.experiments import decay_scan, law_fits
from repro.experiments.answer import Answer, answer, part
from repro.laws.fit import fit
from repro.laws.intervals import intervals

METRICS = ("test_entropy", "mrr10", "recall100", "ndcg10", "map10")


def answers(
    table: pd.DataFrame,
    targets: pd.DataFrame,
    losses: decay_scan.ScanLosses,
    conventions: Sequence[str] = ("matrices",),
    seed: int = 1,
) -> dict[str, Any]:
    """Claim -> answer, with what it rests on beside; plain data.

    scan: a row a convention and size.  conventions: see `decay_scan.moved`.  differences, exponents: of
    the best decay under the first convention, which M17 to M19 are about.
    table, targets, losses: from the functions of `weight_decay` of these names (losses: `pair_losses`).
    """
    optima = decay_scan.optima(table[table["part"] == "scan"], losses, conventions, seed)
    differences = compare(table[table["part"] == "compared"], targets)
    exponents = _exponents(table[table["part"] == "law"])
    return {
        "M16": _rule(optima),
        "M17": _largest(optima[conventions[0]]),
        "M18": _better(differences),
        "M19": _moved(exponents),
        "scan": [
            {k: v for k, v in row.items() if k not in ("draws", "floors")}
            for rows in optima.values()
            for row in rows
        ],
        "conventions": decay_scan.moved(optima),
        "differences": differences.to_dict("records"),
        "exponents": exponents,
    }


def _rule(optima: Mapping[str, Sequence[dict[str, Any]]]) -> Answer:
    """M16: the slope of log optimum on log D under the first convention; the paper's rule says -1.

    The slope under another convention stands in `parts` and in the words.
    """
    first, *others = optima
    known = [row for row in optima[first] if row["optimum"] is not None]
    slopes = {name: decay_scan.slope(optima[name]) for name in others}
    parts = {f"slope_{name}": slope for name, slope in slopes.items()}
    own = decay_scan.slope(optima[first])
    if own["value"] is None:
        why = f"{len(known)} data sizes with an optimum: a slope takes three"
        return answer(None, why, n=len(known), parts=parts, blocked=why)
    why = f"optima {_listed(known)}; interval over draws of the validation pairs, seeds not in it"
    ends = [row["d"] for row in known if row["at_end"]]
    if ends:
        why += f"; at an end of the scan on {', '.join(f'{d:,}' for d in ends)} pairs"
    for name, slope in slopes.items():
        if slope["value"] is not None:
            rows = [row for row in optima[name] if row["optimum"] is not None]
            at_end = ", some at an end of the scan" if any(row["at_end"] for row in rows) else ""
            why += f"; {name} decayed: slope {slope['value']:.2f}, optima {_listed(rows)}{at_end}"
    interval = (own["ci95"][0], own["ci95"][1]) if own["ci95"] else None
    holds = None
    if interval:
        inside = interval[0] <= -1 <= interval[1]
        holds = False if not inside else True if interval[1] < 0 else None
    blocked = why if ends else ""
    return answer(
        own["value"], why, n=len(known), ci95=interval, parts=parts, blocked=blocked, holds=holds
    )


def _listed(rows: Sequence[dict[str, Any]]) -> str:
    return ", ".join(f"{row['optimum']:.3g}" for row in rows)


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
