"""Fit a law to a table: many starts, the best polished to machine precision, all on record."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from repro.errors import UserError
from repro.laws import forms
from repro.laws.forms import Form
from repro.laws.problem import Problem, check, known_values
from repro.laws.result import Fit, Record
from repro.laws.shapes import Array, to_internal, to_natural
from repro.laws.solve import Solution
from repro.laws.table import Table

SCREENED, POLISHED = 64, 16  # starts drawn by default; how many of them are polished
_SAME = 1e-7  # two costs this close (relative) are one optimum


def fit(
    form: Form | str,
    table: Table,
    *,
    delta: float = np.inf,
    fixed: Mapping[str, float | None] | None = None,
    starts: int | Mapping[str, ArrayLike] = SCREENED,
    screen: bool = True,
    dropped: str = "",
) -> Fit:
    """Fit `form` to `table` by least squares (or summed Huber of `delta`) on log loss.

    fixed: parameters that keep a value (None frees one that the form fixes).  starts: how many, or
    the starting values of each parameter as arrays; with screen=False every one of them is
    polished. Raises `UserError` where the table cannot determine the law.
    """
    law = forms.form(form) if isinstance(form, str) else form
    known = known_values(law, fixed or {})
    check(law, table, len(law.names) - len(known))
    problem = Problem(law, table, known, delta)
    theta = problem.starts(starts) if isinstance(starts, int) else problem.given(starts)
    screened = theta.shape[1]
    found = problem.optimise(theta, POLISHED if screen else None)
    best = found.best()
    record = Record(screened, found.theta.shape[1], *_optima(problem, found))
    return Fit(
        law,
        table,
        found.theta[:, best],
        problem.centre,
        known,
        delta,
        float(found.cost[best]),
        record,
        dropped,
    )


def predictions(
    form: Form | str, table: Table, seen: NDArray[np.bool_], delta: float = np.inf
) -> Array:
    """What the law says of all rows of `table`, (K, M), fitted to each choice of them in `seen` (K, M).

    All choices are fitted at once.  Raises `UserError` where one cannot determine the law.
    """
    law = forms.form(form) if isinstance(form, str) else form
    known = known_values(law, {})
    for rows in seen:
        check(law, table.take(rows), len(law.names) - len(known))
    problem = Problem(law, table, known, delta)
    return problem.predict(problem.optimise_each(seen * table.weight, SCREENED, POLISHED))


def local_optimum(
    form: Form | str,
    table: Table,
    parameters: Mapping[str, float],
    *,
    delta: float = np.inf,
    fixed: Mapping[str, float | None] | None = None,
) -> Fit:
    """The optimum below one point, reached downhill with nothing re-solved: asks of published
    constants whether they are an optimum, and whether `fit` finds a better one.
    """
    law = forms.form(form) if isinstance(form, str) else form
    known = known_values(law, fixed or {})
    check(law, table, len(law.names) - len(known))
    problem = Problem(law, table, known, delta)
    natural = np.array([[parameters[name]] for name in law.names])
    found = problem.continued(to_internal(law.shape, natural, problem.centre), problem.target)
    record = Record(1, 1, *_optima(problem, found))
    return Fit(
        law, table, found.theta[:, 0], problem.centre, known, delta, float(found.cost[0]), record
    )


def from_json(text: str) -> Fit:
    """The fit that `Fit.to_json` wrote; raises `UserError` if `text` is something else."""
    try:
        data = json.loads(text)
        points = dict(data["table"])
        table = Table(
            np.array(points.pop("loss")),
            points.pop("n", None),
            points.pop("d", None),
            points.pop("weights"),
            np.array(points.pop("bound"), np.int8),
            extra={k: np.array(v) for k, v in points.items()},
        )
        record = dict(data["record"])
        record["optima"] = tuple(tuple(optimum) for optimum in record["optima"])
        law = forms.form(data["form"])
        _check_stored(law, data)
        return Fit(
            law,
            table,
            np.array(data["internal"]["theta"]),
            data["internal"]["centre"],
            data["fixed"],
            np.inf if data["delta"] is None else data["delta"],
            data["cost"],
            Record(**record),
            data["dropped"],
        )
    except UserError:
        raise
    except (
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        OverflowError,
        RecursionError,
    ) as error:
        why = str(error) if isinstance(error, ValueError) else "it is built otherwise"
        why = f"it has no {error}" if isinstance(error, KeyError) else why
        raise UserError(
            f"this is not a fit: {why}",
            remedy="write one with `repro fit ... --json FIT.json`",
        ) from None


def _check_stored(law: Form, data: Mapping[str, Any]) -> None:
    """Raises where a stored fit lacks numbers, or holds NaN or infinity where a number must be."""
    theta, centre, fixed = data["internal"]["theta"], data["internal"]["centre"], data["fixed"]
    delta = 1.0 if data["delta"] is None else data["delta"]
    if len(theta) != len(law.names) or not set(fixed) <= set(law.names):
        raise ValueError(f"its parameters are not those of the {law.title}")
    centred = [centre[name] for name in (*law.variables, "loss")]
    numbers = np.array([*theta, *centred, *fixed.values(), delta, data["cost"]], dtype=float)
    if not np.isfinite(numbers).all() or delta <= 0:
        raise ValueError("it holds values that are not numbers (NaN, infinity)")


def _optima(
    problem: Problem, found: Solution
) -> tuple[int, float, tuple[tuple[float, int, dict[str, float]], ...]]:
    """How many starts reached the best cost, its gradient, and the optima, best first."""
    order = np.argsort(found.cost, kind="stable")
    best = found.cost[order[0]]
    optima: list[tuple[float, int, dict[str, float]]] = []
    for i in order:
        cost = float(found.cost[i])
        if optima and cost - optima[-1][0] <= _SAME * abs(best) + 1e-24:
            optima[-1] = (optima[-1][0], optima[-1][1] + 1, optima[-1][2])
        else:
            natural = to_natural(problem.form.shape, found.theta[:, i : i + 1], problem.centre)[
                :, 0
            ]
            optima.append((cost, 1, dict(zip(problem.form.names, natural.tolist(), strict=True))))
    return optima[0][1], float(found.gradient[order[0]]), tuple(optima[:5])
