"""Notebook 04 in short: which law, how sure, and what would change it, in computed sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scipy.stats import t as student

from repro.show.page import chance, estimate, percent
from repro.show.reading import depths, leaders

# Why the lines bend, where no power law of D holds; by `experiments.bend`'s kind.
BENT = {
    "head start": "A start that is worth D0 = {D0} pairs, (D + D0)^-β, follows the bend best",
    "chance": "The ceiling of chance follows the bend best",
    "floor": "A floor follows the bend best",
    "open": "More than one law follows the bend about as well",
    "unexplained": "No law tried follows the bend much better than the plain one",
    "straight": "Yet no bend is seen over the whole range",
    "unknown": "This grid is too small to tell what bends them",
}


def law_answer(answers: Mapping[str, Any]) -> str:
    """The answer of notebook 04 in a few lines; answers: `experiments.law_choice.answers`."""
    if not answers["laws"]:
        return f"**Which law?** None can be fitted: {answers['regime']['reason']}."
    said = {
        "Which law?": _which(answers),
        "How sure?": _sure(answers),
        "Is N the variable?": _depth(answers["depth"]),
        "What would change it?": _change(answers),
    }
    return "\n\n".join(f"**{asked}** {told}" for asked, told in said.items() if told)


def _which(answers: Mapping[str, Any]) -> str:
    sizes, duel, found = answers["regime"]["sizes"], answers["M5"], answers["bend"]
    if not sizes:
        said = "None passes: "
        if slopes := [row["slope"] for row in found["measured"] if row["slope"] is not None]:
            said += f"the slope in D goes from {slopes[0]:.3f} to {slopes[-1]:.3f}, so "
        return (
            f"{said}no power law in D holds over enough of the grid, and neither a product nor a sum of "
            f"powers gets a verdict. {_bent(found)}."
        )
    over = f"from D = {sizes[0]:,} to {sizes[-1]:,}"
    if duel["holds"] is None:
        return f"Open: {over} neither the product law nor every additive law is rejected."
    if duel["holds"]:
        return f"The product law, MAEL = c N^-α D^-β, {over}: all additive laws are rejected."
    return f"Not the product law: {over} it is rejected against an additive law."


def _bent(found: Mapping[str, Any]) -> str:
    text, law = BENT[found["kind"]], _bending(found)
    if not law:
        return text
    if "D0" in law["params"]:
        ends = law["ci95"].get("D0")
        interval = f" [{max(ends[0], 0):,.0f}, {ends[1]:,.0f}]" if ends else ""
        text = text.format(D0=f"{law['params']['D0']:,.0f}{interval}")
    text += f" ({law['inside']} of {len(law['slopes'])} slopes inside their intervals)"
    p = law["beyond_noise"]
    return (
        text
        if p is None or p >= 0.05
        else f"{text}; it too leaves more than seeds make ({chance(p)})"
    )


def _bending(found: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The law that follows the bend best, where one does."""
    own = (law for law in found["laws"] if law["params"] and law["kind"] == found["kind"])
    return next(own, None)


def _sure(answers: Mapping[str, Any]) -> str:
    exponents, bent = answers["M6"]["parts"], not answers["regime"]["sizes"]
    alpha, beta = (estimate(exponents.get(name, {})) for name in ("alpha", "beta"))
    said = []
    if bent and (change := answers["bend"]["change"]):
        low, high = change["ci95"]
        said.append(
            f"Of the bend: the slope changes by {change['value']:+.3f} [{low:+.3f}, {high:+.3f}] (t over "
            f"{change['models']} models)"
        )
    best = leaders(answers["laws"])
    if len({title for _, title, _ in best}) == 1:
        said.append(f"The {best[0][1]} misses least what was held out, in every way")
    elif best:
        listed = "; ".join(f"{what}: {title}, {percent(error)} %" for what, title, error in best)
        start = "Of the best law not: it hangs on" if bent else "Which law misses least hangs on"
        said.append(f"{start} what is held out ({listed})")
    said.append(
        f"A plain product law over {answers['M6']['n']} cells has α = {alpha} in N and β = {beta} in D"
        + (", averages over what bends" if bent else "")
    )
    return ". ".join(said) + "."


def _depth(rows: list[dict[str, Any]]) -> str:
    known = [row for row in rows if row["slope"] is not None and row["ci95"]]
    if not known:
        return ""
    said = f"exponent of the loss's fall in N at one width {depths(known)}"
    if all(row["ci95"][0] > 0 for row in known):
        return f"More layers lower the loss too: {said}."
    if all(row["ci95"][0] <= 0 for row in known):
        return f"More layers at one width lower nothing, so α is mostly width: {said}."
    return f"More layers lower the loss at some widths: {said}."


def _change(answers: Mapping[str, Any]) -> str:
    said, models = [], len(answers["regime"]["ranges"])
    law = _bending(answers["bend"])
    if not answers["regime"]["sizes"] and law and (start := law["params"].get("D0")):
        most = answers["regime"]["all_sizes"][-1]
        said.append(f"D well above D0 (the grid ends at {most / start:.1f} D0), or a weaker start")
    if models < 3:
        said.append(f"More models: with {models} there is no error on the exponent of N")
    else:
        narrower = student.ppf(0.975, 2 * models - 2) / student.ppf(0.975, models - 2) / 2**0.5
        said.append(
            f"More models: {models} of them are {models} facts about N; twice as many over the same "
            f"range, as scattered, would make the interval of α {narrower:.2f} times as wide"
        )
    said.append("Sizes beyond the range, another draw of the pairs, another start")
    return ". ".join(said) + "."
