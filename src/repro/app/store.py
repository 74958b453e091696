"""`repro store`: how the run store stands, whether it is sound, what may go, and whence a result comes."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from repro.store import Store
    from repro.work.plans import Place
    from repro.work.queue import Task

OLDER_DAYS = 7.0
WATCH_SECONDS = 5.0
CLEAR = "\x1b[H\x1b[J"  # of a terminal: back to its first line, and all below it gone


def add_parser(subparsers: Any) -> None:
    """Declare the command and its own commands."""
    parser = subparsers.add_parser(
        "store", help="the run store: status, verify, gc, explain, merge"
    )
    commands = parser.add_subparsers(dest="store_command", required=True, metavar="COMMAND")
    _add(
        commands,
        "status",
        status,
        "what is done, running where, waiting, failed and why; time left",
    )
    _add(
        commands,
        "verify",
        verify,
        "read every file against its digest; make a sample of runs again",
    )
    _add(commands, "gc", gc, "what nothing asks for, and what faults left; removed with --yes")
    _add(commands, "explain", explain, "why a result exists, and what would make it stale")
    _add(commands, "merge", merge, "take over the results of another store")


def _add(commands: Any, name: str, run: Any, text: str) -> None:
    parser = commands.add_parser(name, help=text)
    profile = "a profile's name or file; PROFILE:DATASET"
    if name == "status":
        parser.add_argument("profile", nargs="?", default="", help=f"{profile} (default: all)")
    if name == "verify":
        parser.add_argument(
            "profile",
            nargs="*",
            help=f"{profile}: it tells how its runs are made, where they do not",
        )
        parser.add_argument("--sample", type=int, default=0, metavar="N", help="make N runs again")
        parser.add_argument("--seed", type=int, default=0, help="which ones (default: 0)")
    if name == "gc":
        parser.add_argument(
            "profile", nargs="*", help=f"{profile}: what these ask for stays, finished results that "
            "no study asks for go",
        )  # fmt: skip
        parser.add_argument(
            "--older", type=float, default=OLDER_DAYS, metavar="DAYS",
            help=f"unfinished work and records of failures this old (default: {OLDER_DAYS:g})",
        )  # fmt: skip
        how = parser.add_mutually_exclusive_group()
        how.add_argument("--dry-run", action="store_true", help="only list it (the default)")
        how.add_argument("--yes", action="store_true", help="remove it")
    if name == "explain":
        parser.add_argument("key", help="KEY, KIND/KEY, or the beginning of one")
    if name == "merge":
        parser.add_argument(
            "other", type=Path, help="a folder of results, or one that has runs/ in it"
        )
    if name == "status":
        parser.add_argument(
            "--watch", type=float, nargs="?", const=WATCH_SECONDS, metavar="SECONDS",
            help=f"again every so often (default: {WATCH_SECONDS:g}), until no run is asked for or goes on",
        )  # fmt: skip
    if name in ("status", "explain"):
        parser.add_argument("--json", action="store_true", help="print it as JSON")
    parser.set_defaults(run=run)


def status(args: argparse.Namespace) -> int:
    """Print how the store stands; 1 where runs have failed."""
    from repro.app import planned
    from repro.work import plans
    from repro.work import status as states

    if args.watch is not None and not 0 < args.watch <= 86_400:
        _refuse(f"--watch {args.watch:g}: there is no such pause", "seconds, up to a day")
    store = _store()
    while True:
        chosen = [planned.load(args.profile, store)] if args.profile else plans.load_all(store)
        found = states.status(store, chosen)
        text = json.dumps(found, indent=1) if args.json else states.as_text(found)
        clear = CLEAR if args.watch and sys.stdout.isatty() else ""
        print(f"{clear}{text}", flush=True)
        if args.watch is None or not states.goes_on(found):
            return 1 if found["failed"] else 0
        time.sleep(args.watch)


def verify(args: argparse.Namespace) -> int:
    """Read everything, make a sample again; 1 where anything is not as it says."""
    from repro.app.named import files
    from repro.work import verify as checks

    for name in args.profile:
        files(name)  # a wrong name is told before anything is read
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # torch reads it when it is imported
    if args.sample < 0:
        _refuse(f"--sample {args.sample}: there is no such number of runs", "write 1 or more")
    store = _store()
    sound, faults = checks.rehash(store, lambda line: print(line, flush=True))
    print(f"{sound:,} results are sound, {len(faults)} were damaged")
    wrong, made, known = 0, 0, _tasks(args.profile) if args.sample else {}
    for again in checks.sample(store, args.sample, args.seed, known) if args.sample else ():
        if again.likeness is None:
            print(f"  not made again: {again.label}: {again.why_not}")
            continue
        made += 1
        wrong += not again.right
        where = (
            "on the same machine" if again.same_machine else "made on another machine or version"
        )
        print(f"  {'right' if again.right else 'WRONG'}: {again.label}, {where}: {again.likeness}")
    if args.sample:
        print(f"{made} of {args.sample} runs were made again, {wrong} of them wrong")
        if made == 0:
            print("no run could be made again: see above", file=sys.stderr)
    return 1 if faults or wrong or (args.sample and made == 0) else 0


def gc(args: argparse.Namespace) -> int:
    """List what may go, or remove it."""
    from repro.work import garbage, plans

    if args.older < 0:
        _refuse(f"--older {args.older:g}: an age is not negative", "write days, such as 7")
    store = _store()
    keep, whole = _kept(args.profile)
    recorded = plans.load_all(store)
    for plan in recorded:
        keep |= plan.asked.keys() | set(plan.reads)
    if args.yes:
        garbage.settle(store)
    only = bool(args.profile) and whole
    items = garbage.find(store, keep, only_kept=only, older_days=args.older)
    print(f"store {store.root}: {'removing' if args.yes else 'may go'}")
    print(garbage.as_text(items))
    if recorded:
        print(
            f"  kept: what {', '.join(plan.study for plan in recorded)} asked for when last planned"
        )
    if not args.yes:
        if items:
            print("nothing was removed: --yes does that")
        return 0
    for item in garbage.remove(store, items):
        print(f"  stayed, in use: {item.path}")
    return 0


def explain(args: argparse.Namespace) -> int:
    """Print whence a result comes."""
    from repro.work import explain as reasons
    from repro.work import plans

    store = _store()
    recorded = plans.load_all(store)
    found = reasons.explain(store, reasons.resolve(store, args.key, recorded), recorded)
    print(json.dumps(found, indent=1) if args.json else reasons.as_text(found))
    return 0


def merge(args: argparse.Namespace) -> int:
    """Take over another store's results; 1 where one of them is damaged or unequal."""
    from repro.work import merge as merging

    store, other = _store(), args.other
    if (other / "runs").is_dir():
        other = other / "runs"
    from repro.store import VERSIONS

    if not any((other / kind).is_dir() for kind in VERSIONS):
        _refuse("this is no store of results", "name a runs/ folder", where=str(args.other))
    if other.resolve() == store.root.resolve():
        _refuse("this is the store itself", "name another one", where=str(args.other))
    found = merging.merge(store, other)
    print(f"{len(found.taken):,} results taken over, {len(found.same):,} were here and are equal")
    if found.old:
        print(f"{len(found.old):,} of another result version were left")
    for place, how in found.unequal.items():
        print(f"UNEQUAL, ours kept: {place}: {how}")
    for place, fault in found.damaged.items():
        print(f"DAMAGED, not taken: {place}: {fault}")
    return 1 if found.unequal or found.damaged else 0


def _store() -> Store:
    from repro.places import home
    from repro.store import Store

    root = home() / "runs"
    if not root.is_dir():
        _refuse("there is no store yet", "run something, or set REPRO_HOME", where=str(root))
    return Store(root)


def _kept(names: list[str]) -> tuple[set[Place], bool]:
    """What the named studies ask for, and whether all of it is known: every result is there."""
    from repro.app import planned

    keep: set[Place] = set()
    whole = True
    for name in names:
        study = planned.open_study(name)
        missing, plan = study.missing(), planned.write(study)
        keep |= plan.asked.keys() | study.store.read()
        if missing or plan.later_seconds:
            whole = False
            print(
                f"{study.name} is not finished ({missing} runs are missing): what its later runs will "
                "be is not known, so no finished result of this version may go"
            )
    return keep, whole


def _tasks(names: list[str]) -> dict[Place, Task]:
    """How the named studies make their runs."""
    from repro.app import planned

    return {
        place: task for name in names for place, task in planned.open_study(name).tasks().items()
    }


def _refuse(what: str, remedy: str, where: str = "") -> None:
    from repro.errors import UserError

    raise UserError(what, where=where, remedy=remedy)
