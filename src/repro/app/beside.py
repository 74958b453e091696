"""What the report page shows beside a study's own report; read without importing torch.

That is the published reports of other studies on the same dataset, and the study's own verdicts under
other root seeds (`repro stability`).  report.json does not depend on either.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field, FiniteFloat, ValidationError

from repro.files import digest
from repro.places import ROOT, home
from repro.store import VERSIONS

# Kind of result -> the claims that it bears on; kinds that are not here bear on all.
BEARS_ON = {"labels": {"S7", "S8", "S9"}}


class Row(BaseModel):
    """What is read of a row of `show.claims.verdicts`."""

    id: str
    kind: str
    claim: str
    paper: str
    value: str = ""
    ours: FiniteFloat | dict[str, FiniteFloat] | None
    ci95: list[FiniteFloat] | dict[str, list[FiniteFloat]] | None
    unit: str = ""
    verdict: Literal[
        "holds", "fails", "inconclusive", "match", "close", "differs", "not comparable", "not run"
    ]


class Published(BaseModel):
    """What is read of a published report.json."""

    dataset: str
    digests: dict[str, str]
    versions: dict[str, int] = {}  # of results; reports did not always carry them
    claims: list[Row]


class Variant(BaseModel):
    """A study under some root seeds."""

    name: str
    run_seed: int
    data_seed: int
    missing: int
    claims: list[Row]


class Stability(BaseModel):
    """What is read of stability.json; the first variant is the study as it is."""

    digests: dict[str, str]
    versions: dict[str, int]
    variants: list[Variant] = Field(min_length=2)


def others(name: str, report: Mapping[str, Any]) -> dict[str, Any]:
    """The published reports of other studies than `name` on the dataset of its `report`.

    Returns {studies: [{name, claims, marks}], faults}.  marks: why its numbers are not of the same data
    and result versions, in words; none where they are, or where only some claims are affected: these are
    left out.  faults: a sentence a file that is no report, and a study whose claims are left out.
    """
    studies, faults = [], []
    for path in sorted((ROOT / "results").glob("*/report.json")):
        if path.parent.name == name:
            continue
        try:
            found = Published.model_validate(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError) as error:
            where = path.relative_to(ROOT).as_posix()
            faults.append(f"{where} is left out: it is no report of a study ({_first(error)}).")
            continue
        if found.dataset == report["dataset"]:
            other = path.parent.name
            marks, old = _marks(report["digests"], found), outdated(found.versions)
            if report.get("meaningless"):
                marks.insert(0, "the study of this page tests the plumbing alone")
            faults += [left_out(other, old)] if old else []
            rows = [row.model_dump() for row in found.claims if row.id not in old]
            studies.append({"name": other, "claims": rows, "marks": marks})
    return {"studies": studies, "faults": faults}


def stability(name: str, report: Mapping[str, Any]) -> dict[str, Any]:
    """The verdicts of the study `name` under other root seeds: of its build, else as published.

    Returns {variants, fault}.  fault: why there are none to show, a sentence; "" where there are.
    """
    places = [home() / "build" / name, ROOT / "results" / name]
    found = [folder / "stability.json" for folder in places]
    path = next((path for path in found if path.is_file()), None)
    if path is None:
        return {"variants": [], "fault": "Not run under other root seeds (`make stability`)."}
    where = f"{path.parents[1].name}/{name}/stability.json"
    try:
        read = Stability.model_validate(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        said = f"{where} is not shown: it is no record of `make stability` ({_first(error)})."
        return {"variants": [], "fault": said}
    base = {(row.id, row.kind): row.verdict for row in read.variants[0].claims}
    own = {(row["id"], row["kind"]): row["verdict"] for row in report["claims"]}
    if (
        read.digests != report["digests"]
        or read.versions != VERSIONS
        or not base.items() <= own.items()
    ):
        said = f"{where} is not shown: it was made of another profile, other data or other code"
        return {"variants": [], "fault": f"{said} (`make stability` makes it again)."}
    return {"variants": [each.model_dump() for each in read.variants], "fault": ""}


def seen(build: Path) -> str:
    """Digest of all that the report page of a build draws on beside the build itself."""
    report = json.loads((build / "report.json").read_text(encoding="utf-8"))
    return digest([others(build.name, report), stability(build.name, report)])


def _marks(digests: Mapping[str, str], other: Published) -> list[str]:
    """How data and result versions of a published report differ from ours, in words."""
    marks = []
    names = (digests.keys() | other.digests.keys()) - {"profile"}
    if data := sorted(name for name in names if digests.get(name) != other.digests.get(name)):
        marks.append(f"other data ({', '.join(data)})")
    if not other.versions:
        marks.append("published before reports named their result versions")
    elif kinds := sorted(_changed(other.versions) - BEARS_ON.keys()):
        marks.append(f"other result versions ({', '.join(kinds)})")
    return marks


def outdated(versions: Mapping[str, int]) -> set[str]:
    """The claims of a report that rest on results of another version, where that is not all of them."""
    kinds = _changed(versions) if versions else set()
    return set().union(*(BEARS_ON[kind] for kind in kinds & BEARS_ON.keys()))


def left_out(name: str, claims: set[str]) -> str:
    """That these claims of a study are not shown, and why."""
    return f"{', '.join(sorted(claims))} of {name} are of other result versions: left out."


def _changed(versions: Mapping[str, int]) -> set[str]:
    """The kinds of result that had another version when a report was published."""
    return {kind for kind, _ in versions.items() ^ VERSIONS.items()}


def _first(error: Exception) -> str:
    """The first thing that is wrong, in a few words."""
    if isinstance(error, ValidationError):
        item = error.errors()[0]
        place = ".".join(str(part) for part in item["loc"])
        return f"{place}: {item['msg']}" if place else item["msg"]
    return (isinstance(error, OSError) and error.strerror) or str(error)
