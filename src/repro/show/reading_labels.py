"""Sentences and tables of notebook 05, from the answers of `experiments.label_answers`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

NOT_RUN = "This profile has no section `labels`, so no kind of label but the dataset's own was run."
KINDS = {
    "ict": "a sentence of the passage asks for the rest of it",
    "extracted": "words of the passage that a model fitted to the generator split expects in a query "
    "(a stand-in for a trained generator)",
    "doc2query": "a sequence-to-sequence model writes the query",
    "llm": "a language model is asked for the query",
    "wrong": "the own labels, a share of them with a passage that is no answer",
}
WORDS = 14  # shown of a passage

Rows = Sequence[Mapping[str, Any]]


def made(rows: Rows) -> pd.DataFrame:
    """What was made: a row a set of labels."""
    return pd.DataFrame(
        {
            "labels": row["name"],
            "how": KINDS[row["kind"]],
            "made": row["labels"],
            "from passages": row["passages"],
            "unusable": ", ".join(f"{n:,} {why}" for why, n in row["unusable"].items()) or "none",
        }
        for row in rows
    )


def shown(rows: Rows) -> pd.DataFrame:
    """The first labels of each set, as they are trained on."""
    return pd.DataFrame(
        {"labels": row["name"], "query": _short(query), "passage": _short(passage)}
        for row in rows
        for query, passage in row["shown"]
    )


def states(found: Mapping[str, int]) -> str:
    """How the runs ended, own labels included."""
    listed = ", ".join(f"{n} {state}" for state, n in found.items())
    return f"{sum(found.values())} runs: {listed}. Censored and diverged ones are in no line below."


def laws(rows: Rows) -> pd.DataFrame:
    """The power law of each kind: exponent, level, local slopes."""
    return pd.DataFrame(
        {
            "labels": row["kind"],
            "exponent": row["exponent"],
            "95 %": row["exponent_ci95"],
            "MAEL at the middle size": row["level"],
            "95 % (level)": row["level_ci95"],
            "local slopes": ", ".join(f"{slope:.3f}" for slope in row["local"]),
        }
        for row in rows
    )


def compared(rows: Rows) -> str:
    """Slope and level of each kind against the dataset's own, and which differences are no scatter."""
    if not rows:
        return "There is no other kind to compare."
    said = []
    for row in rows:
        slope = _sure(row["slope_ci95"], "steeper", "flatter")
        level = _sure(row["level_ci95"], "worse", "better")
        said.append(
            f"**{row['kind']}**: level {100 * row['level']:+.1f} % ({level}), exponent "
            f"{row['slope']:+.3f} ({slope})"
        )
    return f"Against the dataset's own labels: {'; '.join(said)}."


def exchange(rows: Rows) -> pd.DataFrame:
    """Labels of a kind that do as well as D of the dataset's own: a row a D, a column a kind."""
    found: dict[int, dict[str, Any]] = {}
    for row in rows:
        line = found.setdefault(row["d"], {"own labels": row["d"]})
        if row["bound"]:
            line[row["kind"]] = f"{'>' if row['bound'] == 'over' else '<'} {row['needed']:,.0f}"
            continue
        ends = row["ci95"]
        interval = f" [{ends[0]:,.0f}, {ends[1]:,.0f}]" if ends else ""
        line[row["kind"]] = f"{row['needed']:,.0f}{interval}"
    return pd.DataFrame(list(found.values()))


def floor(rows: Rows) -> str:
    """How the planted false negatives move the floor."""
    if len(rows) < 2:
        return (
            "The joint law with a floor cannot be fitted to this grid, so its floor tells nothing."
        )
    said = ", ".join(
        f"{100 * row['share']:.0f} % planted: {row['rise']:+.2f} nats" for row in rows[1:]
    )
    return (
        f"The joint law's floor is {rows[0]['floor']:.2f} nats on the judgements as they are. {said} "
        f"(of at least {rows[-1]['least']:.2f} nats that the last adds to every loss)."
    )


def _sure(ends: Sequence[float] | None, above: str, below: str) -> str:
    if not ends:
        return "no interval"
    return above if ends[0] > 0 else below if ends[1] < 0 else "within the scatter"


def _short(text: str) -> str:
    words = text.split()
    return " ".join(words[:WORDS]) + (" …" if len(words) > WORDS else "")
