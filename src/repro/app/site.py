"""`repro site`: static pages from the executed notebooks of a study, its report and docs/."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from repro.places import home


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "site", help="static pages of a study: notebooks, how-to, reference"
    )
    parser.add_argument("profile", nargs="?", default="mini", help="a profile; PROFILE:DATASET")
    parser.add_argument(
        "--published", action="store_true", help="of what is published, not of a build"
    )
    parser.add_argument(
        "--out", type=Path, help="the folder of the pages, made anew (build/STUDY/site)"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Build the site and say where it lies; exit code 1 where a page has a fault."""
    from repro.app.named import files
    from repro.app.study import Study
    from repro.site import material
    from repro.site.build import build

    found = material.find(Study(*files(args.profile)).name, published=args.published)
    print(f"site of {found.name}, from {found.origin}", flush=True)
    folder = home() / "build" / found.name
    pages = args.out or folder / "site"
    warned = build(found, folder / "site-sources", pages)
    for line in warned:
        print(line, file=sys.stderr)
    print(f"{sum(1 for _ in pages.rglob('*.html'))} pages: open {pages / 'index.html'}")
    return 1 if warned else 0
