"""The README's answer, figure and table of claims: made from what is published, between two marks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from repro.app.beside import outdated, stability
from repro.errors import UserError
from repro.places import ROOT
from repro.show.agreement import decided, unsteady
from repro.show.page import counted

BEGIN, END = "<!-- claims: `repro publish --readme` writes this -->", "<!-- end of claims -->"
FIRST = ("mini-apidocs", "midi-apidocs")  # then others, by name
FIGURES = ("mael_along_d", "bend")  # of the first of them: what was measured, and how it bends


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
    """What was run; of the first study the answer in short and a figure; what the runs decided."""
    found = {path.parent.name: path for path in sorted((ROOT / "results").glob("*/report.json"))}
    names = [name for name in FIRST if name in found] + [
        name for name in found if name not in FIRST
    ]
    reports = {name: json.loads(found[name].read_text(encoding="utf-8")) for name in names}
    if not names:
        return "No study is published."
    claims = {name: _claims(report) for name, report in reports.items()}
    seeds = {name: stability(name, report)["variants"] for name, report in reports.items()}
    marks = {name: unsteady(variants) for name, variants in seeds.items() if variants}
    return "\n\n".join([
        *(_study(name, report) for name, report in reports.items()),
        reports[names[0]].get("in_short", ""),
        *(_figure(names[0], each) for each in FIGURES),
        "What these runs decide, of the papers' claims:",
        decided(claims, marks),
        *(f"All of {name}: {counted(rows)}." for name, rows in claims.items()),
    ])  # fmt: skip


def _study(name: str, report: dict[str, Any]) -> str:
    """What was run, in a sentence."""
    grid = report["grid"]
    counts, sizes = ({row[key] for row in grid} for key in ("n_encoder", "d"))
    return (
        f"`{name}`: {len({row['model'] for row in grid})} encoders of {min(counts):,} to "
        f"{max(counts):,} parameters (embeddings not counted) on {len(sizes)} sizes, {min(sizes):,} to "
        f"{max(sizes):,} pairs of `{report['dataset']}`; {len(grid)} runs."
    )


def _claims(report: dict[str, Any]) -> list[dict[str, Any]]:
    """The claims that rest on results as the code makes them now."""
    old = outdated(report.get("versions", {}))
    return [row for row in report["claims"] if row["id"] not in old]


def _figure(study: str, name: str) -> str:
    """A figure as Markdown, with its own alternative text."""
    drawn = ROOT / "figures" / study / f"{name}.json"
    about = json.loads(drawn.read_text(encoding="utf-8"))["alt"].replace("[", "(").replace("]", ")")
    return f"![{study}: {about}](figures/{study}/{name}.png)"


def renew(path: Path | None = None) -> bool:
    """Write figure and table into the README; returns whether that changed it."""
    path = path or ROOT / "README.md"
    old = path.read_text(encoding="utf-8")
    new = renewed(old)
    if new != old:
        path.write_text(new, encoding="utf-8")
    return new != old
