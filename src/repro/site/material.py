"""What a site is made of: a finished build of a study, else what is published of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from repro.errors import UserError
from repro.places import ROOT, home


@dataclass(frozen=True)
class Material:
    """The notebooks, figures and report.json of a study, and where they come from, in words."""

    name: str
    origin: str
    notebooks: Path
    figures: Path
    report: Mapping[str, Any]

    def figure(self, name: str) -> tuple[Path, dict[str, Any]] | None:
        """The picture of a figure and what is kept beside it ({alt, data}); None where it was not drawn."""
        path = self.figures / f"{name}.svg"
        if not path.is_file():
            return None
        return path, json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))


def find(name: str, *, published: bool = False) -> Material:
    """The material of the study `name`: its finished build, else (or if asked) the published files."""
    build = home() / "build" / name
    places = [] if published else [_of_build(build)]
    places.append(
        Material(
            name=name,
            origin="what is published",
            notebooks=ROOT / "notebooks" / "rendered" / name,
            figures=ROOT / "figures" / name,
            report=_report(ROOT / "results" / name / "report.json"),
        )
    )
    for each in places:
        if each.report and any(each.notebooks.glob("*.ipynb")):
            return each
    raise UserError(
        f"there is neither a finished build of {name} nor anything published",
        where=str(build),
        remedy=f"make reproduce PROFILE={name.partition('-')[0]}",
    )


def _of_build(build: Path) -> Material:
    """The build of a study; without a report where it is not finished."""
    report = _report(build / "report.json")
    done = not report.get("missing", True) and (build / "notebooks" / "10_report.ipynb").is_file()
    return Material(
        name=build.name,
        origin=f"the finished build in build/{build.name}",
        notebooks=build / "notebooks",
        figures=build / "figures",
        report=report if done else {},
    )


def _report(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
