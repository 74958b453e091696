"""Which law?  Information criteria, held-out models and sizes, the corner, the interaction test.

Cells of one model share that model's idiosyncrasies, so AICc, which counts every cell as a fact of
its own, is shown but does not decide: leaving out a whole model, a whole size or the corner does.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import t as student

from repro.errors import UserError
from repro.laws.effects import dummies
from repro.laws.fit import fit, predictions
from repro.laws.forms import Form, form
from repro.laws.goodness import aicc, bic, r2_level, r2_log
from repro.laws.shapes import Array
from repro.laws.table import Table

_HELD_SHARE = (
    0.4  # of the models and of the sizes, rounded down: 2 of 5 and 2 of 7, as the MAEL paper
)


@dataclass(frozen=True)
class HoldOut:
    """Predictions of rows that the fit did not see.  Errors are |predicted - actual| / actual."""

    rule: str
    group: Array  # value of the variable left out, per predicted row
    actual: Array
    predicted: Array

    @property
    def errors(self) -> Array:
        """Relative error of each predicted row."""
        return np.abs(self.predicted / self.actual - 1.0)

    @property
    def mean(self) -> float:
        """Mean relative error."""
        return float(self.errors.mean())

    @property
    def worst(self) -> float:
        """Largest relative error."""
        return float(self.errors.max())


@dataclass(frozen=True)
class Interaction:
    """Slope of log loss on (log N)(log D) beyond free effects of each N and each D."""

    coefficient: float
    interval: tuple[float, float]
    p_value: float
    df: int

    @property
    def parallel(self) -> bool:
        """True where zero lies inside the 95 % interval: no sign against parallel lines."""
        return self.interval[0] <= 0.0 <= self.interval[1]


def leave_one_out(law: Form | str, table: Table, by: str = "n", delta: float = np.inf) -> HoldOut:
    """Leave out every value of `by` in turn (a whole model, a whole size) and predict its rows.

    Rows that are only bounds take part in the fits and are not scored.
    """
    law = form(law) if isinstance(law, str) else law
    column = _column(table, by)
    parts = [
        (column != value, (column == value) & (table.bound == 0)) for value in np.unique(column)
    ]
    return _predict(law, table, parts, column, f"leave one {by} out", delta)


def corner(
    law: Form | str,
    table: Table,
    n_max: float | None = None,
    d_max: float | None = None,
    delta: float = np.inf,
) -> HoldOut:
    """Fit where N <= n_max and D <= d_max, predict where both are larger.

    By default the two largest of five models and of seven sizes are held out, as in the MAEL paper
    (40 % of each, rounded down, at least one).
    """
    law = form(law) if isinstance(law, str) else law
    n, d = _column(table, "n"), _column(table, "d")
    n_max = _limit(n) if n_max is None else n_max
    d_max = _limit(d) if d_max is None else d_max
    seen = (n <= n_max) & (d <= d_max)
    held = (n > n_max) & (d > d_max) & (table.bound == 0)
    return _predict(
        law,
        table,
        [(seen, held)],
        n,
        f"fit N <= {n_max:g}, D <= {d_max:g}; predict beyond both",
        delta,
    )


def learning_curve(
    law: Form | str,
    table: Table,
    counts: Iterable[int] | None = None,
    cost: Array | None = None,
    delta: float = np.inf,
) -> pd.DataFrame:
    """Error on the dearest corner against the number of cheapest cells fitted.

    cost: of each row (default N x D, fine-tuning FLOPs up to a factor).  Columns: runs, share (of
    the total cost), mean, worst; rows whose cells do not determine the law are left out.
    """
    law = form(law) if isinstance(law, str) else law
    n, d = _column(table, "n"), _column(table, "d")
    held = (n > _limit(n)) & (d > _limit(d))
    price = n * d if cost is None else cost
    order = np.flatnonzero(~held)[np.argsort(price[~held], kind="stable")]
    rows = []
    for count in counts if counts is not None else range(law.n_free + 2, len(order) + 1):
        seen = np.zeros(len(table), dtype=bool)
        seen[order[:count]] = True
        try:
            out = _predict(
                law, table, [(seen, held & (table.bound == 0))], n, "cheapest cells", delta
            )
        except UserError:
            continue
        rows.append((count, float(price[seen].sum() / price.sum()), out.mean, out.worst))
    return pd.DataFrame(rows, columns=["runs", "share", "mean", "worst"])


def compare(laws: Iterable[Form | str], table: Table, delta: float = np.inf) -> pd.DataFrame:
    """One row per form, best held-out error first.

    Columns: form, k, aicc, d_aicc, bic, r2_log, r2_level, loo_n, loo_n_worst, loo_d, loo_d_worst,
    corner, note.  An empty cell says that the figure does not exist; `note` says why.
    `.attrs["verdict"]` says in words which forms cannot be told apart.
    """
    rows = [_compare_one(form(law) if isinstance(law, str) else law, table, delta) for law in laws]
    frame = pd.DataFrame(rows)
    frame.insert(3, "d_aicc", frame["aicc"] - frame["aicc"].min())
    errors = frame[["loo_n", "loo_d", "corner"]]
    # Over what every law that has errors has: one that fails on the hardest is not to gain by it.
    whole = errors.columns[errors[errors.notna().any(axis=1)].notna().all()]
    held = errors[whole if len(whole) else errors.columns].mean(axis=1)
    frame = frame.loc[held.sort_values(kind="stable").index].reset_index(drop=True)
    frame.attrs["verdict"] = _verdict(frame)
    return frame


def interaction_test(table: Table, level: float = 0.95) -> Interaction:
    """Are the lines parallel in log-log?  One slope on centred log N x log D, with free N and D
    effects.

    Raises `UserError` where the grid has fewer than two models or sizes, or no residual freedom.
    """
    means = table.take(table.bound == 0).means()
    n, d = np.log(_column(means, "n")), np.log(_column(means, "d"))
    design = np.column_stack([dummies(n), dummies(d)[:, 1:], (n - n.mean()) * (d - d.mean())])
    rank = np.linalg.matrix_rank(design)
    df = len(n) - rank
    if rank < design.shape[1] or df < 1:
        raise UserError(
            f"the interaction cannot be tested on {len(n)} cells",
            remedy="a full grid of 2 x 3 or more is needed",
        )
    y = np.log(means.loss)
    solution, *_ = np.linalg.lstsq(design, y, rcond=None)
    variance = float(np.sum((y - design @ solution) ** 2)) / df
    error = float(np.sqrt(variance * np.linalg.inv(design.T @ design)[-1, -1]))
    coefficient = float(solution[-1])
    half = float(student.ppf((1 + level) / 2, df)) * error
    p_value = float(2 * student.sf(abs(coefficient) / max(error, 1e-300), df))
    return Interaction(coefficient, (coefficient - half, coefficient + half), p_value, df)


def _compare_one(law: Form, table: Table, delta: float) -> dict[str, object]:
    fitted = fit(law, table, delta=delta)
    row: dict[str, object] = {
        "form": law.name,
        "k": fitted.n_free,
        "aicc": None,
        "bic": bic(fitted),
    }
    row |= {"r2_log": r2_log(fitted), "r2_level": r2_level(fitted)}
    notes = list(fitted.warnings)
    try:
        row["aicc"] = aicc(fitted)
    except UserError as error:
        notes.append(error.what)
    for name in ("loo_n", "loo_n_worst", "loo_d", "loo_d_worst", "corner"):
        row[name] = None
    for by in ("n", "d"):
        try:
            out = leave_one_out(law, table, by, delta)
            row[f"loo_{by}"], row[f"loo_{by}_worst"] = out.mean, out.worst
        except UserError as error:
            notes.append(f"leave one {by} out: {error.what}")
    try:
        row["corner"] = corner(law, table, delta=delta).mean
    except UserError as error:
        notes.append(f"corner: {error.what}")
    row["note"] = "; ".join(notes)
    return {key: float("nan") if value is None else value for key, value in row.items()}


def _verdict(frame: pd.DataFrame) -> str:
    best = frame.iloc[0]
    rivals = []
    for _, row in frame.iloc[1:].iterrows():
        close = [
            row[c] < 1.25 * best[c] for c in ("loo_n", "loo_d", "corner") if np.isfinite(row[c])
        ]
        if (close and all(close)) or row["aicc"] < best["aicc"] + 4:
            rivals.append(str(row["form"]))
    if not rivals:
        return (
            f"{best['form']} predicts what it has not seen better than the others, and AICc agrees"
        )
    return (
        f"{best['form']} has the smallest held-out errors, but {', '.join(rivals)} cannot be told "
        "apart from it on this grid (held-out errors within 25 %, or AICc within 4)"
    )


def _predict(
    law: Form,
    table: Table,
    parts: list[tuple[NDArray[np.bool_], NDArray[np.bool_]]],
    column: Array,
    rule: str,
    delta: float,
) -> HoldOut:
    parts = [(seen, held) for seen, held in parts if held.any()]
    if not parts:
        raise UserError(
            f"{rule}: no row is left to predict",
            remedy="a grid of two models and two sizes or more",
        )
    every = predictions(law, table, np.array([seen for seen, _ in parts]), delta)
    predicted = [said[held] for said, (_, held) in zip(every, parts, strict=True)]
    rows = np.concatenate([np.flatnonzero(held) for _, held in parts])
    return HoldOut(rule, column[rows], table.loss[rows], np.concatenate(predicted))


def _limit(column: Array) -> float:
    values = np.unique(column)
    held = max(1, int(_HELD_SHARE * len(values)))
    return float(values[max(0, len(values) - held - 1)])


def _column(table: Table, name: str) -> Array:
    if name not in table.columns:
        raise UserError(
            f"the table has no column {name!r}", remedy=f"it has {', '.join(table.columns)}"
        )
    return table.columns[name]
