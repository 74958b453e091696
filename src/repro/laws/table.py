"""A table of losses: checked columns, weights, bounds, replicates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from repro.errors import UserError, nearest
from repro.laws.shapes import Array

COLUMNS = {
    "n": "model size",
    "d": "labelled pairs",
    "u": "unique data",
    "p": "pre-training steps",
    "f": "fine-tuning examples",
    "s": "training steps",
    "c": "training FLOP",
    "m": "data per parameter",
}
MAY_BE_ZERO = ("d", "f")  # no labels at all: a law with a head start is defined there
STATES = ("turned", "plateau", "exact", "censored", "diverged")  # the first three: a loss as it is


@dataclass(frozen=True)
class Table:
    """Losses (nats; or steps, for the steps law) with the variables of a law, all of length M.

    n: parameters; d: judged pairs; `extra`: further variables by name.  weights: inverse variances
    up to a constant factor.  bound: True (or +1) where the loss is only an upper bound on the
    truth, as MAEL is for a run that was still falling; -1 for a lower bound.  group: any label
    (seed, run) that is only carried along.  Raises `UserError` that names the rows at fault.
    """

    loss: Array
    n: Array | None = None
    d: Array | None = None
    weights: Array | None = None
    bound: NDArray[np.int8] = field(default_factory=lambda: np.zeros(0, np.int8))
    group: NDArray[np.object_] | None = None
    extra: Mapping[str, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        loss = _positive("loss", self.loss)
        size = len(loss)
        if size == 0:
            raise UserError("the table has no rows", remedy="give at least one (N, D, loss)")
        object.__setattr__(self, "loss", loss)
        columns = {"n": self.n, "d": self.d, **self.extra}
        checked = {
            k: _positive(k, v, zero=k in MAY_BE_ZERO) for k, v in columns.items() if v is not None
        }
        if self.weights is not None:
            checked["weights"] = _positive("weights", self.weights, zero=True)
        for name, values in checked.items():
            if len(values) != size:
                raise UserError(f"column {name!r} has {len(values)} rows, loss has {size}")
        for name in ("n", "d", "weights"):
            object.__setattr__(self, name, checked.get(name))
        object.__setattr__(self, "extra", {k: checked[k] for k in self.extra})
        bound = np.asarray(self.bound).astype(np.int8)
        if not len(bound):
            bound = np.zeros(size, np.int8)
        if len(bound) != size:
            raise UserError(f"column 'bound' has {len(bound)} rows, loss has {size}")
        object.__setattr__(self, "bound", bound)
        if self.group is not None:
            object.__setattr__(self, "group", np.asarray(self.group, dtype=object))

    def __len__(self) -> int:
        return len(self.loss)

    @property
    def columns(self) -> dict[str, Array]:
        """The variables by name."""
        named = {"n": self.n, "d": self.d, **self.extra}
        return {name: values for name, values in named.items() if values is not None}

    @property
    def weight(self) -> Array:
        """Weights scaled to a mean of one; ones where none were given."""
        if self.weights is None:
            return np.ones(len(self))
        return self.weights * (np.count_nonzero(self.weights) / self.weights.sum())

    def take(self, rows: ArrayLike) -> Table:
        """The table of the given rows (mask or indices)."""
        index = np.asarray(rows)
        return Table(
            self.loss[index],
            None if self.n is None else self.n[index],
            None if self.d is None else self.d[index],
            None if self.weights is None else self.weights[index],
            self.bound[index],
            None if self.group is None else self.group[index],
            {name: values[index] for name, values in self.extra.items()},
        )

    def means(self) -> Table:
        """One row per cell of equal variables: the geometric mean of its exact losses.

        A cell whose runs are all bounds keeps the tightest; a cell with exact runs drops its
        bounds.
        """
        keys = np.column_stack(list(self.columns.values()))
        cells, inverse = np.unique(keys, axis=0, return_inverse=True)
        losses, bounds, weights = [], [], []
        for cell in range(len(cells)):
            rows = inverse.ravel() == cell
            exact = rows & (self.bound == 0)
            if exact.any():
                losses.append(
                    np.exp(np.average(np.log(self.loss[exact]), weights=self.weight[exact]))
                )
                bounds.append(0)
                weights.append(self.weight[exact].sum())
            else:
                side = int(self.bound[rows][0])
                losses.append(self.loss[rows].min() if side > 0 else self.loss[rows].max())
                bounds.append(side)
                weights.append(self.weight[rows].max())
        columns = dict(zip(self.columns, cells.T, strict=True))
        return Table(
            np.array(losses),
            columns.pop("n", None),
            columns.pop("d", None),
            np.array(weights),
            np.array(bounds, np.int8),
            extra=columns,
        )

    def warnings(self) -> list[str]:
        """What a reader should know about the rows: identical ones, bounds."""
        keys = pd.DataFrame({**self.columns, "loss": self.loss})
        twice = keys.index[keys.duplicated(keep="first")].to_numpy()
        found = []
        if len(twice):
            found.append(
                f"{len(twice)} identical rows (first: {row_names(twice)}): copies are not evidence"
            )
        if np.any(self.bound):
            found.append(f"{np.count_nonzero(self.bound)} of {len(self)} rows are only bounds")
        return found


def from_frame(
    frame: pd.DataFrame,
    *,
    loss: str,
    where: str = "table",
    weights: str | None = None,
    state: str | None = None,
    group: str | None = None,
    censored: int = 1,
    **variables: str | None,
) -> Table:
    """A `Table` from named columns of `frame`; `variables` maps n, d, ... to column names.

    state: a column of run states (`STATES`); "censored" makes the row an upper bound (censored=-1: a
    lower one, as the steps of a run that was still falling), "diverged" is refused.
    Raises `UserError` naming column and rows for text, NaN, zero or negative values, and for a
    column in two roles.
    """
    wanted = {"loss": loss, "weights": weights, **variables}
    roles: dict[str, str] = {}
    for name, column in wanted.items():
        if column and column in roles:
            raise UserError(
                f"column {column!r} is named twice: as {roles[column]} and as {name}",
                where=where,
                remedy="name another column for one of them",
            )
        if column:
            roles[column] = name
    columns = {name: _column(frame, column, where) for column, name in roles.items()}
    try:
        for column, name in roles.items():
            _positive(column, columns[name], zero=name in (*MAY_BE_ZERO, "weights"))
    except UserError as error:
        raise UserError(error.what, where=where, remedy=error.remedy) from None
    bound = np.zeros(0, np.int8)
    if state:
        bound = censored * _censored(_pick(frame, state, where), where).astype(np.int8)
    try:
        return Table(
            columns.pop("loss"),
            columns.pop("n", None),
            columns.pop("d", None),
            columns.pop("weights", None),
            bound,
            None if group is None else _pick(frame, group, where).to_numpy(dtype=object),
            columns,
        )
    except UserError as error:
        raise UserError(error.what, where=where, remedy=error.remedy) from None


def _censored(column: pd.Series, where: str) -> NDArray[np.bool_]:
    """Which runs are censored; raises `UserError` for diverged ones and for unknown states."""
    states = column.astype(object).fillna("").astype(str).str.strip().str.lower()
    unknown = np.flatnonzero(~states.isin(STATES).to_numpy())
    if len(unknown):
        found = str(states.iloc[unknown[0]])
        raise UserError(
            f"column {str(column.name)!r}: {row_names(unknown)} "
            + (f"with an unknown state, {found!r}" if found else "without a state"),
            where=where,
            remedy=nearest(found, list(STATES)),
        )
    wrong = np.flatnonzero((states == "diverged").to_numpy())
    if len(wrong):
        raise UserError(
            f"column {str(column.name)!r}: diverged runs in {row_names(wrong)}",
            where=where,
            remedy="drop these rows: their loss says nothing about the law",
        )
    return np.asarray(states == "censored", dtype=bool)


def _pick(frame: pd.DataFrame, column: str, where: str) -> pd.Series:
    if column not in frame.columns:
        names = [str(name) for name in frame.columns]
        raise UserError(
            f"there is no column {column!r}", where=where, remedy=nearest(column, names)
        )
    return frame[column]


def _column(frame: pd.DataFrame, column: str, where: str) -> Array:
    values = _pick(frame, column, where)
    try:
        numbers = pd.to_numeric(values, errors="coerce")
    except TypeError:  # lists and the like
        numbers = pd.Series(np.nan, index=values.index)
    if values.dtype.kind in "bMm":
        raise UserError(
            f"column {column!r} holds {'dates' if values.dtype.kind in 'Mm' else 'true and false'}",
            where=where,
            remedy="name a column of numbers",
        )
    text = np.flatnonzero((numbers.isna() & values.notna()).to_numpy())
    if len(text):
        first = values.iloc[text[0]]
        raise UserError(
            f"column {column!r} holds text in {row_names(text)}: {first!r}",
            where=where,
            remedy="give plain numbers (1e6 is fine; 1,000,000 and 5K are not)",
        )
    return numbers.to_numpy(dtype=float)


def _positive(name: str, values: ArrayLike, zero: bool = False) -> Array:
    try:
        array = np.array(values, dtype=float).ravel()
    except (TypeError, ValueError):
        raise UserError(f"column {name!r} is not numeric", remedy="give plain numbers") from None
    wrong = np.flatnonzero(~np.isfinite(array) | (array < 0 if zero else array <= 0))
    if len(wrong):
        shown = ", ".join(f"{array[i]:g}" for i in wrong[:3])
        least = "at least 0" if zero else "above 0"
        raise UserError(
            f"column {name!r}: {row_names(wrong)} must be {least} and finite ({shown})",
            remedy="drop or repair these rows: laws are fitted to logarithms",
        )
    return array


def row_names(index: NDArray[np.intp]) -> str:
    """`row 3` or `rows 3, 5, 8, ...`, counted from 1 below the header."""
    shown = ", ".join(str(i + 1) for i in index[:5])
    return f"row{'s' if len(index) > 1 else ''} {shown}{', ...' if len(index) > 5 else ''}"


def few(values: ArrayLike, most: int) -> Array:
    """The distinct values, sorted; of more than `most` so many at even ranks, both ends among them."""
    distinct = np.unique(np.asarray(values, dtype=np.float64))
    if len(distinct) <= most:
        return distinct
    return np.unique(np.quantile(distinct, np.linspace(0, 1, most), method="nearest"))
