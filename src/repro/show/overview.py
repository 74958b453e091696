"""Verdicts at a glance: a row a body of work, the claims by what came out; from a report alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from repro.show.figures.report import BANDS
from repro.show.page import markdown

# Column -> the verdicts that it gathers.
COLUMNS = {
    "holds, or matches": ("holds", "match"),
    "close": ("close",),
    "fails, or differs": ("fails", "differs"),
    "inconclusive": ("inconclusive",),
    "not comparable": ("not comparable",),
    "not run": ("not run",),
}


def overview(rows: Sequence[Mapping[str, Any]]) -> str:
    """The table as Markdown; rows: of `claims.verdicts`.

    A claim stands in a column for each kind of verdict on it; kinds other than qual are named (what is
    not comparable is num).
    """
    body = []
    for letter, work in BANDS.items():
        own = [row for row in rows if row["id"].startswith(letter)]
        body.append([work, *(_labels(own, verdicts) for verdicts in COLUMNS.values())])
    return markdown(["body of work", *COLUMNS], body)


def _labels(rows: Sequence[Mapping[str, Any]], verdicts: Sequence[str]) -> str:
    silent = ("qual", "num") if verdicts == COLUMNS["not comparable"] else ("qual",)
    named = [
        row["id"] if row["kind"] in silent else f"{row['id']} ({row['kind']})"
        for row in rows
        if row["verdict"] in verdicts
    ]
    return " · ".join(named) or "–"
