"""What a notebook shows beside figures: sentences filled from values, tables, verdicts, provenance."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from repro.show.claims import PARTS

MARKS = {
    "holds": "● holds", "match": "● match", "close": "◐ close", "fails": "○ fails",
    "differs": "○ differs", "inconclusive": "◌ inconclusive", "not comparable": "– not comparable",
    "not run": "– not run",
}  # fmt: skip
ORDER = tuple(MARKS)
_TAG = re.compile("<(?!br>)(?=[A-Za-z/!?])")


def say(text: str, **values: Any) -> None:
    """Display `text` as Markdown, its {fields} filled from `values` (format specs as in str.format)."""
    _display(safe(text.format(**values) if values else text))


def table(frame: pd.DataFrame, *, digits: int = 3) -> None:
    """Display a table: numbers with `digits` significant digits, thousands set apart, no index."""
    rows = [[cell(value, digits) for value in row] for row in frame.itertuples(index=False)]
    _display(markdown(list(map(str, frame.columns)), rows))


def verdicts(rows: Iterable[Mapping[str, Any]], *claims: str) -> None:
    """Display the verdicts on `claims` (all without), a row each: what the paper says, what we found."""
    chosen = [row for row in rows if not claims or row["id"] in claims]
    head = ["", "claim", "paper", "ours [95 %]", "verdict", "why"]
    body, above = [], None
    for row in chosen:
        again = row["id"] == above
        above = row["id"]
        said = ["", "as above", ""] if again else [row["id"], row["claim"], row["paper"]]
        kind = "" if row["kind"] == "qual" else f" ({row['kind']})"
        verdict = f"**{MARKS[row['verdict']]}**{kind}"
        body.append([*said, found(row), verdict, row["why"]])
    _display(markdown(head, body))


def tally(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """How many verdicts of each sort, by body of work."""
    frame = pd.DataFrame([{"source": row["source"], "verdict": row["verdict"]} for row in rows])
    counts = pd.crosstab(frame["source"], frame["verdict"])
    kept = [verdict for verdict in ORDER if verdict in counts.columns]
    return counts[kept].reindex(frame["source"].unique()).reset_index()


def not_run(rows: Iterable[Mapping[str, Any]]) -> None:
    """Display the claims that were not asked, and why."""
    body = [[row["id"], row["claim"], row["why"]] for row in rows if row["verdict"] == "not run"]
    _display(markdown(["", "claim", "why not"], body))


def limits(found: Iterable[Any]) -> None:
    """Display the limits of the papers and of the study, each open or tested."""
    _display(markdown(["limit", "status"], [[limit.text, limit.status] for limit in found]))


def counted(rows: Iterable[Mapping[str, Any]]) -> str:
    """How many verdicts of each sort, in words."""
    found = [row["verdict"] for row in rows]
    return ", ".join(f"{found.count(verdict)} {verdict}" for verdict in ORDER if verdict in found)


def decisions(rows: Iterable[Mapping[str, Any]], unsteady: Collection[str] = ()) -> str:
    """What the runs bear out and what they speak against, a line each.

    unsteady: claims whose verdict depends on the root seeds; these are marked.
    """
    decided = [
        row for row in rows if row["kind"] == "qual" and row["verdict"] in ("holds", "fails")
    ]
    said = [
        f"- **{MARKS[row['verdict']]}** {row['id']}{' ‡' if row['id'] in unsteady else ''}: {row['claim']} "
        f"*Asked: {row['asks']}.*"
        for row in sorted(decided, key=lambda row: ORDER.index(row["verdict"]))
    ]
    if not said:
        return "No claim that was asked of these runs is decided."
    marked = "\n\n‡ another verdict under another root seed, below." if unsteady else ""
    return "\n".join(said) + marked


def chance(p: float) -> str:
    """A p value in words: `p = 0.012`, `p < 0.001`."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def estimate(part: Mapping[str, Any]) -> str:
    """A value with its 95 % interval, bold: `**0.101** [0.078, 0.124]`."""
    if part.get("value") is None:
        return "not determined"
    ends = part.get("ci95")
    value, _, interval = _with(part["value"], ends).partition(" ")
    return f"**{value}** {interval}".strip()


def provenance(record: Mapping[str, Any]) -> None:
    """Display where the numbers come from: a row a fact, nested facts flattened, digests shortened."""
    rows = []
    for key, value in _flat(record):
        short = f"`{value[:12]}`" if isinstance(value, str) and _is_digest(value) else str(value)
        rows.append([key, short])
    _display(markdown(["provenance", ""], rows))


def found(row: Mapping[str, Any]) -> str:
    """Our value and its interval in words: `0.101 [0.078, 0.124]`, one line a named part."""
    ours, ends, unit = row["ours"], row["ci95"], row.get("unit", "")
    if ours is None:
        return "–"
    if isinstance(ours, Mapping):
        lines = [
            f"{PARTS.get(name, name)} {_with(value, (ends or {}).get(name), unit)}"
            for name, value in ours.items()
        ]
        return "<br>".join(lines)
    return f"{row.get('value', '')} {_with(ours, ends, unit)}".strip()


def cell(value: Any, digits: int = 3) -> str:
    """One value as text for a table; `–` where there is none."""
    if value is None or (isinstance(value, float) and value != value):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return f"[{', '.join(cell(item, digits) for item in value)}]"
    if isinstance(value, int) or (
        isinstance(value, float) and value.is_integer() and abs(value) >= 1000
    ):
        return f"{int(value):,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.{digits}g}"
    return str(value)


def safe(text: str) -> str:
    """`text` in which nothing is a tag but our own line breaks; names and texts come from outside."""
    return _TAG.sub("&lt;", text)


def percent(share: float) -> str:
    """A share as a percentage without its sign; errors beyond tenfold are only "over 999"."""
    return "over 999" if share > 9.99 else cell(100 * share)


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; bars, and tags are escaped inside cells."""
    lines = [_line(head), _line(["---"] * len(head))]
    return "\n".join(lines + [_line([str(value) for value in row]) for row in rows])


def _with(value: float, ends: Sequence[float] | None, unit: str = "") -> str:
    show = percent if unit == "%" else _number
    interval = f" [{show(ends[0])}, {show(ends[1])}]" if ends else ""
    return show(value) + (" %" if unit == "%" else "") + interval


def _number(value: float) -> str:
    return f"{value:.3g}" if abs(value) >= 1e7 else cell(value)


def _line(cells: Sequence[str]) -> str:
    escaped = (safe(text).replace("|", "\\|").replace("\n", " ") for text in cells)
    return f"| {' | '.join(escaped)} |"


def _flat(record: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    for key, value in record.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}: ")
        else:
            yield f"{prefix}{key}", value


def _is_digest(value: str) -> bool:
    return len(value) in (40, 64) and all(letter in "0123456789abcdef" for letter in value)


def _display(text: str) -> None:
    from IPython.display import Markdown, display

    display(Markdown(text))
