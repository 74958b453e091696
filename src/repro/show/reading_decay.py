"""Sentences and tables of notebook 07, from the answers of `experiments.weight_decay`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from repro.show.page import cell

NOT_RUN = "This profile has no section `weight_decay`, so nothing of this page was run."


def scan(rows: Sequence[Mapping[str, Any]]) -> str:
    """How far the best decay lowers MAEL at each size, and where the scan ended too early."""
    said = []
    for row in rows:
        if row["optimum"] is None:
            said.append(f"on {row['d']:,} pairs no decay reached a minimum")
            continue
        least = min(row["mael"])
        change = f"{100 * (least / row['none'] - 1):+.1f} %" if row["none"] else "(no run without)"
        end = " (an end of the scan: the optimum may lie beyond)" if row["at_end"] else ""
        said.append(f"on {row['d']:,} pairs decay {row['optimum']:.3g}{end}, MAEL {change}")
    return f"Best decay: {'; '.join(said)}." if said else "No size was scanned."


def optima(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """The optimum of each size with its interval, and the product that the paper holds constant."""
    return pd.DataFrame(
        {
            "D": row["d"],
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
