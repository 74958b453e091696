"""`repro fit`: which law describes a table of losses, and how sure is that?"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from repro.laws.fit import Fit
    from repro.laws.forms import Form
    from repro.laws.intervals import Intervals
    from repro.laws.metric import MetricLine
    from repro.laws.table import Table


MOST_DRAWS, FEWEST_DRAWS = 100_000, 40  # fewer have no 2.5 % tails


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
    add(
        "--loss", metavar="COL", help="the loss, in nats (default: loss); for form steps, the steps"
    )
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
    from repro.laws.intervals import intervals
    from repro.laws.read import read
    from repro.seeds import stream

    _check_outputs(args)
    _check_draws(args.bootstrap)
    laws = _laws(args)
    delta, frame = _delta(args), read(args.table)
    wanted = {variable for law in laws for variable in law.variables}
    lower = laws[0].response.startswith("steps")  # a run that still falls has more steps to go
    table = _table(args, frame, wanted, -1 if lower else 1)
    if lower:
        _check_steps(args, table)
    kept, dropped = _rows(args, table)
    table, frame = table.take(kept), frame.iloc[kept]
    fixed = _fixed(args.fix)
    _check_task(args, laws[0], table, fixed)
    fitted = fit(laws[0], table, delta=delta, fixed=fixed, dropped=dropped)
    rng = stream(args.seed, "fit", "intervals") if args.bootstrap else None
    if args.bootstrap:
        found = intervals(fitted, method="bootstrap", rng=rng, draws=args.bootstrap)
    else:
        found = intervals(fitted)
    line = _metric(args, frame, table)
    print(describe(args.table, fitted, found, line))
    if fitted.form.response != "loss":
        print(f"Column {args.loss!r} was read as {fitted.form.response}, not as losses.")
    if {"n", "d"} <= set(table.columns) and not args.fix:
        print(evidence(table, holdout.compare(laws, table, delta)))
    if args.json:
        _store(args, fitted, found, line)
    if args.figure:
        _draw(args.figure, fitted)
    return 0


def _laws(args: argparse.Namespace) -> list[Form]:
    """The forms that are named, all of one quantity; `args.loss` is set where it has a default."""
    from repro.errors import UserError
    from repro.laws.forms import form

    laws = [form(name.strip()) for name in args.form.split(",")]
    first = laws[0]
    for law in laws:
        if law.response != first.response:
            raise UserError(
                f"the {first.title} is a law of {first.response}, the {law.title} of {law.response}",
                remedy="fit them one after the other",
            )
    if args.loss is None and first.response != "loss":
        raise UserError(
            f"the {first.title} is fitted to {first.response}, not to losses",
            remedy="name their column: --loss COL",
        )
    args.loss = args.loss or "loss"
    return laws


def _check_steps(args: argparse.Namespace, table: Table) -> None:
    from repro.errors import UserError
    from repro.laws.table import row_names

    small = (table.loss < 1).nonzero()[0]
    if len(small):
        raise UserError(
            f"column {args.loss!r}: {row_names(small)} below 1: these are not steps",
            where=str(args.table),
            remedy="name the column of steps to the minimum: --loss COL",
        )


def _check_task(
    args: argparse.Namespace, law: Form, table: Table, fixed: dict[str, float | None]
) -> None:
    """Something must be left to fit, and something to explain."""
    from repro.errors import UserError
    from repro.laws.problem import known_values

    if len(known_values(law, fixed)) == len(law.names):
        raise UserError(
            f"every parameter of the {law.title} is fixed: nothing is left to fit",
            remedy="fix fewer",
        )
    if len(table) > 1 and table.loss.min() == table.loss.max():
        raise UserError(
            f"column {args.loss!r}: every row is {table.loss[0]:g}: there is nothing to explain",
            where=str(args.table),
            remedy="name another column: --loss COL",
        )


def _check_draws(draws: int) -> None:
    from repro.errors import UserError

    if draws and not FEWEST_DRAWS <= draws <= MOST_DRAWS:
        raise UserError(
            f"--bootstrap {draws} is out of range",
            remedy=f"give {FEWEST_DRAWS} to {MOST_DRAWS:,} resamples (1000 is usual), or 0 for none",
        )


def _rows(args: argparse.Namespace, table: Table) -> tuple[NDArray[np.intp], str]:
    """The rows that are fitted, and the rule by which others were dropped."""
    import numpy as np

    from repro.errors import UserError

    dropped = args.drop_highest
    if not 0 <= dropped < len(table):
        raise UserError(
            f"--drop-highest {dropped} of {len(table)} rows",
            remedy="name fewer" if dropped > 0 else "give 0 or more",
        )
    kept = np.sort(np.argsort(-table.loss, kind="stable")[dropped:])
    return kept, f"the {dropped} highest losses" if dropped else ""


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
    from repro.errors import UserError

    if args.huber is None:
        return float("inf")
    if not args.huber > 0:
        raise UserError(f"--huber {args.huber:g} is not above 0", remedy="1e-3 is Chinchilla's")
    return float(args.huber)


def _fixed(options: list[str]) -> dict[str, float | None]:
    from repro.errors import UserError

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
    from repro.errors import UserError

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

    from repro.errors import UserError, nearest
    from repro.laws.metric import metric_line

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
    with _writing(args.json):
        args.json.parent.mkdir(parents=True, exist_ok=True)
        args.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(f"\nthe {fitted.form.title} is stored in {args.json}: repro plan {args.json} --help")


def _check_outputs(args: argparse.Namespace) -> None:
    """Before any work: nothing that is written may hit the table, or another thing that is written."""
    from repro.errors import UserError

    outputs = [args.json] if args.json else []
    if args.figure:
        if args.figure.suffix not in (".svg", ".png"):
            raise UserError(
                f"figures are .svg or .png, not {args.figure.suffix!r}", where=str(args.figure)
            )
        drawn = [args.figure.with_suffix(suffix) for suffix in (".svg", ".png", ".json")]
        if args.json and args.json.resolve() in [path.resolve() for path in drawn]:
            what = "the numbers of " if args.json.suffix == ".json" else ""
            raise UserError(
                f"{args.json} is also where {what}{args.figure} go{'' if what else 'es'}",
                remedy="give the figure another name",
            )
        outputs += drawn
    for path in outputs:
        if path.is_dir():
            raise UserError("this is a directory", where=str(path), remedy="name a file in it")
        above = next(folder for folder in path.absolute().parents if folder.exists())
        if not (above.is_dir() and os.access(above, os.W_OK)):
            raise UserError(
                f"this cannot be written: {above} is not a folder that you may write to",
                where=str(path),
                remedy="name a file in a folder of yours",
            )
        if args.table.exists() and path.exists() and path.samefile(args.table):
            raise UserError(
                f"{path} is the table itself and would be overwritten", remedy="give another name"
            )


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """A file that cannot be written is a fault of the user's."""
    from repro.errors import UserError

    try:
        yield
    except OSError as error:
        raise UserError(
            f"this cannot be written: {error.strerror or error}",
            where=str(path),
            remedy="name a file in a folder of yours",
        ) from None


def _draw(path: Path, fitted: Fit) -> None:
    from repro.app.fit_figure import lines
    from repro.show.style import save

    drawing = lines(fitted)
    with _writing(path):
        save(drawing["figure"], path.parent, path.stem, alt=drawing["alt"], data=drawing["data"])
    print(f"drawn: {path.with_suffix('.svg')}, .png and .json beside it")
