"""`repro check`: is a profile, or a dataset, right, and what would it cost?

Nothing is run, and of a profile no network is asked.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from repro.errors import UserError

if TYPE_CHECKING:
    from repro.app.study import Study
    from repro.experiments.budget import Budget
    from repro.work.devices import Device

ELSEWHERE = "a100"  # the device of a study whose data or models are not here, where none is named


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser("check", help="check a profile and print what it would cost")
    parser.add_argument(
        "profile", nargs="*", help="a profile's name or file; PROFILE+OVERLAY:DATASET"
    )
    parser.add_argument(
        "--dataset", default="",
        help="a dataset's name or file; without a profile: what it holds, and which sizes fit",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print the plan as JSON")
    parser.add_argument(
        "--device", default="", metavar="NAME",
        help="hours and memory on such a device: h100, a100, ..., cpu (default: this machine; "
        f"{ELSEWHERE} where data or models are not here)",
    )  # fmt: skip
    parser.add_argument(
        "--usd-per-hour", type=float, metavar="USD",
        help="price of an hour of --device (default: of an a100 that of SIGIR'24, else none)",
    )  # fmt: skip
    parser.add_argument(
        "--calibrate", action="store_true",
        help="measure this machine first, in a minute: it is kept for later checks",
    )  # fmt: skip
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the plan of each profile, or what a dataset holds; raises `UserError` on a fault."""
    from repro.app import check_dataset

    if not args.profile:
        if not args.dataset:
            raise UserError("nothing to check", remedy="name a profile, or a --dataset, or both")
        return check_dataset.check(args.dataset)
    from repro.app.named import files
    from repro.app.study import Study
    from repro.experiments.doors import DECLARED
    from repro.work.devices import device

    named = device(args.device) if args.device else None
    if args.usd_per_hour is not None:
        if named is None or not 0 <= args.usd_per_hour < float("inf"):
            raise UserError(
                "--usd-per-hour is the price of an hour of a named device",
                remedy="give --device NAME too, and a price of 0 or more",
            )
        named = replace(named, usd_per_hour=args.usd_per_hour)
    for name in args.profile:
        study = Study(*files(f"{name}:{args.dataset}" if args.dataset else name), doors=DECLARED)
        if args.calibrate:
            study.calibrate()
        plan = estimate(study, named)
        print(json.dumps(plan, indent=1) if args.json else f"{study.describe()}\n{as_text(plan)}")
    return 0


def estimate(study: Study, device: Device | None = None) -> dict[str, Any]:
    """What the study would run: counts, FLOPs, seconds, bytes; what is stored counts as free.

    `runs` are those that are known; all else also counts, by stand-ins, those that follow from them.
    """
    from repro.app import forecast
    from repro.experiments.budget import distinct
    from repro.experiments.registry import later
    from repro.work.devices import DEVICES

    planned, found = study.planned(), study.budget(later=True)
    everything = distinct({"known": planned, **later(study.runs)})
    downloads = forecast.downloads(study, everything)
    if device is None and downloads:
        device = DEVICES[ELSEWHERE]
    memory = forecast.memory(study, everything, device)
    disk = forecast.disk(study, everything, found.workers)
    on_cpu = device is None or device.memory is None
    return {
        "study": study.name,
        "runs": len(planned),
        "runs_stored": sum(
            study.store.has("train", study.store.key("train", run.train.spec)) for run in planned
        ),
        "runs_later": len(everything) - len(planned),
        "flop": found.total.flop,
        **found.as_dict(),
        "steps_from": _steps_from(study),
        "texts_cut": _cut(study),
        "last_sweep": _last_sweep(study),
        "device": _on(device, study, found) if device else None,
        "memory": memory,
        "memory_bytes": max(memory.values()) * (found.workers if on_cpu else 1),
        "disk": disk,
        "disk_bytes": sum(disk.values()),
        "downloads": downloads,
    }


def as_text(plan: dict[str, Any]) -> str:
    """The plan for people."""
    from repro.progress import clock

    n_later, device = plan["runs_later"], plan["device"]
    later = f"; about {n_later} more follow from them (later), estimated below" if n_later else ""
    lines = [
        f"  runs     {plan['runs']}, of which {plan['runs_stored']} are stored{later}",
        *(_lines_on(plan, device) if device else _lines_here(plan)),
        f"  steps    {plan['steps_from']}",
    ]
    if plan["texts_cut"]:
        said = [
            f"{each['share']:.0%} of the {name} after {each['tokens']:,} tokens"
            for name, each in plan["texts_cut"].items()
        ]
        lines.append(f"  cut      {', '.join(said)} (`texts` of the profile)")
    if device:
        lines += [
            f"  compute  {device['flop']:.2e} FLOP to do, readings counted; {device['name']} at "
            f"{device['rate']:.2e} FLOP/s ({device['said']}, {device['source']})",
            f"  time     about {_hours(device['hours'])} hours of one {device['name']}"
            f"{', later runs counted' if n_later else ''}, notebooks not counted",
        ]
        if price := device["usd_per_hour"]:
            lines.append(f"  price    {price * device['hours']:,.2f} USD, at {price:g} an hour")
    else:
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
    each = "; ".join(f"{name} {need / 1e9:.1f}" for name, need in plan["memory"].items() if need)
    disk = "; ".join(f"{name} {_bytes(n)}" for name, n in plan["disk"].items() if n)
    return "\n".join([
        *lines,
        f"  memory   about {plan['memory_bytes'] / 1e9:.1f} GB (peak of a run, GB: {each})",
        f"  disk     about {_bytes(plan['disk_bytes'])} ({disk})",
        *_downloads(plan["downloads"]),
    ])  # fmt: skip


def _lines_here(plan: dict[str, Any]) -> list[str]:
    from repro.progress import clock

    columns = ("runs", "stored", "shared", "training", "reading", "ranking")
    lines = [f"  budget   {'experiment':20}" + "".join(f"{name:>10}" for name in columns)]
    for name, line in plan["experiments"].items():
        counts = "".join(f"{line[column]:10,}" for column in columns[:3])
        times = "".join(f"{clock(line[column]):>10}" for column in columns[3:])
        lines.append(f"           {name:20}{counts}{times}")
    return lines


def _lines_on(plan: dict[str, Any], device: dict[str, Any]) -> list[str]:
    columns = ("runs", "stored", "shared", "steps")
    heads = [*columns, "FLOP", "hours"]
    lines = [f"  budget   {'experiment':20}" + "".join(f"{name:>11}" for name in heads)]
    for name, line in plan["experiments"].items():
        counts = "".join(f"{line[column]:11,.0f}" for column in columns)
        flop = line["flop"] + line["reading_flop"]
        lines.append(
            f"           {name:20}{counts}{flop:11.1e}{_hours(device['experiments'][name]):>11}"
        )
    return lines


def _on(device: Device, study: Study, found: Budget) -> dict[str, Any]:
    """The study on a device: hours in all and by experiment, and what they rest on."""
    from repro.app import forecast

    precision = study.profile.encoder.precision
    hours = forecast.hours(found, device, precision)
    return {
        "name": device.name,
        "precision": precision,
        "rate": device.rate(precision),
        "said": device.said,
        "source": device.source,
        "flop": found.total.flop + found.total.reading_flop,
        "hours": sum(hours.values()),
        "usd_per_hour": device.usd_per_hour,
        "experiments": hours,
    }


def _steps_from(study: Study) -> str:
    """Where the numbers of steps come from, in words."""
    from repro.experiments.effort import PASSES, PAST

    known = len(study.runs.estimator.known)
    rule = f"{PAST * PASSES:.2f} passes over the pairs at a model's own rate"
    return f"guessed from {known} finished runs and {rule}" if known else f"guessed: {rule}"


def _cut(study: Study) -> dict[str, dict[str, float]] | None:
    """Of queries and passages the share that is cut, and after how many tokens; None without texts."""
    if not study.dataset.is_here:
        return None
    texts = study.runs.texts(next(iter(study.profile.models.values())).weights)
    limits = {"queries": texts.params.query_tokens, "passages": texts.params.passage_tokens}
    return {
        name: {"share": getattr(texts.table, name).cut(most), "tokens": most}
        for name, most in limits.items()
    }


def _downloads(found: list[dict[str, Any]]) -> list[str]:
    if not found:
        return []
    total = sum(each["bytes"] or 0 for each in found)
    lines = [f"  download about {_bytes(total)}, not on this machine:"]
    for kind in ("dataset", "model"):
        said = [
            f"{each['name']} {_bytes(each['bytes']) if each['bytes'] is not None else '(not known)'}"
            for each in found
            if each["kind"] == kind
        ]
        lines += [f"           {kind}s: {', '.join(said)}"] if said else []
    return lines


def _bytes(n: float) -> str:
    return f"{n / 1e9:.1f} GB" if n >= 1e9 else f"{n / 1e6:.0f} MB"


def _hours(n: float) -> str:
    return f"{n:,.1f}" if n >= 0.1 else f"{n:.3f}"


def _last_sweep(study: Study) -> dict[str, float] | None:
    """Estimated and actual seconds of the last sweep that ran something here; None before it."""
    path = study.build / "sweep.json"
    if not path.is_file():
        return None
    kept = json.loads(path.read_text(encoding="utf-8"))
    return {name: kept[name] for name in ("seconds", "took_seconds")}
