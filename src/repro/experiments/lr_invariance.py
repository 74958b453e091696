"""Does the learning rate move the minimum?  One model at several rates and data sizes: notebook 02.

The answers to M1 (how low), M2 (how fast: see `collapse`) and M3 (to which vectors: see `likeness`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pandas as pd
from pydantic import Field, field_validator, model_validator
from scipy.stats import chi2
from scipy.stats import t as student

from repro.experiments import collapse, grid, likeness, section
from repro.experiments.answer import Answer, answer, part
from repro.experiments.replicates import NOT_EXACT, seed_noise
from repro.params import Params, distinct
from repro.train.loop import MOST_LR, TrainParams

if TYPE_CHECKING:
    from repro.experiments.runs import Runs, Trained


MOST = 10**9  # pairs: no size that a dataset has


class LrStudyParams(Params):
    """One model of the profile, run at several learning rates."""

    model: str
    # Learning rates as multiples of the model's own, which must be among them: its runs are the grid's.
    factors: Annotated[list[Annotated[float, Field(gt=0, le=1000)]], Field(min_length=2)]
    # D, pairs; `auto`: every other size of the grid but the largest, three at most (`settled`).
    sizes: Annotated[list[Annotated[int, Field(ge=2)]], Field(min_length=1)]
    automatic: Annotated[bool, Field(exclude=True)] = False  # `sizes: auto`, not settled yet
    # Added to the run seed.
    seeds: Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)] = [0]

    @model_validator(mode="before")
    @classmethod
    def _auto(cls, values: Any) -> Any:
        if isinstance(values, dict) and values.get("sizes") == "auto":
            return {**values, "sizes": [MOST], "automatic": True}
        return values

    def settled(self, sizes: list[int]) -> LrStudyParams:
        """The section with the sizes of `auto`, chosen from those of the grid."""
        if not self.automatic:
            return self
        chosen = sorted(sizes)[:-1:2][:3] or sizes
        return self.model_copy(update={"sizes": chosen, "automatic": False})

    @field_validator("factors", "sizes", "seeds")
    @classmethod
    def _distinct(cls, values: list[Any]) -> list[Any]:
        return sorted(distinct(values))

    @field_validator("factors")
    @classmethod
    def _own(cls, factors: list[float]) -> list[float]:
        if 1.0 not in factors:
            raise ValueError(
                "1 is missing: the rate that the grid uses is one of those compared\n  remedy: add 1"
            )
        return factors

    def check(self, rates: Mapping[str, float], train: TrainParams) -> None:
        """Refuse what the profile's models, name -> learning rate, or its training cannot run."""
        section.check("lr_study", {"model": [self.model]}, self.sizes, rates, train)
        largest = max(self.factors) * rates[self.model]
        if largest > MOST_LR:
            raise ValueError(
                f"lr_study.factors ask for a rate of {largest:g}; at most {MOST_LR:g} is allowed\n"
                "  remedy: drop the largest factor"
            )
        if largest * train.weight_decay >= 1:
            raise ValueError(
                f"lr x weight decay at the largest rate of lr_study, {largest:g}, is 1 or more\n"
                "  remedy: keep the product under 1"
            )


def runs(plan: Runs) -> list[Trained]:
    """The training runs of the study, size by size; none where the profile has no such section."""
    asked = plan.profile.lr_study
    if asked is None:
        return []
    own = plan.profile.models[asked.model].lr
    return [
        plan.trained(
            asked.model,
            pairs=pairs,
            seed=seed,
            lr=None if factor == 1 else own * factor,
            ranked=False,
        )
        for pairs in asked.sizes
        for seed in asked.seeds
        for factor in asked.factors
    ]


def again(plan: Runs) -> list[Trained]:
    """The grid's runs of the same model, sizes and rate under other seeds: they tell the noise."""
    asked = plan.profile.lr_study
    if asked is None:
        return []
    seeds = {plan.profile.seed + seed for seed in asked.seeds}
    return [
        replace(run, ranking=None)
        for run in grid.runs(plan)
        if run.model == asked.model and run.pairs in asked.sizes and run.seed not in seeds
    ]


def table(plan: Runs) -> pd.DataFrame:
    """One row a finished run: as in the grid's table, with factor, reached and role.

    factor: the rate over the model's own.  reached: whether the run has a minimum behind its warm-up.
    role: `rate`, or `seed` for the runs of `again`.
    """
    rows = [
        row | {"role": role, "factor": round(row["lr"] / plan.profile.models[run.model].lr, 6)}
        for role, group in (("rate", runs(plan)), ("seed", again(plan)))
        for run in group
        if (row := plan.row(run)) is not None
    ]
    found = pd.DataFrame(rows)
    warm = plan.profile.train.warmup_steps
    return found.assign(reached=reached(found, warm)) if rows else found


def curves(plan: Runs) -> pd.DataFrame:
    """The validation curves of the runs of `table`, one row a reading, with lr and role."""
    frames = [
        frame.assign(lr=run.spec.lr, role=role)
        for role, group in (("rate", runs(plan)), ("seed", again(plan)))
        for run in group
        if (frame := plan.curve(run)) is not None
    ]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def alike(plan: Runs) -> list[dict[str, Any]]:
    """How alike the best checkpoints of the runs of `table` are: see `likeness.likeness`."""
    return likeness.likeness(plan, table(plan), [*runs(plan), *again(plan)])


def reached(table: pd.DataFrame, warmup_steps: int = 0) -> pd.Series:
    """Whether each run's curve shows the minimum of its rate.

    Not falling at its end, nor lowest at its start, nor lowest before the rate was reached (warm-up).
    """
    seen = ~table["state"].isin(NOT_EXACT) & ~table["at_first"].astype(bool)
    return seen & (table["steps"] > warmup_steps)


def answers(
    table: pd.DataFrame, curves: pd.DataFrame, compared: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """M1, M2 and M3, with `counts`, `spread`, `collapse` and `alike` beside; plain data.

    table, curves, compared: from the functions `table`, `curves` and `alike`.
    """
    if table.empty:
        why = "no run of the learning-rate study has finished"
        blocked = answer(None, why, n=0, blocked=why)
        empty: dict[str, Any] = {"counts": {}, "spread": {}, "collapse": [], "alike": []}
        return {**dict.fromkeys(("M1", "M2", "M3"), blocked), **empty}
    own = table[table["role"] == "rate"]
    seen = own[own["reached"]]
    spreads = {
        "reached": spread(seen),
        "lower": spread(seen[seen["lr"] < seen["lr"].max()]),
        "higher": spread(seen[seen["lr"] > seen["lr"].min()]),
        "all": spread(own),
    }
    found = collapse.spreads(table, curves)
    return {
        "M1": _how_low(table, spreads),
        "M2": collapse.claim(found, len(own)),
        "M3": likeness.claim(compared),
        "counts": counts(own),
        "spread": spreads,
        "collapse": found,
        "alike": [dict(row) for row in compared],
    }


def counts(own: pd.DataFrame) -> dict[str, Any]:
    """How many runs and rates there are, how many reached their minimum, and which did not."""
    everywhere = own.groupby("factor")["reached"].all()
    lacking = own[~own["reached"]]
    return {
        "model": str(own["model"].iloc[0]),
        "runs": len(own),
        "reached": int(own["reached"].sum()),
        "rates": len(everywhere),
        "reached_everywhere": int(everywhere.sum()),
        "lr": [float(own["lr"].min()), float(own["lr"].max())],
        "sizes": sorted(int(d) for d in own["d"].unique()),
        "lacking": [
            {**{name: run[name] for name in ("d", "lr", "seed")}, "state": _state(run)}
            for run in lacking.to_dict("records")
        ],
    }


def spread(own: pd.DataFrame) -> dict[str, Any]:
    """The standard deviation of MAEL over rates, and its ratio to the range of MAEL over D.

    own: rows with d, seed, lr, mael (nats); those without a finite MAEL have no say.  Gives n, rates
    (fewest and most at a size), sd (nats, within a size and a seed, pooled over them), df, range
    (nats, from the highest to the lowest mean over rates of a size), ratio and its ci95; None where
    there are not two sizes, or not two rates at any.

    The interval of the sd is that of chi-square, as if the rates were drawn at random; that of the
    ratio takes the ends of the sd over those of the range, and so is too wide rather than too narrow.
    """
    own = own[np.isfinite(own["mael"].to_numpy(float))]
    groups = [cell["mael"].to_numpy(float) for _, cell in own.groupby(["d", "seed"])]
    df = sum(len(cell) - 1 for cell in groups)
    rates = own.groupby("d")["lr"].nunique()
    found: dict[str, Any] = {
        "n": len(own),
        "rates": [int(rates.min()), int(rates.max())] if len(rates) else [0, 0],
        **dict.fromkeys(("sd", "range", "ratio", "ci95")),
        "df": df,
    }
    if df:
        squares = sum(float(np.sum((cell - cell.mean()) ** 2)) for cell in groups)
        found["sd"] = (squares / df) ** 0.5
    if len(rates) < 2 or not df:
        return found
    sizes = [cell["mael"].to_numpy(float) for _, cell in own.groupby("d")]
    top, bottom = max(sizes, key=np.mean), min(sizes, key=np.mean)
    width, sd = float(top.mean() - bottom.mean()), float(found["sd"])
    if width <= 0:
        return found
    half = float(student.ppf(0.975, df)) * sd * (1 / len(top) + 1 / len(bottom)) ** 0.5
    low, high = (sd * (df / float(chi2.ppf(q, df))) ** 0.5 for q in (0.975, 0.025))
    ends = [low / (width + half), high / (width - half)] if width > half else None
    return found | {"range": width, "ratio": sd / width, "ci95": ends}


def _how_low(table: pd.DataFrame, spreads: Mapping[str, dict[str, Any]]) -> Answer:
    """M1: the ratio over the runs that reached their minimum; `ratio_all` over all with a loss.

    How far one rate at an end decides it is told, without the highest (`lower`) and the lowest.
    """
    own = table[table["role"] == "rate"]
    count, few, every = counts(own), spreads["reached"], spreads["all"]
    said = (
        f"{count['reached']} of {count['runs']} runs ({100 * count['reached'] / count['runs']:.0f} %) "
        f"reached their minimum, {count['reached_everywhere']} of {count['rates']} rates at every D"
    )
    parts = {
        "ratio": part(few["ratio"], few["ci95"], endless=few["ci95"] is None),
        "ratio_all": part(every["ratio"], every["ci95"]),
        "sd": part(few["sd"]),
        "range": part(few["range"]),
    }
    if few["ratio"] is None:
        why = f"too few sizes or rates for a spread and a range; {said}"
        return answer(None, why, n=few["n"], parts=parts, blocked=why)
    noise = seed_noise(table[table["factor"] == 1])
    why = (
        f"sd over rates {few['sd']:.3f} nats ({few['df']} degrees of freedom), range over D "
        f"{few['range']:.3f}; {said}"
    )
    for of, end in (("lower", "highest"), ("higher", "lowest")):
        if (ratio := spreads[of]["ratio"]) is not None:
            why += f"; without the {end} rate the ratio is {ratio:.3f}"
    why += f"; with the others the ratio is {every['ratio']:.3f}" if every["ratio"] else ""
    why += f"; sd between seeds of one cell {noise.sd:.3f} ({noise.df})" if noise else ""
    return answer(few["ratio"], why, n=few["n"], ci95=few["ci95"], parts=parts)


def _state(run: Mapping[Any, Any]) -> str:
    """Why a run has no minimum, in a word."""
    return str(run["state"]) if run["state"] in NOT_EXACT else "lowest at its first reading"
