"""`repro reproduce`: check, sweep, report, notebooks; nothing to do when nothing changed."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import sys
import time
from collections import Counter
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

from repro.errors import UserError
from repro.places import ROOT, absolute, home
from repro.progress import TERMINAL_SECONDS, Progress

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

    name = absolute(f"{args.profile}:{args.dataset}" if args.dataset else args.profile)
    if not args.force and (build := stamp.unchanged(name)):
        print(f"nothing changed: {build} is up to date (FORCE=1 executes the notebooks again)")
        return 0
    from repro.app.report import write_report
    from repro.app.study import Study

    study = Study.open(name)
    stamp.remove(study.build)
    failed = study.sweep()
    for label, reason in failed.items():
        print(f"missing: {label}: {reason.splitlines()[0]}", file=sys.stderr)
    if study.grid().empty:
        raise UserError("no run has finished", remedy=f"see {study.store.root}/train/.failed/")
    missing = write_report(study)["missing"]
    faults = execute_notebooks(study, name)
    for notebook, fault in faults.items():
        print(f"failed: notebook {notebook}, {fault}", file=sys.stderr)
    print_summary(study, time.monotonic() - began)
    if failed or faults or missing:
        print("the same command tries again what failed", file=sys.stderr)
        return 1
    stamp.write(study, name)
    return 0


def execute_notebooks(study: Study, name: str) -> dict[str, str]:
    """Execute the project's notebooks on a study, into its build folder; returns name -> fault.

    As many run at once as the study has workers.  A finished notebook replaces the one before; one
    that fails leaves it, and lies beside it under a name that starts with a dot.
    """
    from repro.work.local import workers

    sources = sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))
    target = study.build / "notebooks"
    target.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(study.build / "figures", ignore_errors=True)
    _install_kernel(home() / "build" / "jupyter")
    print(f"executing {len(sources)} notebooks", flush=True)
    progress, faults = Progress("notebooks", {source.stem: 1.0 for source in sources}), {}
    with ThreadPoolExecutor(workers(study.profile.execute)) as pool:
        waiting = {
            pool.submit(_execute, each, target, name, progress): each.stem for each in sources
        }
        try:
            while waiting:
                finished, _ = wait(waiting, TERMINAL_SECONDS, FIRST_COMPLETED)
                for each in finished:
                    stem = waiting.pop(each)
                    faults[stem] = each.result()
                    progress.end(stem)
                for each, stem in waiting.items():
                    if each.running() and stem not in progress.running:
                        progress.start(stem, stem)
                progress.show()
        except KeyboardInterrupt:  # else it would wait for those that run, and start the others
            pool.shutdown(wait=False, cancel_futures=True)
            _end_kernels()
            raise
    progress.close()
    return {stem: fault for stem, fault in sorted(faults.items()) if fault}


def _execute(source: Path, target: Path, name: str, progress: Progress) -> str:
    """Execute one notebook; returns its fault, or an empty text."""
    import nbformat
    import papermill
    from nbclient.exceptions import DeadKernelError

    began = time.monotonic()
    unfinished = target / f".{source.name}"
    try:
        papermill.execute_notebook(
            str(source),
            str(unfinished),
            parameters={"profile": name},
            kernel_name=KERNEL,
            cwd=str(ROOT),
            progress_bar=False,
            log_output=False,
        )
    except papermill.PapermillExecutionError as error:
        return f"cell {error.cell_index}: {error.ename}: {error.evalue} (see {unfinished})"
    except DeadKernelError as error:
        return f"{error}: it was killed, or memory ran out (see {unfinished})"
    notebook = nbformat.read(unfinished, as_version=nbformat.NO_CONVERT)
    notebook.metadata.pop("papermill", None)  # times and absolute paths: they differ in every run
    for cell in notebook.cells:
        cell.metadata.pop("papermill", None)
    nbformat.write(notebook, unfinished)
    unfinished.replace(target / source.name)
    progress.say(f"  {source.stem} {time.monotonic() - began:.0f} s")
    return ""


def _end_kernels() -> None:
    """End what runs under this process: kernels, and what they started."""
    import psutil

    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            process.kill()


def print_summary(study: Study, seconds: float) -> None:
    """The last screen: where the results are, and the verdicts in numbers."""
    from repro.experiments.profile import MEANINGLESS

    report = study.report()
    asked = [claim for claim in report["claims"] if claim["kind"] != "calc"]
    sums = [claim for claim in report["claims"] if claim["kind"] == "calc"]
    print(f"\n{study.name}: {len(report['grid'])} runs ({_count(report['grid'], 'state')})")
    if study.profile.meaningless:
        print(f"  {MEANINGLESS}")
    print(f"  claims asked of these runs: {_count(asked, 'verdict')}")
    print(f"  claims that are arithmetic: {_count(sums, 'verdict')}")
    print(f"  read first   {study.build / 'notebooks' / '10_report.ipynb'}")
    print(f"  machines     {study.build / 'report.json'}, {study.build / 'grid.csv'}")
    print(f"  took         {seconds:.0f} s")


def _count(rows: list[dict[str, Any]], column: str) -> str:
    counts = Counter(row[column] for row in rows)
    return ", ".join(f"{n} {name}" for name, n in counts.most_common())


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
        "--log-level=CRITICAL",  # it warns of TCP at every start, and of its own end
    ]
    about = {
        "argv": argv,
        "display_name": "repro",
        "language": "python",
        "env": {
            "OMP_NUM_THREADS": "1",
            "PYTHONWARNINGS": "ignore:IProgress not found",
            "REPRO_HOME": str(home()),
        },
    }
    (kernel / "kernel.json").write_text(json.dumps(about), encoding="utf-8")
    known = os.environ.get("JUPYTER_PATH", "")
    if str(folder) not in known.split(os.pathsep):
        os.environ["JUPYTER_PATH"] = os.pathsep.join(filter(None, [str(folder), known]))
