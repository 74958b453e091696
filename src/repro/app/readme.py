"""The README's table of claims: made from what is published, between two marks."""

from __future__ import annotations

import json
from pathlib import Path

from repro.errors import UserError
from repro.places import ROOT
from repro.show.overview import overview

BEGIN, END = "<!-- claims: `repro publish --readme` writes this -->", "<!-- end of claims -->"
FIRST = ("mini-apidocs", "midi-apidocs")  # then others, by name


def renewed(text: str) -> str:
    """The README's text with the table as the published reports have it."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise UserError(
            f"README.md lacks the marks {BEGIN} and {END}",
            remedy="put them where the table is to be",
        )
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


def table() -> str:
    """The verdicts of every published study, a row a body of work and study."""
    found = {path.parent.name: path for path in sorted((ROOT / "results").glob("*/report.json"))}
    names = [name for name in FIRST if name in found] + [
        name for name in found if name not in FIRST
    ]
    reports = {name: json.loads(found[name].read_text(encoding="utf-8")) for name in names}
    return overview({name: report["claims"] for name, report in reports.items()})


def renew(path: Path | None = None) -> bool:
    """Write the table into the README; returns whether that changed it."""
    path = path or ROOT / "README.md"
    old = path.read_text(encoding="utf-8")
    new = renewed(old)
    if new != old:
        path.write_text(new, encoding="utf-8")
    return new != old
