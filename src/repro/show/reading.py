"""Sentences that depend on what was found: states of runs, noise of seeds, which law is ahead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from repro.show.page import percent

STATES = {
    "turned": "turned (the minimum is passed)",
    "plateau": "plateau (flat, no clear rise)",
    "censored": "censored (still falling: MAEL is an upper bound)",
    "diverged": "diverged (left out)",
}


def states(table: pd.DataFrame) -> str:
    """How many runs of each state, in words."""
    counts = table["state"].value_counts()
    found = [f"{counts[state]} {said}" for state, said in STATES.items() if state in counts]
    return f"Of {len(table)} runs: {'; '.join(found)}."


def seed_noise(table: pd.DataFrame) -> str:
    """The spread of MAEL between seeds of one cell, or that it is not known."""
    spread = table.groupby(["model", "d"])["mael"].agg(["std", "mean", "count"])
    again = spread[spread["count"] > 1]
    if again.empty:
        return (
            "Every cell was run with one seed, so the noise of seeds is **not known** from this study; "
            "the bars in the figures hold the sampling of evaluation pairs only."
        )
    share = float((again["std"] / again["mean"]).mean())
    return f"Between seeds of one cell MAEL varies by {100 * share:.1f} % (sd, mean of {len(again)} cells)."


def fall(table: pd.DataFrame) -> str:
    """How far MAEL falls along each axis of the grid."""
    mean = table.pivot_table(index="model", columns="d", values="mael")
    by_d = mean[mean.columns.max()] / mean[mean.columns.min()]
    sizes = table.groupby("model")["n_encoder"].first().sort_values().index
    by_n = mean.loc[sizes[-1]] / mean.loc[sizes[0]]
    pairs, params = _factor(table, "d"), _factor(table, "n_encoder")
    return (
        f"{pairs:.0f} times the pairs change MAEL by {_percents(by_d - 1)}, depending on the model; "
        f"{params:.0f} times the parameters by {_percents(by_n - 1)}, depending on D."
    )


def regime(found: Mapping[str, Any]) -> str:
    """Where the loss is a power law in D, or that it is none, as a sentence."""
    reason = str(found["reason"])
    return f"{reason[:1].upper()}{reason[1:]}."


def hold_outs(laws: Mapping[str, Mapping[str, Any]]) -> str:
    """Which law predicts best what it has not seen, for each way to hold out."""
    said = []
    for key, what in (
        ("loo_model_mre", "a model left out"),
        ("loo_size_mre", "a data size left out"),
        ("corner_mre", "the largest corner"),
    ):
        known = {law["title"]: law[key] for law in laws.values() if law.get(key) is not None}
        if known:
            best = min(known, key=lambda name: known[name])
            said.append(f"{what}: the {best} ({100 * known[best]:.1f} %)")
    return (
        f"Smallest error, by what is held out: {'; '.join(said)}."
        if said
        else "No law was determined."
    )


def laws(found: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
    """The fitted laws as a table: formula, parameters, residual, AICc and held-out errors."""
    rows = []
    for name, law in found.items():
        if not law.get("params"):
            rows.append({"law": name, "parameters": law.get("note", "")})
            continue
        listed = ", ".join(f"{key} {value:.3g}" for key, value in law["params"].items())
        rows.append(
            {
                "law": law["title"],
                "formula": f"`{law['formula']}`",
                "parameters": listed,
                "residual %": _hundred(law["residual"]),
                "AICc": law["aicc"],
                "model out %": _hundred(law["loo_model_mre"]),
                "size out %": _hundred(law["loo_size_mre"]),
                "corner %": _hundred(law["corner_mre"]),
            }
        )
    return pd.DataFrame(rows)


def correlations(found: Mapping[str, Any]) -> pd.DataFrame:
    """Correlation of MAEL with each metric: over all runs, and the range inside rows and columns."""
    rows = []
    for row in found["correlations"]:
        line = {"metric": row["title"], "n": row["n"], "Pearson": row["pearson"]}
        line |= {"95 %": row["ci95"], "Spearman": row["spearman"]}
        for kind, what in (("model", "inside a model"), ("D", "inside a D")):
            inside = [
                w["pearson"]
                for w in found["within"]
                if w["metric"] == row["metric"] and w["inside"] == kind and w["pearson"] is not None
            ]
            line[what] = f"{min(inside):.3f} to {max(inside):.3f}" if inside else None
        rows.append(line)
    return pd.DataFrame(rows)


def depth(rows: Sequence[Mapping[str, Any]]) -> str:
    """Whether layers at one width lower the loss as parameters do, or that the grid cannot say."""
    if not rows:
        return "No two models of this grid have one width, so depth alone is **not tested**."
    said = []
    for row in rows:
        ends = row["ci95"]
        interval = f" [{ends[0]:.3f}, {ends[1]:.3f}]" if ends else ""
        said.append(f"{row['models'][0]} to {row['models'][1]} {row['slope']:.3f}{interval}")
    return f"Exponent in N from depth alone, at one width: {'; '.join(said)} (t over data sizes)."


def _hundred(share: float | None) -> str | None:
    return None if share is None else percent(share)


def _factor(table: pd.DataFrame, column: str) -> float:
    return float(table[column].max() / table[column].min())


def _percents(shares: pd.Series) -> str:
    low, high = 100 * shares.min(), 100 * shares.max()
    return f"{low:+.0f} %" if round(low) == round(high) else f"{low:+.0f} to {high:+.0f} %"
