"""`repro publish`: copy a finished build into notebooks/rendered, figures and results."""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path
from typing import Any

from repro.errors import UserError
from repro.places import ROOT


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser("publish", help="copy a finished build into the checkout")
    parser.add_argument("profile", nargs="?", default="mini", help="a profile; PROFILE:DATASET")
    only = parser.add_mutually_exclusive_group()
    only.add_argument(
        "--readme", action="store_true", help="only renew the README's table of claims"
    )
    only.add_argument(
        "--squeeze", action="store_true", help="only make small what is published already; no build"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Copy notebooks (made small), figures, tables, report and stability.json of a finished study."""
    from repro.app import readme
    from repro.app.named import files
    from repro.app.study import Study

    if args.readme:
        print("README.md: renewed" if readme.renew() else "README.md: as it was")
        return 0
    study = Study(*files(args.profile))
    rendered = ROOT / "notebooks" / "rendered" / study.name
    if args.squeeze:
        return _squeeze(rendered)
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
        (study.build / "notebooks", rendered),
        (study.build / "figures", ROOT / "figures" / study.name),
    ):
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(source, target, ignore=shutil.ignore_patterns(".*"))
        print(f"published {target.relative_to(ROOT)}")
    _squeeze(rendered)
    results = ROOT / "results" / study.name
    results.mkdir(parents=True, exist_ok=True)
    asked = ["stability.json"] if (study.build / "stability.json").is_file() else []
    for name in ("grid.csv", "runs.csv", "report.json", *asked):
        shutil.copy2(study.build / name, results / name)
        print(f"published {(results / name).relative_to(ROOT)}")
    if readme.renew():
        print("README.md: renewed")
    return 0


def _squeeze(folder: Path) -> int:
    from repro.app.squeeze import squeeze

    for path in sorted(folder.glob("*.ipynb")):
        before = path.stat().st_size
        if squeeze(path):
            print(f"{path.name}: {before:,} bytes before, {path.stat().st_size:,} now")
    return 0
