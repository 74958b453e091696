"""The start page: what was asked, what was found, where to go; numbers from report.json alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from repro.show.overview import overview
from repro.show.page import MARKS, counted, found, markdown
from repro.site.material import Material

ASKED = (
    "How does the lowest contrastive loss that a BERT bi-encoder reaches (MAEL) depend on its size N and on "
    "the number of labelled query-passage pairs D? Which law fits, how sure are we, and what should you "
    "spend on?"
)
HEADLINES = ("M5", "M12", "M10", "S4")  # which law, where to spend, the steps, labels alone
FIGURES = ("mael_along_d", "verdicts")  # the first that the study drew

GO = """
- **[Read](notebooks/03_grid.ipynb)** the notebooks, one question each; [the laws](notebooks/04_laws.ipynb)
  and [every claim, with its reason](notebooks/10_report.ipynb) say most.
- **[Try it](explore.md)**: move the exponents of a law, spend a budget, see which model is best.
- **[Use it](docs/own-data.md)** on your own pairs, or fit [a table of losses](docs/laws.md) that you have.
- **[Run it](docs/profiles.md)** on GPUs, or on [a cluster](docs/cluster.md).
"""

WORDS = """
*holds*, *fails*, *inconclusive*: what the papers state, asked of this study's own runs by a rule that was
fixed before. *num*: their printed values, *not comparable* on other data and models. *calc*: arithmetic
on printed numbers (*match*, *close*, *differs*).
"""


def page(material: Material) -> str:
    """The start page as MyST Markdown."""
    report = material.report
    law, _, more = report.get("in_short", "").partition("\n\n")
    said = [f"**Asked.** {ASKED}", f"**Found** {_found(report)}", law]
    if report.get("meaningless"):
        said.insert(0, "**This study tests the plumbing: its numbers mean nothing.**")
    parts = [
        "# The scaling laws of dense retrieval, reproduced",
        _container("top", "\n\n".join(said), *_figure(material)),
        _headlines(report),
        more,
        "## Where to go",
        GO,
        "## Verdicts at a glance",
        WORDS,
        overview(report["claims"]),
        "## Every claim",
        "Why each verdict is what it is: [notebook 10](notebooks/10_report.ipynb).",
        _claims(report),
    ]
    return "\n\n".join(parts) + "\n"


def _container(name: str, *blocks: str) -> str:
    """Blocks in one element of a class, for the style sheet."""
    inner = [f"````{{container}} {name}-part\n{block}\n````" for block in blocks]
    return "\n\n".join([f"`````{{container}} {name}", *inner, "`````"])


def _found(report: Mapping[str, Any]) -> str:
    """What the study is, and how many verdicts of each sort."""
    grid = report["grid"]
    models, sizes = {row["model"] for row in grid}, {row["d"] for row in grid}
    return (
        f"in the study `{report['profile']}` on `{report['dataset']}`: {len(grid)} runs, {len(models)} "
        f"models x {len(sizes)} data sizes; {counted(report['claims'])}."
    )


def _headlines(report: Mapping[str, Any]) -> str:
    """A row a headline claim that was asked of the study: the claim, the verdict and its reason."""
    rows = {row["id"]: row for row in report["claims"] if row["kind"] == "qual"}
    body = [
        [f"{row['claim']} ({row['id']})", f"**{MARKS[row['verdict']]}**", _short(row["why"])]
        for row in (rows[name] for name in HEADLINES if name in rows)
    ]
    return markdown(["the papers say", "here", "because"], body)


def _short(why: str, most: int = 70) -> str:
    """The reason: its first part up to a bracket, and the next ones as long as they fit."""
    first, *others = why.split("; ")
    said = [first.partition(" (")[0]]
    for part in others:
        if sum(map(len, said)) + len(part) > most:
            break
        said.append(part)
    return "; ".join(said)


def _figure(material: Material) -> list[str]:
    drawn = next(filter(None, map(material.figure, FIGURES)), None)
    if drawn is None:
        return []
    path, kept = drawn
    return [f"```{{image}} figures/{path.name}\n:alt: {kept['alt']}\n```"]


def _claims(report: Mapping[str, Any]) -> str:
    body = []
    for row in report["claims"]:
        kind = "" if row["kind"] == "qual" else f" ({row['kind']})"
        verdict = f"**{MARKS[row['verdict']]}**{kind}"
        body.append([row["id"], row["claim"], row["paper"], found(row), verdict])
    return markdown(["id", "claim", "paper", "ours [95 %]", "verdict"], body)
