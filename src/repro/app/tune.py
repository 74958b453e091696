"""`repro tune`: choose the learning rate of each model, on the tuning split alone."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from repro.experiments.tuning import Tuning


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "tune", help="choose learning rates on the tuning split, for any model and dataset"
    )
    parser.add_argument("profile", help="a profile's name or file; PROFILE:DATASET")
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--models", nargs="+", default=[], metavar="NAME",
        help="models of the profile (default: the smallest and the middle one of its grid; the "
        "others follow by a power of the width)",
    )  # fmt: skip
    which.add_argument("--all", action="store_true", help="every model of the grid")
    parser.add_argument(
        "--rates", nargs="+", type=float, default=[], metavar="LR",
        help="these rates alone (default: a ladder of doublings about the profile's rate, which "
        "grows while the answer may lie beyond an end)",
    )  # fmt: skip
    parser.add_argument(
        "--pairs", nargs="+", type=int, default=[], metavar="D",
        help="data sizes (default: the smallest and the middle one of the grid)",
    )  # fmt: skip
    parser.add_argument("--seeds", type=int, default=3, help="at the best rate (default: 3)")
    parser.add_argument("--json", type=Path, default=None, help="write the record there as well")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Tune, print table and choice, and write the record."""
    from repro.app.named import files
    from repro.app.study import Study
    from repro.errors import UserError
    from repro.experiments.tuning import TuneParams, Tuning
    from repro.files import write_json
    from repro.work import execute

    if args.json is not None and args.json.is_dir():
        raise UserError("this is a directory", where=str(args.json), remedy="name a file")
    study = Study(*files(args.profile))
    study.planned()  # refuses weights that are not there, by line of the profile
    asked = TuneParams(
        tuple(args.models), args.all, tuple(args.rates), tuple(args.pairs), args.seeds
    )
    tuning = Tuning(study.profile, study.dataset, study.store, asked, study.estimator())
    print(
        f"tuning {', '.join(tuning.models)} of {study.name}, D "
        f"{', '.join(f'{d:,}' for d in tuning.sizes)}, on the tuning split alone "
        f"({len(tuning.view.evaluation('validation').pairs):,} pairs evaluated)"
    )
    tuning.run(lambda tasks: execute.run(study.store, tasks, study.profile.execute, title="tune"))
    record = {"study": study.name, **tuning.record()}
    print(as_text(tuning, record))
    study.build.mkdir(parents=True, exist_ok=True)
    for path in filter(None, [study.build / "tuned.json", args.json]):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, record)
        print(f"record: {path}")
    return 0


def as_text(tuning: Tuning, record: dict[str, Any]) -> str:
    """The table of runs, the choices with their reasons, and the lines for the profile."""
    from repro.experiments import lr_choice

    lines = [
        f"{'model':10} {'rate':>9} {'D':>7} {'MAEL':>7} {'sd':>7} {'seeds':>5} {'S':>7}  state"
    ]
    for name in tuning.models:
        for (rate, pairs), cell in tuning.table(name).groupby(["rate", "pairs"]):
            known = cell["mael"].astype(float)
            sd = f"{known.std(ddof=1):.4f}" if len(cell) > 1 else "-"
            states = "/".join(sorted(set(cell["state"])))
            steps = cell["steps"].astype(float).mean()
            lines.append(
                f"{name:10} {rate:9.3g} {pairs:7,} {known.mean():7.4f} {sd:>7} {len(cell):5} "
                f"{steps:7.0f}  {states}"
            )
    lines.append("")
    for name, choice in tuning.choices().items():
        lines.append(
            f"{name}: {choice.rate:.3g}, {choice.reason} (S {lr_choice.in_words(choice.steps)} at D "
            f"{tuning.sizes[0]:,}; MAEL {_percent(choice.cost)} over that of {choice.best:.3g})"
        )
        for rate, cost, steps in lr_choice.larger(tuning.table(name)):
            lines.append(f"  {rate:.3g} would cost {cost:.1%} of MAEL (S {steps:.0f})")
    if record["predicted"]:
        lines.append(f"others: {record['prediction']}")
    rates = {name: each["rate"] for name, each in record["chosen"].items()} | record["predicted"]
    lines += ["", "for the profile:", "models:"]
    for name in sorted(rates, key=lambda each: list(tuning.profile.models).index(each)):
        weights = tuning.profile.models[name].weights
        lines.append(f"  {name}: {{weights: {weights}, lr: {rates[name]:.3g}}}")
    return "\n".join(lines)


def _percent(value: float) -> str:
    return f"{value:.1%}" if math.isfinite(value) else "-"
