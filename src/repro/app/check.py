"""`repro check`: is a profile right, and what would it cost?  Nothing is run."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from repro.app.study import Study

FLOP_PER_SECOND = (
    3.5e10  # of one core on the micro family (docs/performance.md), until a run is timed
)
DISK_PER_PARAMETER = 4  # bytes: the best weights in float32
MEMORY_PER_PARAMETER = 20  # bytes: weights, gradient, two moments, a spare copy
MEMORY_PER_WORKER = 600e6  # bytes: Python, torch and transformers, as measured on Linux


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser("check", help="check a profile and print what it would cost")
    parser.add_argument("profile", nargs="+", help="a profile's name or file; PROFILE:DATASET")
    parser.add_argument("--json", action="store_true", help="print the plan as JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the plan of each profile; raises `UserError` where one cannot run."""
    from repro.app.study import Study, files

    for name in args.profile:
        study = Study(*files(name))
        plan = estimate(study)
        print(json.dumps(plan, indent=1) if args.json else f"{study.describe()}\n{as_text(plan)}")
    return 0


def estimate(study: Study) -> dict[str, Any]:
    """What the study would run: counts, FLOPs, seconds, bytes; what is stored counts as free."""
    from repro.work.local import workers

    planned = study.planned()
    tasks = [task for run in planned for task in (run.train, run.ranking)]
    missing = [
        task
        for task in tasks
        if not study.store.has(task.kind, study.store.key(task.kind, task.spec))
    ]
    rate = measured_rate(study) or FLOP_PER_SECOND
    flop = sum(task.flop for task in missing)
    totals = [study.runs.size(study.profile.models[run.model].weights).total for run in planned]
    n_workers = workers(study.profile.execute)
    return {
        "study": study.name,
        "runs": len(planned),
        "runs_stored": sum(
            study.store.has("train", study.store.key("train", run.train.spec)) for run in planned
        ),
        "flop": flop,
        "workers": n_workers,
        "flop_per_second_a_worker": rate,
        "rate_is_measured": measured_rate(study) is not None,
        "seconds": flop / rate / n_workers,
        "memory_bytes": n_workers * (MEMORY_PER_WORKER + MEMORY_PER_PARAMETER * max(totals)),
        "disk_bytes": DISK_PER_PARAMETER * sum(totals),
    }


def as_text(plan: dict[str, Any]) -> str:
    """The plan for people."""
    from repro.work.progress import clock

    how = "as measured on the runs stored here" if plan["rate_is_measured"] else "a guess"
    return "\n".join([
        f"  runs     {plan['runs']}, of which {plan['runs_stored']} are stored",
        f"  compute  {plan['flop']:.2e} FLOP to do; at {plan['flop_per_second_a_worker']:.1e} a second and "
        f"worker ({how})",
        f"  time     about {clock(plan['seconds'])} on {plan['workers']} workers",
        f"  memory   about {plan['memory_bytes'] / 1e9:.1f} GB",
        f"  disk     about {plan['disk_bytes'] / 1e6:.0f} MB",
    ])  # fmt: skip


def measured_rate(study: Study) -> float | None:
    """FLOPs a second of the runs of this study that are stored; None where there are none."""
    flop = seconds = 0.0
    for run in study.planned():
        folder = study.store.path("train", study.store.key("train", run.train.spec))
        if (folder / "manifest.json").exists():
            summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
            flop += summary.get("flop_spent", 0.0)
            seconds += summary.get("seconds", 0.0)
    return flop / seconds if seconds > 0 else None
