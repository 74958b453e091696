"""Notebook 04 in short: which law, how sure, and what would change it, in computed sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scipy.stats import t as student

from repro.show.page import estimate, percent

# Why the lines bend, where no power law of D holds; by `experiments.bend`'s kind.
BENT = {
    "head start": "a start that is worth D0 = {D0} pairs describes the bend",
    "chance": "the ceiling of chance describes the bend",
    "floor": "a floor describes the bend",
    "open": "more than one law describes the bend about as well",
    "unexplained": "no law tried describes the bend much better than the plain one",
    "straight": "yet no bend is seen over the whole range",
    "unknown": "this grid is too small to tell what bends them",
}


def law_answer(answers: Mapping[str, Any]) -> str:
    """The answer of notebook 04 in three lines; answers: `experiments.law_choice.answers`."""
    if not answers["laws"]:
        return f"**Which law?** None can be fitted: {answers['regime']['reason']}."
    said = [f"**Which law?** {_which(answers)}", f"**How sure?** {_sure(answers)}"]
    return "\n\n".join([*said, f"**What would change it?** {_change(answers)}"])


def _which(answers: Mapping[str, Any]) -> str:
    sizes, duel = answers["regime"]["sizes"], answers["M5"]
    if not sizes:
        return (
            "No power law in D holds over enough of the grid, so neither a product nor a sum of powers "
            f"gets a verdict; {_bent(answers['bend'])}."
        )
    over = f"from D = {sizes[0]:,} to {sizes[-1]:,}"
    if duel["holds"] is None:
        return f"Open: {over} neither the product law nor every additive law is rejected."
    if duel["holds"]:
        return f"The product law, MAEL = c N^-α D^-β, {over}: all additive laws are rejected."
    return f"Not the product law: {over} it is rejected against an additive law."


def _bent(found: Mapping[str, Any]) -> str:
    text = BENT[found["kind"]]
    if "{D0}" not in text:
        return text
    law = next(row for row in found["laws"] if "D0" in (row["params"] or {}))
    ends = law["ci95"].get("D0")
    interval = f" [{max(ends[0], 0):,.0f}, {ends[1]:,.0f}]" if ends else ""
    return text.format(D0=f"{law['params']['D0']:,.0f}{interval}")


def _sure(answers: Mapping[str, Any]) -> str:
    exponents, laws = answers["M6"]["parts"], answers["laws"]
    alpha, beta = (estimate(exponents.get(name, {})) for name in ("alpha", "beta"))
    said = f"A plain product law over {answers['M6']['n']} cells has α = {alpha} in N and β = {beta} in D"
    known = {
        law["title"]: law["loo_model_mre"] for law in laws.values() if law.get("loo_model_mre")
    }
    if len(known) > 1 and "product" in laws:
        best = min(known, key=lambda title: known[title])
        own = laws["product"]["loo_model_mre"]
        said += f"; it misses a model that it has not seen by {percent(own)} %"
        if best != laws["product"]["title"]:
            said += f", the {best}, the best of {len(known)}, by {percent(known[best])} %"
    return said + "."


def _change(answers: Mapping[str, Any]) -> str:
    models = len(answers["regime"]["ranges"])
    said = "Sizes beyond the range, another draw of the pairs, another start."
    if models < 3:
        return f"More models: with {models} there is no error on the exponent of N. {said}"
    narrower = student.ppf(0.975, 2 * models - 2) / student.ppf(0.975, models - 2) / 2**0.5
    return (
        f"More models: {models} of them are {models} facts about N; twice as many over the same range, as "
        f"scattered, would make the interval of α {narrower:.2f} times as wide. {said}"
    )
