"""The README's figure and table of claims: made from what is published, between two marks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from repro.app.beside import outdated
from repro.errors import UserError
from repro.places import ROOT
from repro.show.agreement import decided
from repro.show.overview import overview

BEGIN, END = "<!-- claims: `repro publish --readme` writes this -->", "<!-- end of claims -->"
FIRST = ("mini-apidocs", "midi-apidocs")  # then others, by name
FIGURE = "mael_along_d"  # of the first of them


def renewed(text: str) -> str:
    """The README's text with figure and table as the published studies have them."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise UserError(
            f"README.md lacks the marks {BEGIN} and {END}",
            remedy="put them where the table is to be",
        )
    return f"{before}{BEGIN}\n{shown()}\n{END}{after}"


def shown() -> str:
    """A figure of the first study, the claims that runs decided, and every verdict at a glance."""
    found = {path.parent.name: path for path in sorted((ROOT / "results").glob("*/report.json"))}
    names = [name for name in FIRST if name in found] + [
        name for name in found if name not in FIRST
    ]
    reports = {name: json.loads(found[name].read_text(encoding="utf-8")) for name in names}
    claims = {name: _claims(report) for name, report in reports.items()}
    table = overview(claims)
    if not names:
        return table
    return (
        f"{_figure(names[0])}\n\nWhat these runs decide, of the papers' claims:\n\n{decided(claims)}\n\n"
        "Every verdict, by the claim's number (calc: arithmetic on the papers' own figures; num: "
        f"a figure of theirs):\n\n{table}"
    )


def _claims(report: dict[str, Any]) -> list[dict[str, Any]]:
    """The claims that rest on results as the code makes them now."""
    old = outdated(report.get("versions", {}))
    return [row for row in report["claims"] if row["id"] not in old]


def _figure(study: str) -> str:
    """The figure as Markdown, with its own alternative text."""
    drawn = ROOT / "figures" / study / f"{FIGURE}.json"
    about = json.loads(drawn.read_text(encoding="utf-8"))["alt"].replace("[", "(").replace("]", ")")
    return f"![{study}: {about}](figures/{study}/{FIGURE}.png)"


def renew(path: Path | None = None) -> bool:
    """Write figure and table into the README; returns whether that changed it."""
    path = path or ROOT / "README.md"
    old = path.read_text(encoding="utf-8")
    new = renewed(old)
    if new != old:
        path.write_text(new, encoding="utf-8")
    return new != old
