"""Is the report of a rehearsed profile whole, and is every executed notebook clean?"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from repro.experiments.profile import MEANINGLESS, Profile
from repro.experiments.public_tables import UNSET
from repro.places import ROOT
from repro.show.claims import load

# Notebook -> the section of a profile without which its claims are not run.
SECTIONS = {
    "02": "lr_study", "03": "variance", "05": "labels", "06": "allocation", "07": "weight_decay",
    "08": "transfer",
}  # fmt: skip
VERDICTS = {
    "match", "close", "differs", "holds", "fails", "inconclusive", "not comparable", "not run",
}  # fmt: skip
# In what a reader sees: warnings, tracebacks, places of this machine, and numbers that are none.
UNWANTED = {
    "a warning": re.compile(r"\w*Warning\b"),
    "a traceback": re.compile(r"Traceback \(most recent call last\)"),
    "an absolute path": re.compile(
        r"(?:(?<![\w.~/-])|file://)/(?:home|root|tmp|work|usr|var|opt|Users)/\w"
    ),
    "a number that is none": re.compile(r"(?<![\w.])(?:nan|NaN|-?inf)(?![\w.])"),
}


def notebooks(build: Path) -> dict[str, list[str]]:
    """Notebook -> its faults; none for a notebook that is there, ran, and is clean."""
    found = {}
    for source in sorted((ROOT / "notebooks").glob("[0-9]*.ipynb")):
        executed = build / "notebooks" / source.name
        found[source.stem] = _faults(executed) if executed.is_file() else ["it was not executed"]
    return found


def claims(report: dict[str, Any], profile: Profile) -> list[str]:
    """What is wrong with the report of a profile: a claim without a verdict, a run that is missing."""
    rows = report["claims"]
    asked = [(claim.id, claim) for claim in load().claims]
    faults = [f"{report['missing']} runs are missing"] if report["missing"] else []
    faults += [] if report["meaningless"] else ["it does not say that its numbers mean nothing"]
    faults += [f"{name} has no row" for name, _ in asked if name not in {r["id"] for r in rows}]
    # Asked of no profile yet, or of some alone, for which `comparable` names them.
    elsewhere = {
        name
        for name, claim in asked
        if claim.not_run and claim.notebook not in SECTIONS and name not in profile.comparable
    }
    for row in rows:
        which = f"{row['id']} ({row['kind']}) is `{row['verdict']}`"
        section = SECTIONS.get(str(row["notebook"])[:2])
        if row["verdict"] not in VERDICTS or not row["why"]:
            faults.append(f"{which}: {row['why']!r}")
        elif row["kind"] == "num" and row["verdict"] not in ("not comparable", "not run"):
            faults.append(f"{which}, but the numbers of a rehearsal compare with none")
        elif row["why"] == UNSET:
            continue  # no rehearsal makes the public tables, which are never shipped
        elif row["verdict"] == "not run" and row["id"] not in elsewhere:
            absent = section and getattr(profile, section) is None
            faults += [] if absent else [f"{which}: {row['why']}"]
    return faults


def _faults(path: Path) -> list[str]:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    outputs = [
        (number, output)
        for number, cell in enumerate(notebook["cells"])
        if cell["cell_type"] == "code"
        for output in cell["outputs"]
    ]
    faults = []
    for number, output in outputs:
        if output["output_type"] == "error":
            faults.append(f"cell {number}: {output['ename']}: {output['evalue']}")
        if output.get("name") == "stderr":
            faults.append(f"cell {number} writes to stderr: {_text(output)[:200]!r}")
        for what, pattern in UNWANTED.items():
            if match := pattern.search(text := _text(output)):
                around = text[max(match.start() - 60, 0) : match.end() + 60]
                faults.append(f"cell {number} shows {what}: {around!r}")
    seen = " ".join(_text(output) for _, output in outputs)
    return faults if MEANINGLESS in seen else [*faults, "it does not say that it means nothing"]


def _text(output: dict[str, Any]) -> str:
    """What a reader sees of an output, pictures apart."""
    data = output.get("data", {})
    parts = [output.get("text", ""), *(v for k, v in data.items() if k.startswith("text/"))]
    return " ".join("".join(part) for part in parts)
