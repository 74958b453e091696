"""`repro reproduce`: check, sweep, report, notebooks; nothing to do when nothing changed."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from repro.places import ROOT, home

if TYPE_CHECKING:
    from repro.app.study import Study

KERNEL = "repro"


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "reproduce", help="run a profile end to end: sweep, notebooks, report"
    )
    parser.add_argument(
        "profile", nargs="?", default="mini", help="a profile's name or file (default: mini)"
    )
    parser.add_argument(
        "--dataset", default="", help="a dataset's name or file (default: the profile's)"
    )
    parser.add_argument("--force", action="store_true", help="execute the notebooks again")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Reproduce a profile; 0 when everything is there, 1 when runs failed."""
    began = time.monotonic()
    from repro.app import stamp

    name = f"{args.profile}:{args.dataset}" if args.dataset else args.profile
    if not args.force and (build := stamp.unchanged(name)):
        print(f"nothing changed: {build} is up to date (FORCE=1 executes the notebooks again)")
        return 0
    from repro.app.report import write_report
    from repro.app.study import Study

    study = Study.open(name)
    failed = study.sweep()
    for label, reason in failed.items():
        print(f"missing: {label}: {reason.splitlines()[0]}", file=sys.stderr)
    write_report(study)
    execute_notebooks(study, name)
    print_summary(study, time.monotonic() - began)
    if failed:
        print(
            f"{len(failed)} runs failed; run the same command again to try them again",
            file=sys.stderr,
        )
        return 1
    stamp.write(study, name)
    return 0


def execute_notebooks(study: Study, name: str) -> None:
    """Execute every notebook of the project on this study, into build/<name>/notebooks/."""
    import papermill

    sources = sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))
    target = study.build / "notebooks"
    target.mkdir(parents=True, exist_ok=True)
    _install_kernel(home() / "build" / "jupyter")
    for source in sources:
        print(f"notebook {source.stem}", flush=True)
        unfinished = target / f".{source.name}"
        papermill.execute_notebook(
            str(source),
            str(unfinished),
            parameters={"profile": name},
            kernel_name=KERNEL,
            cwd=str(ROOT),
            progress_bar=False,
            log_output=False,
        )
        unfinished.replace(target / source.name)


def print_summary(study: Study, seconds: float) -> None:
    """The last screen: where the results are, and the verdicts in numbers."""
    report = study.report()
    counts: dict[str, int] = {}
    for claim in report["claims"]:
        counts[claim["verdict"]] = counts.get(claim["verdict"], 0) + 1
    states: dict[str, int] = {}
    for row in report["grid"]:
        states[row["state"]] = states.get(row["state"], 0) + 1
    print(
        f"\n{study.name}: {len(report['grid'])} runs ({_count(states)}); claims: {_count(counts)}"
    )
    print(f"  read first   {study.build / 'notebooks' / '10_report.ipynb'}")
    print(f"  machines     {study.build / 'report.json'}, {study.build / 'grid.csv'}")
    print(f"  took         {seconds:.0f} s")


def _count(counts: dict[str, int]) -> str:
    return ", ".join(f"{n} {name}" for name, n in sorted(counts.items(), key=lambda item: -item[1]))


def _install_kernel(folder: Path) -> None:
    """A kernel that is this very interpreter, found before any other of that name."""
    kernel = folder / "kernels" / KERNEL
    kernel.mkdir(parents=True, exist_ok=True)
    argv = [
        sys.executable,
        "-Xfrozen_modules=off",
        "-m",
        "ipykernel_launcher",
        "-f",
        "{connection_file}",
        "--log-level=ERROR",  # ipykernel 7 warns of TCP on every start
    ]
    about = {
        "argv": argv,
        "display_name": "repro",
        "language": "python",
        "env": {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore:IProgress not found"},
    }
    (kernel / "kernel.json").write_text(json.dumps(about), encoding="utf-8")
    known = os.environ.get("JUPYTER_PATH", "")
    if str(folder) not in known.split(os.pathsep):
        os.environ["JUPYTER_PATH"] = os.pathsep.join(filter(None, [str(folder), known]))
