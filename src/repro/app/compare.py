"""`repro compare A B`: reports of several studies side by side, on the same data or on other."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from repro.errors import UserError, nearest
from repro.files import read_json
from repro.places import ROOT, home

LAWS = ("product", "product_d0")  # exponents of other forms mean other things


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "compare", help="verdicts and exponents of several studies side by side"
    )
    parser.add_argument(
        "studies", nargs="+", metavar="STUDY", help="a profile, PROFILE-DATASET, or a report.json"
    )
    parser.add_argument(
        "--law", action="append", metavar="FORM", help=f"default: {', '.join(LAWS)}"
    )
    parser.add_argument(
        "--figure", type=Path, metavar="FILE", help="draw the exponents: .svg, .png, .json"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print, as Markdown, the studies, their exponents, and each verdict that any of them gives."""
    from repro.app import beside
    from repro.show import agreement

    reports = dict(map(_read, args.studies))
    if len(reports) < 2:
        raise UserError(
            "one study has nothing beside it", remedy="name two: repro compare mini midi"
        )
    asked = args.law or list(LAWS)
    laws = {name: _fitted(report["laws"]) for name, report in reports.items()}
    known = sorted({law for each in laws.values() for law in each})
    for law in asked:
        if known and law not in known:
            raise UserError(f"no report has a law {law!r}", remedy=nearest(law, known))
    print(_studies(reports), _exponents(laws, asked), sep="\n\n", end="\n\n")
    claims = {}
    for name, report in reports.items():
        old = beside.outdated(report.get("versions", {}))
        claims[name] = [row for row in report["claims"] if row["id"] not in old]
        if old:
            print(beside.left_out(name, old), end="\n\n")
    print(agreement.side_by_side(claims))
    if args.figure:
        from repro.show import style
        from repro.show.figures import compare as figures

        drawing = figures.exponents(laws, asked)
        style.save(
            drawing["figure"],
            args.figure.parent,
            args.figure.stem,
            alt=drawing["alt"],
            data=drawing["data"],
        )
        print(f"\ndrawn: {args.figure.with_suffix('.svg')}, .png and .json beside it")
    return 0


def _fitted(laws: dict[str, Any]) -> dict[str, Any]:
    """Those that the runs of a study could determine."""
    return {name: law for name, law in laws.items() if law["params"]}


def _studies(reports: dict[str, Any]) -> str:
    """What each study is: a row a study."""
    from repro.show.page import markdown

    rows = []
    for name, report in reports.items():
        grid = report["grid"]
        models, sizes = ({row[key] for row in grid} for key in ("model", "d"))
        counts = [str(len(each)) for each in (grid, models, sizes)]
        rows.append([name, report["dataset"], *counts, str(report["missing"])])
    return markdown(["study", "dataset", "runs of the grid", "models", "sizes", "missing"], rows)


def _exponents(laws: dict[str, Any], asked: list[str]) -> str:
    from repro.show.page import markdown

    rows = [
        [fitted[law]["title"], name, str(fitted[law]["n"]), *_both(fitted[law])]
        for law in asked
        for name, fitted in laws.items()
        if law in fitted
    ]
    return markdown(["law", "study", "cells", "alpha [95 %]", "beta [95 %]"], rows)


def _both(law: dict[str, Any]) -> list[str]:
    from repro.show.page import estimate

    names = ("alpha", "beta")
    parts = ({"value": law["params"].get(each), "ci95": law["ci95"].get(each)} for each in names)
    return [estimate(part) for part in parts]


def _read(name: str) -> tuple[str, dict[str, Any]]:
    """The name of a study and its report: a file, a finished build, or what is published."""
    path = Path(name) if Path(name).suffix == ".json" else _find(name.replace(":", "-"))
    try:
        report = read_json(path)
        lacking = {"dataset", "grid", "laws", "claims", "missing"} - set(report)
    except (OSError, ValueError, TypeError) as error:
        raise UserError(
            f"this cannot be read: {error}", where=str(path), remedy="name a report.json"
        ) from None
    if lacking:
        raise UserError(
            f"this is no report of a study: it lacks {', '.join(sorted(lacking))}",
            where=str(path), remedy="name a report.json that `repro reproduce` wrote",
        )  # fmt: skip
    return path.resolve().parent.name, report


def _find(name: str) -> Path:
    for folder in (home() / "build", ROOT / "results"):
        there = {path.parent.name: path for path in sorted(folder.glob("*/report.json"))}
        near = [name] if name in there else [each for each in there if each.startswith(f"{name}-")]
        if len(near) > 1:
            raise UserError(
                f"`{name}` may be {' or '.join(near)}", where=str(folder), remedy="name one"
            )
        if near:
            return there[near[0]]
    published = sorted(path.parent.name for path in (ROOT / "results").glob("*/report.json"))
    raise UserError(f"there is no report of a study {name!r}", remedy=nearest(name, published))
