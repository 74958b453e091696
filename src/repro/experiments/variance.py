"""What is the noise of a cell made of?  MAEL under other pairs, another batch order, other dropout.

Runs of one cell in which one thing alone differs from the grid's own run: `subset`, which pairs are
drawn; `order`, the run's seed with the dropout kept (order of the batches, negatives, and the projection
where the weights bring none); `dropout`.  Each component is measured where the others are as in the
grid's run, so what they do together is in all of them.  Pairs are drawn from the dataset's training
pairs: two draws share D / `pool` of them, so draws of fresh pairs differ by more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field, field_validator
from scipy.stats import chi2

from repro import seeds as streams
from repro.errors import UserError
from repro.experiments import section
from repro.experiments.answer import Answer, middle, part
from repro.experiments.replicates import NOT_EXACT
from repro.params import Params, rising
from repro.train.loop import TrainParams

if TYPE_CHECKING:
    from repro.experiments.runs import Runs, Trained

Array = NDArray[np.float64]
COMPONENTS = ("subset", "order", "dropout")  # another run seed of the grid changes the last two
DRAWS = 4000  # of the variances, for the interval of a share
BLOCK = 100  # seeds of one component lie within a block, apart from the others' and the run's own


class VarianceParams(Params):
    """Of which model and sizes the noise is split, and how often each component is drawn."""

    model: str
    sizes: Annotated[list[Annotated[int, Field(ge=2)]], Field(min_length=1)]  # D, pairs
    draws: Annotated[int, Field(ge=2, lt=BLOCK)]  # of a component, beside the grid's own run

    _rising = field_validator("sizes")(rising)

    def check(self, rates: Mapping[str, float], train: TrainParams) -> None:
        """Refuse what the profile's models, name -> learning rate, or its training cannot run."""
        section.check("variance", {"model": [self.model]}, self.sizes, rates, train)


def runs(plan: Runs) -> list[Trained]:
    """The training runs; none where the profile has no such section."""
    return [run for own in parts(plan).values() for run in own]


def parts(plan: Runs) -> dict[str, list[Trained]]:
    """The runs by what differs: `base` (the grid's own cells), then each component.

    Raises `UserError` where a size takes every training pair: no other pairs can be drawn.
    """
    asked = plan.profile.variance
    if asked is None:
        return {}
    if max(asked.sizes) >= len(plan.dataset.splits.train):
        raise UserError(
            f"variance.sizes: {max(asked.sizes):,} pairs are all that there are to train on, so no "
            "others can be drawn",
            remedy="drop that size",
        )
    root, ks = plan.profile.seed, range(1, asked.draws + 1)
    varied: dict[str, list[dict[str, Any]]] = {
        "base": [{}],
        "subset": [{"subset_seed": root + BLOCK + k} for k in ks],
        "order": [{"seed": k, "dropout_seed": root} for k in ks],
        "dropout": [{"dropout_seed": root + 2 * BLOCK + k} for k in ks],
    }
    return {
        name: [
            plan.trained(asked.model, pairs=d, ranked=False, **each)
            for d in asked.sizes
            for each in draws
        ]
        for name, draws in varied.items()
    }


def table(plan: Runs) -> pd.DataFrame:
    """One row a finished run, see `Runs.row`; with the `component` that differs and the `pool`, pairs."""
    pool = len(plan.dataset.splits.train)
    rows = [
        {"component": name, "pool": pool, **row}
        for name, own in parts(plan).items()
        for run in own
        if (row := plan.row(run)) is not None
    ]
    return pd.DataFrame(rows)


def answers(table: pd.DataFrame, seed: int = 1) -> dict[str, Any]:
    """The components of MAEL's variance by size and pooled over sizes; plain data.

    table: from the function of this name.  lacking: the runs that did not reach a minimum, which are
    left out.  sizes, pooled: see `_split`.  Without a finished run there is only `runs`, 0.
    """
    if table.empty:
        return {"runs": 0}
    short = table["state"].isin(NOT_EXACT)
    exact = table[~short]
    own = {int(d): exact[exact["d"] == d] for d in sorted(set(exact["d"]))}
    sums = {d: _sums(runs) for d, runs in own.items()}
    return {
        "model": str(table["model"].iloc[0]),
        "pool": int(table["pool"].iloc[0]),
        "runs": len(table),
        "lacking": table.loc[short, ["component", "d", "state"]].to_dict("records"),
        "sizes": [
            {"d": d, **_split(sums[d], runs, streams.stream(seed, "variance", d))}
            for d, runs in own.items()
        ],
        "pooled": _split(
            np.sum(list(sums.values()), axis=0) if sums else np.zeros((len(COMPONENTS), 3)),
            exact,
            streams.stream(seed, "variance", "pooled"),
        ),
    }


def _sums(exact: pd.DataFrame) -> Array:
    """Of one size, float64 [component, 3]: squares of MAEL and of log MAEL about the mean, and df.

    The grid's own run is one draw of every component.
    """
    found = np.zeros((len(COMPONENTS), 3))
    for i, name in enumerate(COMPONENTS):
        mael = exact.loc[exact["component"].isin(["base", name]), "mael"].to_numpy(float)
        if (n := len(mael)) > 1:
            found[i] = n * mael.var(), n * np.log(mael).var(), n - 1
    return found


def _split(sums: Array, exact: pd.DataFrame, rng: np.random.Generator) -> dict[str, Any]:
    """What `sums` (see `_sums`) say, each quantity with a 95 % interval.

    components: sd (nats), relative (sd of log MAEL) and share (of the summed variances of log MAEL).
    total: relative sd with all three drawn.  understated: that over the sd of another run seed, which
    keeps the pairs.  validation: standard error of a MAEL by its validation pairs, root mean square
    over the runs, nats and relative; the runs share those pairs, so that it is in no component.
    """
    mael, log, df = sums.T
    variance = np.where(df > 0, log, np.nan) / np.maximum(df, 1)
    drawn = variance * df / rng.chisquare(np.maximum(df, 1), (DRAWS, len(df)))
    shares, sampled = _shares(variance), _shares(drawn)
    se, level = exact["mael_se"].to_numpy(float), exact["mael"].to_numpy(float)
    return {
        "components": [
            {
                "component": name,
                "df": int(df[i]),
                "sd": _deviation(mael[i], df[i]),
                "relative": _deviation(log[i], df[i]),
                "share": part(shares[i], middle(sampled[:, i])),
            }
            for i, name in enumerate(COMPONENTS)
        ],
        "total": part(variance.sum() ** 0.5, middle(drawn.sum(axis=1) ** 0.5)),
        "understated": part(_kept(shares), middle(_kept(sampled))),
        "validation": {"sd": _root_mean(se), "relative": _root_mean(se / level)},
    }


def _deviation(squares: float, df: float) -> Answer:
    """The standard deviation with its chi-square interval; without a value where `df` is 0."""
    if not df:
        return part(None)
    low, high = (float((squares / chi2.ppf(q, df)) ** 0.5) for q in (0.975, 0.025))
    return part((squares / df) ** 0.5, (low, high))


def _shares(variances: Array) -> Array:
    """Each variance over their sum, along the last axis; NaN where that is 0 or not known."""
    whole = variances.sum(axis=-1, keepdims=True)
    return variances / np.where(whole > 0, whole, np.nan)


def _kept(shares: Array) -> Any:
    """The sd of all components over that of those behind the first, along the last axis."""
    again = shares[..., 1:].sum(axis=-1)
    return np.where(again > 0, again, np.nan) ** -0.5


def _root_mean(values: Array) -> float | None:
    return float(np.mean(values**2) ** 0.5) if len(values) else None
