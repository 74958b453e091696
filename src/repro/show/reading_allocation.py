"""Sentences and tables of notebook 06, filled from the answers of `experiments.allocation`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from repro.show.page import cell, estimate
from repro.show.style import count

KINDS = {
    "censored": "still falling at the end (S is a lower bound)",
    "at_first": "lowest at their first reading (S is an upper bound)",
    "diverged": "diverged (left out)",
}


def bounds(found: Mapping[str, Sequence[str]]) -> str:
    """The runs whose S is no measurement, by name."""
    said = [
        f"{len(names)} {KINDS[kind]}: {', '.join(names[:6])}{', ...' if len(names) > 6 else ''}"
        for kind, names in found.items()
        if names
    ]
    return f"Runs that give no S as it is: {'; '.join(said)}." if said else "Every run gives its S."


def rates(found: Mapping[str, Any]) -> str:
    """How the learning rates of the models go with their size."""
    listed = ", ".join(f"{model} {rate:.3g}" for model, rate in found["rates"].items())
    if found["rho"] is None:
        return f"One model, at {listed}: nothing to compare rates with."
    return (
        f"Rates here: {listed}; as a power of size, lr ~ N^{-found['rho']:.2f} (the paper halves it at "
        "each model, N^-0.52). The steeper this is, the further raw steps and lr-steps are apart."
    )


def readings(rows: Sequence[Mapping[str, Any]], most: float) -> pd.DataFrame:
    """The steps law, efficiencies and ratio under each reading, with 95 % intervals."""
    return pd.DataFrame(
        {
            "reading": row["title"],
            "what is counted": row["how"],
            "models": row["models"],
            "a (in N)": _ends(row["a"]),
            "b (in D)": _ends(row["b"]),
            "model": _ends(row["model"]),
            "data": _ends(row["data"]),
            "ratio": _ends(row["ratio"], most),
        }
        for row in rows
    )


def headline(rows: Sequence[Mapping[str, Any]], regime: Mapping[str, Any]) -> str:
    """Which way the ratio of the efficiencies points under each reading."""
    sides: dict[str, list[str]] = {"larger model": [], "more labels": [], "open": []}
    for row in rows:
        ends = row["ratio"]["ci95"]
        side = (
            "open"
            if not ends
            else "larger model"
            if ends[0] > 1
            else "more labels"
            if ends[1] < 1
            else "open"
        )
        sides[side].append(row["title"])
    said = [
        f"{text}: {', '.join(sides[key])}"
        for key, text in (
            ("larger model", "a unit of compute goes further as a **larger model**"),
            ("more labels", "it goes further as **more labels**"),
            ("open", "the interval covers 1, or there is none"),
        )
        if sides[key]
    ]
    note = (
        ""
        if regime["sizes"]
        else " The loss is no power of D here, so the ratio is an average over the grid's sizes and "
        "decides no claim."
    )
    return f"By reading - {'; '.join(said)}.{note}"


def papers(rows: Sequence[Mapping[str, Any]], most: float) -> pd.DataFrame:
    """What the paper's printed steps law implies under each reading, for both things it may mean."""
    return pd.DataFrame(
        {
            "if the printed steps are": {"raw": "raw", "lr_steps": "lr-steps"}[row["printed"]],
            "reading": {"raw": "raw steps", "lr_steps": "lr-steps", "common": "a common rate"}[
                row["reading"]
            ],
            "a": f"{row['a']:.3f}",
            "model": cell(row["model"]) if row["model"] else "no end: costs no compute",
            "data": cell(row["data"]),
            "ratio": "no end" if row["ratio"] >= most else f"{row['ratio']:.2f}",
        }
        for row in rows
    )


def flops(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """FLOP both ways for each count of N."""
    return pd.DataFrame(
        {
            "N counts": row["meaning"],
            "spent over 6 N x tokens": f"{row['low']:.2f} to {row['high']:.2f}"
            if "low" in row
            else None,
            "N's exponent in FLOP spent": _ends(row["exponent"]),
            "in 6 N x tokens": _ends(row["counted_exponent"]),
        }
        for row in rows
    )


def pairs(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Each model against the next larger one at equal compute, on measured cells."""
    if not rows:
        return pd.DataFrame({"": ["no two models were measured at equal compute"]})
    return pd.DataFrame(
        {
            "from": row["small"],
            "to": row["large"],
            "cells": row["cells"],
            "change of log MAEL": _ends(row["difference"]),
            "p of a rise by luck": None if row["p_rises"] is None else f"{row['p_rises']:.3f}",
        }
        for row in rows
    )


def control(found: Mapping[str, Any] | None, answer: Mapping[str, Any]) -> str:
    """The control at matched compute, in words, with its limit."""
    if found is None or "difference" not in found:
        return f"**No control**: {answer['why']}."
    difference = found["difference"]
    said = f"Larger model less the additive law's optimum, in nats: {estimate(difference)}. "
    said += f"{answer['why'][:1].upper()}{answer['why'][1:]}."
    if not found["trained"]:
        said += (
            " This profile trains no runs for the question: these are **cells of the grid**, only near "
            "the additive law's optimum, and one pair of models. `allocation:` in a profile trains both "
            "cells with several seeds, after the grid."
        )
    return said


def dollars(found: Mapping[str, Any] | None) -> pd.DataFrame:
    """The best purchase for some corpora and budgets: rows corpora, columns budgets."""
    if not found:
        return pd.DataFrame({"": ["there are not enough runs for a plan in dollars"]})
    rows: dict[float, dict[str, Any]] = {}
    for plan in found["table"]:
        row = rows.setdefault(plan["passages"], {"passages encoded": _passages(plan["passages"])})
        said = "nothing can be paid for"
        if plan["model"] is not None:
            cap = ", all labels" if plan["capped"] else ""
            said = f"{plan['model']}, {plan['d']:,.0f} pairs{cap}: {plan['loss']:.2f} nats "
            share = (
                f"{100 * plan['share']:.0f} % of draws" if plan["choices"] > 1 else "only choice"
            )
            measured = found["measured"].get(plan["model"]) if plan["capped"] else None
            said += f"({share}{'' if measured is None else f'; measured {measured:.2f}'})"
        row[f"{plan['budget']:,.0f} USD"] = said
    return pd.DataFrame(list(rows.values()))


def corner(found: Mapping[str, Any] | None) -> str:
    """Where a small model is the best purchase, from the map."""
    if not found:
        return "There are not enough runs for a plan in dollars."
    models, best = found["models"], found["map"]
    paid = [cell_ for row in best for cell_ in row if cell_ is not None]
    small, large = models[0], models[-1]
    shares = {k: sum(cell_ == k for cell_ in paid) / len(paid) for k in (0, len(models) - 1)}
    said = (
        f"Of {len(paid)} plans on the map that can be paid for, the largest model ({large}) is the best "
        f"purchase in {100 * shares[len(models) - 1]:.0f} %, the smallest ({small}) in "
        f"{100 * shares[0]:.0f} %. "
    )
    places = [
        (passages, budget)
        for budget, row in zip(found["budgets"], best, strict=True)
        for passages, cell_ in zip(found["passages"], row, strict=True)
        if cell_ == 0
    ]
    if places:
        first = min(places)
        most = max(budget for _, budget in places)
        said += (
            f"**The small model's corner** begins where serving eats the budget: at {count(first[0])} "
            f"passages with {first[1]:,.0f} USD, and reaches {most:,.0f} USD at the right edge."
        )
    else:
        said += "The smallest model is nowhere the best purchase on this map."
    known = {model: loss for model, loss in found["measured"].items() if loss is not None}
    if known:
        best = min(known, key=lambda model: known[model])
        said += (
            f" On all {found['max_pairs']:,.0f} pairs the runs themselves are lowest with {best} "
            f"({known[best]:.2f} nats; {large} {cell(known.get(large))})."
        )
    return (
        f"{said} Losses by the {found['law']}, inside the grid's sizes only; every pair costs the same, and "
        f"no more than {found['max_pairs']:,.0f} can be bought. *% of draws*: in so many draws of the law's "
        "parameters that model is the best; what the law itself misses is not in it."
    )


def _ends(found: Mapping[str, Any], most: float = float("inf")) -> str:
    value, ends = found["value"], found["ci95"]
    if value is None:
        return "–"
    show = [("no end" if v >= most else "below" if v <= -most else f"{v:.3g}") for v in
            (value, *(ends or ()))]  # fmt: skip
    return show[0] + (f" [{show[1]}, {show[2]}]" if ends else "")


def _passages(number: float) -> str:
    return "none" if number == 0 else f"{number:,.0f}"
