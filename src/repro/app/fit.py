"""`repro fit`: which law describes a table of losses, and how sure is that?"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from repro.laws.fit import Fit
    from repro.laws.intervals import Intervals
    from repro.laws.metric import MetricLine
    from repro.laws.table import Table


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "fit",
        help="fit laws to a table of losses",
        description="Fit laws to a table of losses (CSV, TSV, JSONL, Parquet), one run a row.",
    )
    add = parser.add_argument
    add("table", type=Path, help="the table")
    add("--form", default="product", help="laws, comma-separated; the first is reported and stored")
    add("--n", default="n", metavar="COL", help="model size in parameters (default: n)")
    add("--d", default="d", metavar="COL", help="labelled pairs (default: d)")
    add("--loss", default="loss", metavar="COL", help="the loss, in nats (default: loss)")
    add(
        "--column",
        action="append",
        default=[],
        metavar="NAME=COL",
        help="another variable of a law",
    )
    add("--weights", metavar="COL", help="weight of each run: its inverse variance")
    add(
        "--state", metavar="COL", help="state of each run: 'censored' makes its loss an upper bound"
    )
    add("--metric", metavar="COL", help="a ranking metric, to plan for later (repro plan)")
    add("--huber", type=float, metavar="DELTA", help="summed Huber of this delta on log loss")
    add("--drop-highest", type=int, default=0, metavar="K", help="leave out the K highest losses")
    add("--fix", action="append", default=[], metavar="NAME=VALUE", help="hold a parameter")
    add("--bootstrap", type=int, default=0, metavar="R", help="intervals from R case resamples")
    add("--seed", type=int, default=0, help="seed of the resamples (default: 0)")
    add("--json", type=Path, metavar="OUT", help="store the fit, for `repro plan`")
    add("--figure", type=Path, metavar="OUT", help="draw the fit (.svg or .png)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Fit, print, store, draw; raises `UserError` where the table or the options do not allow it."""
    from repro.app.fit_text import describe, evidence
    from repro.laws import holdout
    from repro.laws.fit import fit
    from repro.laws.forms import form
    from repro.laws.intervals import intervals
    from repro.seeds import stream

    _check_outputs(args)
    laws = [form(name.strip()) for name in args.form.split(",")]
    frame, dropped = _rows(args)
    wanted = {variable for law in laws for variable in law.variables}
    lower = laws[0].response.startswith("steps")  # a run that still falls has more steps to go
    table = _table(args, frame, wanted, -1 if lower else 1)
    delta = _delta(args)
    fitted = fit(laws[0], table, delta=delta, fixed=_fixed(args.fix), dropped=dropped)
    rng = stream(args.seed, "fit", "intervals") if args.bootstrap else None
    if args.bootstrap:
        found = intervals(fitted, method="bootstrap", rng=rng, draws=args.bootstrap)
    else:
        found = intervals(fitted)
    line = _metric(args, frame, table)
    print(describe(args.table, fitted, found, line))
    if {"n", "d"} <= set(table.columns) and not args.fix:
        print(evidence(table, holdout.compare(laws, table, delta)))
    if args.json:
        _store(args, fitted, found, line)
    if args.figure:
        _draw(args.figure, fitted)
    return 0


def _rows(args: argparse.Namespace) -> tuple[pd.DataFrame, str]:
    """The rows that are fitted, and the rule by which others were dropped."""
    from repro.laws.read import read
    from repro.params import UserError, nearest

    frame = read(args.table)
    if not args.drop_highest:
        return frame, ""
    if not 0 < args.drop_highest < len(frame):
        raise UserError(
            f"--drop-highest {args.drop_highest} of {len(frame)} rows", remedy="name fewer"
        )
    if args.loss not in frame.columns:
        names = [str(name) for name in frame.columns]
        raise UserError(
            f"there is no column {args.loss!r}",
            where=str(args.table),
            remedy=nearest(args.loss, names),
        )
    kept = frame[args.loss].rank(method="first", ascending=False) > args.drop_highest
    return frame[kept].reset_index(drop=True), f"the {args.drop_highest} highest losses"


def _table(args: argparse.Namespace, frame: pd.DataFrame, wanted: set[str], censored: int) -> Table:
    from repro.laws.table import from_frame

    columns = {"n": args.n, "d": args.d, **_pairs(args.column, "--column")}
    return from_frame(
        frame,
        loss=args.loss,
        where=str(args.table),
        weights=args.weights,
        state=args.state,
        censored=censored,
        **{name: column for name, column in columns.items() if name in wanted},
    )


def _delta(args: argparse.Namespace) -> float:
    from repro.params import UserError

    if args.huber is None:
        return float("inf")
    if not args.huber > 0:
        raise UserError(f"--huber {args.huber:g} is not above 0", remedy="1e-3 is Chinchilla's")
    return float(args.huber)


def _fixed(options: list[str]) -> dict[str, float | None]:
    from repro.params import UserError

    out: dict[str, float | None] = {}
    for name, text in _pairs(options, "--fix").items():
        try:
            out[name] = None if text == "free" else float(text)
        except ValueError:
            raise UserError(
                f"--fix {name}={text}: not a number", remedy="give NAME=VALUE"
            ) from None
    return out


def _pairs(options: list[str], flag: str) -> dict[str, str]:
    from repro.params import UserError

    out = {}
    for option in options:
        name, equals, value = option.partition("=")
        if not (name and equals and value):
            raise UserError(
                f"{flag} {option}: expected NAME=VALUE", remedy=f"{flag} u=unique_pairs"
            )
        out[name] = value
    return out


def _metric(args: argparse.Namespace, frame: pd.DataFrame, table: Table) -> MetricLine | None:
    import pandas as pd

    from repro.laws.metric import metric_line
    from repro.params import UserError, nearest

    if not args.metric:
        return None
    if args.metric not in frame.columns:
        names = [str(name) for name in frame.columns]
        raise UserError(f"there is no column {args.metric!r}", remedy=nearest(args.metric, names))
    values = pd.to_numeric(frame[args.metric], errors="coerce").to_numpy(float)
    return metric_line(args.metric, table.loss, values)


def _store(
    args: argparse.Namespace, fitted: Fit, found: Intervals, line: MetricLine | None
) -> None:
    import json

    from repro.app.fit_text import with_effects
    from repro.laws.report import data

    record = data(fitted) | {
        "source": str(args.table.name),
        "intervals": {"level": found.level, "method": found.method, "ends": dict(found)},
        "intervals_with_effects": dict(with_effects(fitted, found)),
        "metric": line.to_dict() if line else None,
    }
    args.json.parent.mkdir(parents=True, exist_ok=True)
    args.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(f"\nthe {fitted.form.title} is stored in {args.json}: repro plan {args.json} --help")


def _check_outputs(args: argparse.Namespace) -> None:
    """Before any work: a figure's numbers are written beside it and must not hit the stored fit."""
    from repro.params import UserError

    if not args.figure:
        return
    if args.figure.suffix not in (".svg", ".png"):
        raise UserError(
            f"figures are .svg or .png, not {args.figure.suffix!r}", where=str(args.figure)
        )
    if args.json and args.json.resolve() == args.figure.with_suffix(".json").resolve():
        raise UserError(
            f"{args.json} is also where the numbers of {args.figure} go",
            remedy="give the figure another name",
        )


def _draw(path: Path, fitted: Fit) -> None:
    from repro.app.fit_figure import lines
    from repro.show.style import save

    drawing = lines(fitted)
    save(drawing["figure"], path.parent, path.stem, alt=drawing["alt"], data=drawing["data"])
    print(f"drawn: {path.with_suffix('.svg')}, .png and .json beside it")
