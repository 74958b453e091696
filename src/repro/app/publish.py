"""`repro publish`: copy a finished build into notebooks/rendered, figures and results."""

from __future__ import annotations

import argparse
import json
import shutil
from typing import Any

from repro.params import UserError
from repro.places import ROOT


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser("publish", help="copy a finished build into the checkout")
    parser.add_argument("profile", nargs="?", default="mini", help="a profile; PROFILE:DATASET")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Copy notebooks, figures, grid table and report of a finished study; stability.json if there."""
    from repro.app.study import Study, files

    study = Study(*files(args.profile))
    if study.profile.meaningless:
        raise UserError(
            f"{study.name} tests the plumbing; its numbers mean nothing",
            remedy="publish another profile",
        )
    report = study.build / "report.json"
    if not report.exists():
        raise UserError(
            f"there is no finished build of {study.name}",
            where=str(report),
            remedy=f"make reproduce PROFILE={args.profile.partition(':')[0]}",
        )
    missing = json.loads(report.read_text(encoding="utf-8"))["missing"]
    if missing:
        raise UserError(
            f"{missing} runs of {study.name} are missing", remedy="run it again, then publish"
        )
    for source, target in (
        (study.build / "notebooks", ROOT / "notebooks" / "rendered" / study.name),
        (study.build / "figures", ROOT / "figures" / study.name),
    ):
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(source, target, ignore=shutil.ignore_patterns(".*"))
        print(f"published {target.relative_to(ROOT)}")
    results = ROOT / "results" / study.name
    results.mkdir(parents=True, exist_ok=True)
    asked = ["stability.json"] if (study.build / "stability.json").is_file() else []
    for name in ("grid.csv", "runs.csv", "report.json", *asked):
        shutil.copy2(study.build / name, results / name)
        print(f"published {(results / name).relative_to(ROOT)}")
    return 0
