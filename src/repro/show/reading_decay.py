"""Sentences and tables of notebook 07, from the answers of `experiments.weight_decay`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from repro.show.page import cell, estimate

TENSORS = {"matrices": "matrices alone", "all": "vectors too"}  # decayed
NOT_RUN = "This profile has no section `weight_decay`, so nothing of this page was run."


def scan(rows: Sequence[Mapping[str, Any]]) -> str:
    """How far the best decay lowers MAEL at each size, and where the scan ended too early."""
    said: dict[str, list[str]] = {}
    for row in rows:
        own = said.setdefault(row["decayed"], [])
        if row["optimum"] is None:
            own.append(f"on {row['d']:,} pairs no decay reached a minimum")
            continue
        least = min(row["mael"])
        change = f"{100 * (least / row['none'] - 1):+.1f} %" if row["none"] else "(no run without)"
        end = " (an end of the scan: the optimum may lie beyond)" if row["at_end"] else ""
        own.append(f"on {row['d']:,} pairs decay {row['optimum']:.3g}{end}, MAEL {change}")
    found = [f"Best decay, {TENSORS[name]}: {'; '.join(own)}." for name, own in said.items()]
    return "\n\n".join(found) or "No size was scanned."


def conventions(found: Mapping[str, Any] | None) -> str:
    """Whether the second convention moves the optimum or the floor, over the sizes."""
    if found is None:
        return (
            "Which tensors are to be decayed was **not asked**: the scan ran under one convention."
        )
    ratio, floor = found["ratio"], found["floor"]
    if floor["value"] is None:
        return "At no size did both conventions reach a minimum."
    first, second = TENSORS[found["first"]], TENSORS[found["second"]]
    inside = sum(row["ratio"]["value"] is not None for row in found["sizes"])
    optimum = (
        f"{_moves(ratio, 1)} the optimum (times {estimate(ratio)}, geometric mean over {inside} sizes)"
        if ratio["value"] is not None
        else "leaves open whether the optimum moves (at every size one lies at an end of its scan)"
    )
    return (
        f"Decaying {second}, against {first}: that {optimum} and {_moves(floor, 0)} the lowest MAEL of "
        f"the scan ({estimate(floor)} nats, mean over {len(found['sizes'])} sizes). Intervals are over the "
        "validation pairs; each scan has one seed, whose noise they do not hold."
    )


def _moves(given: Mapping[str, Any], null: float) -> str:
    if not given["ci95"]:
        return "may or may not move"
    low, high = given["ci95"]
    return "is not seen to move" if low <= null <= high else "**moves**"


def conventions_by_size(found: Mapping[str, Any]) -> pd.DataFrame:
    """The ratio of the optima and the difference of the lowest MAEL at each size."""
    return pd.DataFrame(
        {
            "D": row["d"],
            "best decay, ratio": row["ratio"]["value"],
            "95 %": row["ratio"]["ci95"],
            "lowest MAEL, difference (nats)": row["floor"]["value"],
            "95 % ": row["floor"]["ci95"],
        }
        for row in found["sizes"]
    )


def optima(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """The optimum of each size with its interval, and the product that the paper holds constant."""
    return pd.DataFrame(
        {
            "D": row["d"],
            "decayed": row["decayed"],
            "lr": row["lr"],
            "best decay": row["optimum"],
            "95 %": row["ci95"],
            "lr x decay x D": row["lr"] * row["optimum"] * row["d"] if row["optimum"] else None,
            "at an end": "yes" if row["at_end"] else "no",
        }
        for row in rows
    )


def differences(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """The gain of the best decay over none: a row a size and place, a column a metric."""
    found: dict[tuple[int, str], dict[str, Any]] = {}
    for row in rows:
        line = found.setdefault((row["d"], row["place"]), {"D": row["d"], "place": row["place"]})
        ends = row["ci95"]
        interval = f" [{cell(ends[0])}, {cell(ends[1])}]" if ends else ""
        line[row["metric"]] = f"{cell(row['better'])}{interval}"
        line["seeds"] = row["seeds"]
    return pd.DataFrame(list(found.values()))
