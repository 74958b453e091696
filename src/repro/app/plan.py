"""`repro plan`: what a budget buys, what a target needs, from a stored fit."""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from repro.app.fit import FEWEST_DRAWS, MOST_DRAWS

if TYPE_CHECKING:
    from repro.laws.costs import Costs, Training
    from repro.laws.fit import Fit
    from repro.laws.planning import Cell, Need, Planner
    from repro.laws.shapes import Array

DECAY_TIMES_PAIRS = 2 * 320_000  # the MAEL paper's optimum: weight decay 2 at 320,000 pairs, one lr


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "plan",
        help="plan models and labels from a stored fit",
        description="Answer from FIT.json (repro fit --json): where to spend, how many labels.",
    )
    add = parser.add_argument
    add("fit", type=Path, help="a fit stored by `repro fit --json`")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--flop", type=float, help="budget in fine-tuning FLOP")
    what.add_argument("--usd", type=float, help="budget in dollars")
    what.add_argument("--target-loss", type=float, help="a loss to reach (nats)")
    what.add_argument("--target-metric", type=float, help="a metric to reach (needs fit --metric)")
    what.add_argument("--at", type=float, nargs=2, metavar=("N", "D"), help="the loss of (N, D)")
    add(
        "--models",
        type=numbers,
        default=(),
        help="model sizes that can be had (default: the fit's)",
    )
    add("--max-pairs", type=float, default=1e15, help="labels that exist")
    add("--steps", type=Path, metavar="FIT", help="a stored fit of the steps law (form steps)")
    add("--epochs", type=float, help="passes over the pairs, where there is no steps law")
    add("--batch", type=int, default=256, help="pairs a step (default: 256)")
    add("--query-tokens", type=int, default=30)
    add("--passage-tokens", type=int, default=60)
    add("--passages-per-query", type=int, default=2, help="encoded with a query in training (2)")
    add("--pair-usd", type=float, default=0.6, help="price of a labelled pair (.6)")
    add("--gpu-usd-per-hour", type=float, default=3.93, help="price of an hour (3.93, A100)")
    add("--gpu-peak-flop", type=float, default=312e12, help="its peak FLOP/s (312e12)")
    add("--utilisation", type=float, default=0.25, help="share of the peak reached (.25)")
    add("--queries-per-day", type=float, default=0.0, help="count serving")
    add("--days", type=float, default=365.0, help="of serving (365)")
    add("--corpus", type=float, default=0.0, help="passages to encode")
    add("--corpus-tokens", type=int, default=60, help="tokens of a passage of it (60)")
    add("--encodings", type=float, default=1.0, help="how often the corpus is encoded (1)")
    add("--draws", type=int, default=400, help="draws behind the intervals (400)")
    add("--seed", type=int, default=0)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the plan; raises `UserError` where the fit or the options do not allow one."""
    from repro.laws.planning import planner
    from repro.seeds import stream

    check_numbers(args)
    fitted, record = load(args.fit)
    rng = stream(args.seed, "plan")
    plan = planner(fitted, rng, models=args.models, max_pairs=args.max_pairs, draws=args.draws)
    costs = _costs(args)
    p = ", ".join(f"{name} {value:.4g}" for name, value in fitted.parameters.items())
    head = (
        f"From the {fitted.form.title} ({p}) on {len(fitted.table)} runs; "
        f"95 % intervals: {plan.method}.\n"
    )
    if not args.models and len(plan.models) < (seen := len(set(fitted.table.columns["n"]))):
        head += f"Of its {seen} model sizes {len(plan.models)} are shown; --models names others.\n"
    if args.at:
        text = _at(plan, *args.at)
    elif args.target_loss is not None:
        text = _target(plan, args.target_loss, costs)
    elif args.target_metric is not None:
        text = _metric(args.fit, plan, args.target_metric, record.get("metric"), costs)
    else:
        text = _budget(args, plan, costs)
    assumed = "" if args.at else _assumed(args)
    print(head, text, assumed + _advice(), sep="\n")
    return 0


def _assumed(args: argparse.Namespace) -> str:
    """The prices and lengths that the figures rest on, given or not."""
    return (
        f"\nAssumed: {args.pair_usd:g} USD a pair; {args.gpu_usd_per_hour:g} USD an hour of a device at "
        f"{args.utilisation:.0%} of {args.gpu_peak_flop:.3g} FLOP/s; D in pairs of a query of "
        f"{args.query_tokens} tokens and {args.passages_per_query} passages of {args.passage_tokens}.\n"
    )


def load(path: Path) -> tuple[Fit, dict[str, Any]]:
    """The fit stored at `path`, and everything else that stands there; raises `UserError`."""
    from repro.errors import UserError
    from repro.laws.fit import from_json

    if not path.is_file():
        raise UserError(
            "there is no such file", where=str(path), remedy="repro fit TABLE --json FIT.json"
        )
    try:
        text = path.read_text(encoding="utf-8")
        return from_json(text), json.loads(text)
    except (OSError, UnicodeDecodeError):
        raise UserError(
            "this cannot be read as a stored fit",
            where=str(path),
            remedy="write one: repro fit TABLE --json FIT.json",
        ) from None
    except UserError as error:
        raise UserError(error.what, where=str(path), remedy=error.remedy) from None


def training(args: argparse.Namespace) -> Training:
    """What a run costs, from the options that `plan` and `design` share."""
    from repro.errors import UserError
    from repro.laws.costs import Steps, Training

    steps: Steps | None = None
    if args.steps:
        law, _ = load(args.steps)
        if law.form.name != "steps":
            raise UserError(f"{args.steps} holds the {law.form.title}, not the steps law")
        steps = law.predict
    elif args.epochs:

        def steps(n: Array, d: Array) -> Array:
            return args.epochs * d / args.batch + 0 * n

    return Training(
        args.batch, args.query_tokens, args.passage_tokens, args.passages_per_query, steps=steps
    )


def check_numbers(args: argparse.Namespace) -> None:
    """Every number of the options of `plan` and `design` in its range; raises `UserError`."""
    from repro.errors import UserError

    from_zero = ("seed", "queries_per_day", "corpus", "encodings", "pair_usd", "target_metric")
    for name, value in vars(args).items():
        values = value if isinstance(value, list | tuple) else (value,)
        for number in values:
            if not isinstance(number, int | float) or isinstance(number, bool):
                continue
            low, high, remedy = 0.0, math.inf, "give a finite value above 0"
            if name in from_zero:
                remedy = "give 0 or more, and finite"
            elif name == "utilisation":
                high, remedy = 1.0, "give a share, above 0 and at most 1"
            elif name == "draws":
                low, high = FEWEST_DRAWS, MOST_DRAWS
                remedy = f"give {low} to {high:,}"
            closed = name in from_zero or name == "draws"
            above = number >= low if closed else number > low
            if not (above and number <= high and math.isfinite(number)):
                flag = "--" + name.replace("_", "-")
                raise UserError(f"{flag} {number:g} is out of range", remedy=remedy)


def numbers(text: str) -> tuple[float, ...]:
    """Numbers separated by commas, for argparse."""
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not numbers separated by commas, such as 1e6,3e6"
        ) from None


def _budget(args: argparse.Namespace, plan: Planner, costs: Costs) -> str:
    from repro.errors import UserError

    unit = "USD" if args.usd is not None else "FLOP"
    budget = args.usd if args.usd is not None else args.flop
    if unit == "FLOP" and costs.training.steps is None:
        raise UserError(
            "a plan in FLOP must know how many steps a run takes",
            remedy="give --steps FIT.json (repro fit --form steps ...) or --epochs",
        )
    cost = costs.usd if unit == "USD" else costs.training.flop
    lines = [f"With {budget:g} {unit}, model by model:", _header("loss")]
    lines += [_row(c.n, c.d, _loss(c), c.beyond) for c in plan.budget(cost, budget)]
    sizes = (min(plan.models), max(plan.models))
    if sizes[0] < sizes[1]:
        best = plan.best(cost, budget, sizes)
        cell = best.cell
        lines += [
            "",
            f"Best between these sizes: {cell.n:.4g} parameters "
            f"({best.n_ends[0]:.3g} to {best.n_ends[1]:.3g}) with {cell.d:.4g} pairs "
            f"({best.d_ends[0]:.3g} to {best.d_ends[1]:.3g}), loss {_loss(cell)}.{_far(cell.beyond)}",
        ]
        if best.limits:
            lines.append(f"What holds it: {', '.join(best.limits)}.")
        if unit == "USD":
            parts = costs.parts(cell.n, cell.d)
            said = ", ".join(f"{name} {float(v):,.4g}" for name, v in parts.items() if v > 0)
            lines.append(f"Where the dollars go: {said}.")
    return "\n".join(lines)


def _target(plan: Planner, loss: float, costs: Costs) -> str:
    from repro.laws.planning import MOST_PAIRS

    lines = [f"To reach a loss of {loss:g} nats:", _header("pairs needed (cost in USD)")]
    for need in plan.target(loss):
        if not need.reachable:
            text = f"more than {MOST_PAIRS:g} pairs"
            if plan.fitted.predict(n=need.n, d=1e300) > loss:
                text = "never: the law stays above, with any number of pairs"
            if need.low < float("inf"):
                text += f" (or with {need.low:.3g} pairs, at the lower end of the interval)"
            lines.append(_row(need.n, None, text, need.beyond))
            continue
        missing = "; more than exist" if need.d > plan.max_pairs else ""
        usd = float(costs.usd(need.n, need.d))
        lines.append(_row(need.n, need.d, f"{_pairs(need)}, {usd:,.4g} USD{missing}", need.beyond))
    return "\n".join(lines)


def _metric(
    path: Path, plan: Planner, metric: float, record: dict[str, Any] | None, costs: Costs
) -> str:
    from repro.errors import UserError
    from repro.laws.metric import MetricLine

    if not record:
        raise UserError("this fit knows no metric", remedy="fit again with --metric COL")
    try:
        line = MetricLine(**record)
        if not all(math.isfinite(v) for v in record.values() if not isinstance(v, str)):
            raise ValueError("it holds values that are not numbers (NaN, infinity)")
    except (TypeError, ValueError) as error:
        raise UserError(
            f"the metric of this fit cannot be used: {error}",
            where=str(path),
            remedy="fit again with --metric COL",
        ) from None
    low, loss, high = line.loss(metric)
    if loss <= 0:
        raise UserError(
            f"{line.name} = {metric:g} would need a loss below 0 on the line of this table",
            remedy="a lower target: the line does not reach there",
        )
    said = f"{line.name} of {metric:g} goes with a loss of {loss:.4f} ({low:.4f} to {high:.4f})."
    if not line.low <= loss <= line.high:
        said += f" Outside the runs seen ({line.low:.3g} to {line.high:.3g}): a guess."
    return f"{said}\n{_target(plan, loss, costs)}"


def _at(plan: Planner, n: float, d: float) -> str:
    import numpy as np

    cell = plan.at(np.array([n]), np.array([d]))[0]
    lines = [
        f"{n:.4g} parameters with {d:,.0f} pairs: loss {_loss(cell)}.{_far(cell.beyond)}",
        "",
        "Other models at the same loss:",
        _header("pairs needed"),
    ]
    for need in plan.equal(n, d):
        pairs, text = (need.d, _pairs(need)) if need.reachable else (None, "never")
        lines.append(_row(need.n, pairs, text, need.beyond))
    return "\n".join(lines)


def _loss(cell: Cell) -> str:
    return f"{cell.loss:.4f} ({cell.low:.4f} to {cell.high:.4f})"


def _pairs(need: Need) -> str:
    high = "never" if need.high == float("inf") else f"{need.high:.3g}"
    return f"({need.low:.3g} to {high})"


def _advice() -> str:
    return (
        "\nStop a run when its validation loss lies three standard errors above its minimum and half as "
        "many steps past it; keep the minimum.\nWeight decay (the MAEL paper's rule, not measured on your "
        f"data): about {DECAY_TIMES_PAIRS:,} / pairs at the paper's rate for Small, and in inverse "
        "proportion to the learning rate."
    )


def _costs(args: argparse.Namespace) -> Costs:
    from repro.laws.costs import Costs, Hardware, Serving

    serving = Serving(
        args.corpus,
        args.corpus_tokens,
        args.encodings,
        args.queries_per_day,
        args.query_tokens,
        args.days,
    )
    hardware = Hardware(args.gpu_usd_per_hour, args.gpu_peak_flop, args.utilisation)
    return Costs(args.pair_usd, hardware, training(args), serving)


def _header(what: str) -> str:
    return f"  {'parameters':>12} {'pairs':>14}  {what}"


def _row(n: float, d: float | None, text: str, beyond: float) -> str:
    pairs = "-" if d is None else f"{d:,.0f}"
    return f"  {n:>12,.4g} {pairs:>14}  {text}{_far(beyond)}"


def _far(beyond: float) -> str:
    return f"  [extrapolates by {beyond:.2g}x]" if beyond > 1.0001 else ""
