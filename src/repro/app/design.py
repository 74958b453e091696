"""`repro design`: which runs would narrow an answer most, for how much compute?"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from repro.app.plan import numbers


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "design",
        help="name the next runs that would narrow an answer most",
        description="From FIT.json (repro fit --json): the runs worth most under a cap on FLOP.",
    )
    add = parser.add_argument
    add("fit", type=Path, help="a fit stored by `repro fit --json`")
    add("--answer", default="alpha", help="a parameter, or `loss` with --at (default: alpha)")
    add("--at", type=float, nargs=2, metavar=("N", "D"), help="where the loss is wanted")
    add("--flop-cap", type=float, required=True, help="compute of all chosen runs together")
    add("--models", type=numbers, default=(), help="candidate sizes (default: the fit's, and 2x)")
    add("--sizes", type=numbers, default=(), help="candidate pairs (default: the fit's, and 2x)")
    add("--runs", type=int, default=3, help="how many to name (3)")
    add("--steps", type=Path, metavar="FIT", help="a stored fit of the steps law")
    add("--epochs", type=float, default=10.0, help="passes over the pairs without one (10)")
    add("--batch", type=int, default=256)
    add("--query-tokens", type=int, default=30)
    add("--passage-tokens", type=int, default=60)
    add("--passages-per-query", type=int, default=2)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the runs; raises `UserError` where none is affordable or the answer is not the law's."""
    import numpy as np

    from repro.app.plan import check_numbers, load, training
    from repro.errors import UserError
    from repro.laws.design import Answer, next_runs

    check_numbers(args)
    fitted, _ = load(args.fit)
    if set(fitted.form.variables) != {"n", "d"}:
        raise UserError(
            f"the {fitted.form.title} has no N x D grid to extend", remedy="fit product"
        )
    if (args.answer == "loss") != bool(args.at):
        raise UserError("--answer loss and --at N D go together", remedy="give both, or neither")
    n, d = np.unique(fitted.table.columns["n"]), np.unique(fitted.table.columns["d"])
    models = args.models or (*n.tolist(), 2 * float(n.max()))
    sizes = args.sizes or (*d[d > 0].tolist(), 2 * float(d.max()))
    answer = Answer(args.answer, *(args.at or ()))
    cost = training(args).flop
    frame = next_runs(fitted, answer, models, sizes, cost, args.flop_cap, args.runs)
    what = f"log loss at ({args.at[0]:g}, {args.at[1]:g})" if args.at else args.answer
    if not args.at and fitted.form.parameter(args.answer).kind in ("constant", "radius"):
        what = f"log {args.answer}"
    print(f"Today {what} is known to +-{frame['half_width'][0]:.3g} (95 %).")
    print(f"  {'parameters':>12} {'pairs':>12} {'FLOP':>10}  then known to")
    for row in frame.iloc[1:].itertuples():
        print(f"  {row.n:>12,.4g} {row.d:>12,.0f} {row.flop:>10.3g}  +-{row.half_width:.3g}")
    print(
        f"In all {frame['flop'].sum():.3g} of {args.flop_cap:.3g} FLOP. Widths count what models and "
        "sizes differ by on their own, and take the law to be true."
    )
    return 0
