"""`repro check`: is a profile right, and what would it cost?  Nothing is run."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from repro.app.study import Study

DISK_PER_PARAMETER = 4  # bytes: the best weights in float32
MEMORY_PER_PARAMETER = 20  # bytes: weights, gradient, two moments, a spare copy
MEMORY_PER_WORKER = 600e6  # bytes: Python, torch and transformers, as measured on Linux


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser("check", help="check a profile and print what it would cost")
    parser.add_argument("profile", nargs="+", help="a profile's name or file; PROFILE:DATASET")
    parser.add_argument("--json", action="store_true", help="print the plan as JSON")
    parser.add_argument(
        "--calibrate", action="store_true",
        help="measure this machine first, in a minute: it is kept for later checks",
    )  # fmt: skip
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the plan of each profile; raises `UserError` where one cannot run."""
    from repro.app.study import Study, files

    for name in args.profile:
        study = Study(*files(name))
        if args.calibrate:
            study.calibrate()
        plan = estimate(study)
        print(json.dumps(plan, indent=1) if args.json else f"{study.describe()}\n{as_text(plan)}")
    return 0


def estimate(study: Study) -> dict[str, Any]:
    """What the study would run: counts, FLOPs, seconds, bytes; what is stored counts as free.

    `runs` are those that are known; all else also counts, by stand-ins, those that follow from them.
    """
    from repro.experiments.budget import distinct
    from repro.experiments.registry import later

    planned, found = study.planned(), study.budget(later=True)
    everything = distinct({"known": planned, **later(study.runs)})
    totals = [study.runs.size(study.profile.models[run.model].weights).total for run in everything]
    return {
        "study": study.name,
        "runs": len(planned),
        "runs_stored": sum(
            study.store.has("train", study.store.key("train", run.train.spec)) for run in planned
        ),
        "runs_later": len(everything) - len(planned),
        "flop": found.total.flop,
        **found.as_dict(),
        "last_sweep": _last_sweep(study),
        "memory_bytes": found.workers * (MEMORY_PER_WORKER + MEMORY_PER_PARAMETER * max(totals)),
        "disk_bytes": DISK_PER_PARAMETER * sum(totals),
    }


def as_text(plan: dict[str, Any]) -> str:
    """The plan for people."""
    from repro.work.progress import clock

    columns = ("runs", "stored", "shared", "training", "reading", "ranking")
    n_later = plan["runs_later"]
    later = f"; about {n_later} more follow from them (later), estimated below" if n_later else ""
    lines = [
        f"  runs     {plan['runs']}, of which {plan['runs_stored']} are stored{later}",
        f"  budget   {'experiment':20}" + "".join(f"{name:>10}" for name in columns),
    ]
    for name, line in plan["experiments"].items():
        counts = "".join(f"{line[column]:10,}" for column in columns[:3])
        times = "".join(f"{clock(line[column]):>10}" for column in columns[3:])
        lines.append(f"           {name:20}{counts}{times}")
    lines += [
        f"  compute  {plan['flop']:.2e} FLOP to do, {clock(plan['worker_seconds'])} of one worker "
        f"({plan['source']})",
        f"  time     about {clock(plan['seconds'])} on {plan['workers']} workers, "
        f"{'later runs counted, ' if n_later else ''}notebooks not counted",
    ]
    if plan["last_sweep"]:
        last = plan["last_sweep"]
        lines.append(
            f"  before   the last sweep was estimated at {clock(last['seconds'])} and took "
            f"{clock(last['took_seconds'])}"
        )
    return "\n".join([
        *lines,
        f"  memory   about {plan['memory_bytes'] / 1e9:.1f} GB",
        f"  disk     about {plan['disk_bytes'] / 1e6:.0f} MB",
    ])  # fmt: skip


def _last_sweep(study: Study) -> dict[str, float] | None:
    """Estimated and actual seconds of the last sweep that ran something here; None before it."""
    path = study.build / "sweep.json"
    if not path.is_file():
        return None
    kept = json.loads(path.read_text(encoding="utf-8"))
    return {name: kept[name] for name in ("seconds", "took_seconds")}
