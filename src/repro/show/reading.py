"""Sentences that depend on what was found: states of runs, noise of seeds, which law is ahead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from repro.show.page import cell, chance, percent

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


def seed_noise(noise: Any) -> str:
    """The pooled noise of the seeds (an `experiments.replicates.SeedNoise`), or that it is not known."""
    if noise is None:
        return (
            "Every cell was run with one seed, so the noise of seeds is **not known** from this study; "
            "the bars in the figures hold the sampling of evaluation pairs only."
        )
    low, high = noise.ci95
    return (
        f"Pooled sd between seeds of one cell: **{noise.sd:.3f} nats** [{low:.3f}, {high:.3f}], "
        f"{100 * noise.relative:.1f} % of MAEL ({noise.df} degrees of freedom, {noise.cells} cells). A seed "
        "changes the order of batches, the negatives and dropout, not which pairs are drawn; and all "
        "cells are read on one set of validation pairs, whose own draw is not in this sd: a step "
        "counts where other pairs bear it out (table under Reading)."
    )


def soundness(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """What was asked of the grid beforehand, what was found, and where it is not so."""
    said = {True: "● yes", False: "○ no", None: "◌ not known"}
    return pd.DataFrame(
        {
            "": said[row["met"]],
            "asked of the grid": row["check"],
            "limit": row["asked"],
            "found": row["found"],
        }
        for row in rows
    )


def weak_steps(rows: Sequence[Mapping[str, Any]]) -> str:
    """Where a check of `soundness` on the steps or the runs is not met, by name."""
    lacking = [row for row in rows if row["met"] is False and row["where"]]
    if not lacking:
        return "Nothing that could be checked falls short."
    return "Where it is not so:\n\n" + "\n".join(
        f"- *{row['check']}* ({row['found']}): {row['where']}." for row in lacking
    )


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


def ranges(found: Mapping[str, Any]) -> str:
    """Over how many sizes the slopes agree inside each model, and inside how many over enough."""
    if len(found["all_sizes"]) < found["least_sizes"]:
        return (
            f"With {len(found['all_sizes'])} data sizes no model has slopes that could agree: that takes "
            f"{found['least_sizes']}."
        )
    said = [
        f"{model} {len(sizes)} ({sizes[0]:,} to {sizes[-1]:,})" if sizes else f"{model} none"
        for model, sizes in found["ranges"].items()
    ]
    return (
        f"Model by model, the longest range whose local slopes agree within a factor of two: "
        f"{'; '.join(said)}. {found['agreeing']} of {len(said)} models have a range of "
        f"{found['least_sizes']} of {len(found['all_sizes'])} sizes or more of their own; a regime takes "
        f"{found['least_models']} models that share one."
    )


BENDS = {
    "straight": "**No bend is seen**: one slope describes D",
    "head start": "**A head start describes the bend**: worth D0 pairs, it makes the slopes grow with D",
    "chance": "**The ceiling of chance describes the bend**: few pairs leave the loss near it",
    "floor": "**A floor describes the bend**: the slopes shrink with D",
    "open": "**There is a bend**, and more than one of these laws describes it about as well",
    "unexplained": "**There is a bend**, but none of these laws predicts left-out sizes much better",
    "unknown": "This grid is too small to tell a bend",
}


def bend(found: Mapping[str, Any]) -> str:
    """What bends the lines in D, how well each law says it, and whether seeds could explain the rest."""
    said = [f"{BENDS[found['kind']]}."]
    if change := found["change"]:
        low, high = change["ci95"]
        said[0] += (
            f" From the first step in D to the last the local slope changes by {change['value']:+.3f} "
            f"[{low:+.3f}, {high:+.3f}] (t over {change['models']} models)."
        )
    for law in found["laws"]:
        if not law["slopes"] or law["size_error"] is None:
            continue
        text = (
            f"{law['title']}: the mean over models of a left-out size is off by "
            f"{percent(law['size_error'])} % (single cells: {percent(law['loo_size_mre'])} %); "
            f"{law['inside']} of {len(law['slopes'])} slopes lie in the measured interval"
        )
        if law["beyond_noise"] is not None:
            text += f"; more is left than seeds make: {chance(law['beyond_noise'])}"
        said.append(f"- {text}")
    return "\n".join([said[0], "", *said[1:]])


def bends(found: Mapping[str, Any]) -> pd.DataFrame:
    """The laws that bend in D, fitted to all sizes: parameters with intervals, errors, slopes."""
    rows = []
    for law in found["laws"]:
        if not law["params"]:
            continue
        row = {"law": law["title"], "formula": f"`{law['formula']}`"}
        for name in ("alpha", "beta"):
            row[name] = _with_ends(law, name)
        row["bent by"] = next(
            (
                f"{name} = {_with_ends(law, name)}"
                for name in ("D0", "L0", "E")
                if name in (law["params"] or {})
            ),
            "–",
        )
        row |= {
            "residual %": _hundred(law["residual"]),
            "size out %": _hundred(law["loo_size_mre"]),
        }
        row |= {
            "model out %": _hundred(law["loo_model_mre"]),
            "corner %": _hundred(law["corner_mre"]),
        }
        known = [slope for slope in law["slopes"] if slope is not None]
        row["slopes in D"] = f"{known[0]:.3f} to {known[-1]:.3f}" if known else None
        rows.append(row)
    return pd.DataFrame(rows)


def leaders(laws: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, str, float]]:
    """For each way to hold out: what is held out, the law that misses it least, and by how much."""
    found = []
    for key, what in (
        ("loo_model_mre", "a model left out"),
        ("loo_size_mre", "a data size left out"),
        ("corner_mre", "the largest corner"),
    ):
        known = {law["title"]: law[key] for law in laws.values() if law.get(key) is not None}
        if known:
            best = min(known, key=lambda name: known[name])
            found.append((what, best, known[best]))
    return found


def hold_outs(laws: Mapping[str, Mapping[str, Any]]) -> str:
    """Which law predicts best what it has not seen, for each way to hold out."""
    said = [f"{what}: the {best} ({100 * error:.1f} %)" for what, best, error in leaders(laws)]
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
    return (
        "Exponent by which the loss falls in N from depth alone, at one width (below 0: layers raise it): "
        f"{depths(rows)} (t over data sizes)."
    )


def depths(rows: Sequence[Mapping[str, Any]]) -> str:
    """The exponents from depth alone, model by model."""
    said = []
    for row in rows:
        ends = row["ci95"]
        interval = f" [{ends[0]:.3f}, {ends[1]:.3f}]" if ends else ""
        slope = "not measured" if row["slope"] is None else f"{row['slope']:.3f}{interval}"
        said.append(f"{row['models'][0]} to {row['models'][1]} {slope}")
    return "; ".join(said)


def _with_ends(law: Mapping[str, Any], name: str) -> str:
    value, ends = (law["params"] or {}).get(name), (law["ci95"] or {}).get(name)
    return cell(value) + (f" {cell(list(ends))}" if ends else " (fixed)" if name == "L0" else "")


def _hundred(share: float | None) -> str | None:
    return None if share is None else percent(share)


def _factor(table: pd.DataFrame, column: str) -> float:
    return float(table[column].max() / table[column].min())


def _percents(shares: pd.Series) -> str:
    low, high = 100 * shares.min(), 100 * shares.max()
    return f"{low:+.0f} %" if round(low) == round(high) else f"{low:+.0f} to {high:+.0f} %"
