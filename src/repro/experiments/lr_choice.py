"""Which learning rate: the rule, on a table of runs of one model over a ladder of rates.

The rule: the largest rate whose MAEL is within one seed standard deviation of the best, or within
1 %, whose runs all turned, and whose minimum takes at least 40 raw steps at the smallest data size.
Two data sizes count alike: the score of a rate is the mean over them of the log of MAEL.

A table has one row a run: rate, pairs, seed, mael (nats), steps (S, to the minimum), at_first (the
first reading is the lowest: S is an upper bound, and shows nothing), state.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from repro.train.loop import MOST_LR

LEAST_STEPS = 40.0  # S at the smallest size: under it a minimum is a matter of a few batches
TOLERANCE = 0.01  # of MAEL: a seed sd of a few runs may be small by luck, and slow rates cost days
FACTOR = 2.0  # of neighbouring rungs
MOST_RUNGS = 10


@dataclass(frozen=True)
class Ladder:
    """What is run for one model; `below` bounds the rates (lr x weight decay stays under 1)."""

    rates: tuple[float, ...]  # the first rungs
    sizes: tuple[int, ...]  # D, pairs
    seeds: int = 3  # at the best rate and at the chosen one
    extend: bool = True  # while the answer may lie beyond an end
    below: float = MOST_LR

    def missing(self, table: pd.DataFrame) -> list[tuple[float, int, int]]:
        """(rate, pairs, seed) of the runs still needed after those in `table`; empty at the end."""
        done = set(zip(table["rate"], table["pairs"], table["seed"], strict=True))
        first = self._wanted(self.rates, range(1), done)
        if first:
            return first
        scores = score(table)
        beyond = self._beyond(scores, spread(table)) if self.extend else []
        if beyond:
            return self._wanted(beyond, range(1), done)
        again = [_best(scores), choose(table).rate]
        for rate in again:
            more = self._wanted([rate], range(self.seeds), done)
            if more:
                return more
        return []

    def _wanted(self, rates: Any, seeds: range, done: set[Any]) -> list[tuple[float, int, int]]:
        cells = [(rate, pairs, seed) for rate in rates for pairs in self.sizes for seed in seeds]
        return [cell for cell in cells if cell not in done]

    def _beyond(self, scores: pd.DataFrame, sd: float) -> list[float]:
        """The next rungs at the ends of the ladder beyond which a better answer may lie."""
        if len(scores) >= MOST_RUNGS:
            return []
        low, high, found = scores.index[0], scores.index[-1], []
        usable = scores["turned"] & (scores["steps"] >= LEAST_STEPS)
        best, cost = _best(scores), _cost(scores)
        falling = best == low and bool(cost.iloc[1:2].gt(_within(sd)).all())
        if not scores["censored"].iloc[0] and (falling or not usable.any()):
            found.append(low / FACTOR)
        near = bool(cost.iloc[-1] <= _within(sd))
        if not scores["diverged"].iloc[-1] and (best == high or (near and usable.iloc[-1])):
            found.append(high * FACTOR)
        return [rate for rate in found if rate < self.below]


@dataclass(frozen=True)
class Choice:
    """A rate and why; `cost` is its MAEL over the best rate's, less one."""

    rate: float
    reason: str
    met: bool  # whether the whole rule is met
    best: float
    cost: float
    sd: float  # seed sd of log MAEL; NaN where no cell has two seeds
    steps: float  # least S at the smallest size

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        values = {name: getattr(self, name) for name in ("best", "cost", "sd", "steps")}
        finite = {k: float(v) if math.isfinite(v) else None for k, v in values.items()}
        return {"rate": float(self.rate), "reason": self.reason, "met": self.met, **finite}


def score(table: pd.DataFrame) -> pd.DataFrame:
    """One row a rate, rising: score, turned, censored, diverged (bool), steps (least S at the smallest D).

    The score is infinite where a run diverged; steps are NaN where S is an upper bound.
    """
    table = table.assign(log=np.log(table["mael"].astype(float)))
    rows = {}
    for rate, part in table.groupby("rate"):
        states = set(part["state"])
        smallest = part[part["pairs"] == table["pairs"].min()]
        rows[rate] = {
            "score": np.inf if "diverged" in states else part.groupby("pairs")["log"].mean().mean(),
            "turned": states == {"turned"},
            "censored": "censored" in states,
            "diverged": "diverged" in states,
            "steps": smallest["steps"]
            .astype(float)
            .mask(smallest["at_first"].eq(True))
            .min(skipna=False),
        }
    return pd.DataFrame.from_dict(rows, orient="index").sort_index()


def spread(table: pd.DataFrame) -> float:
    """The seed sd of log MAEL, pooled over the cells with two seeds or more; NaN where none has."""
    usable = table[table["state"] != "diverged"]
    logs = usable.assign(log=np.log(usable["mael"].astype(float)))
    cells = logs.groupby(["rate", "pairs"])["log"].agg(["var", "count"])
    cells = cells[cells["count"] > 1]
    freedom = cells["count"] - 1
    return float(np.sqrt((cells["var"] * freedom).sum() / freedom.sum())) if len(cells) else np.nan


def choose(table: pd.DataFrame) -> Choice:
    """The rate that the rule picks; where none meets it, the nearest to it, with what it costs."""
    scores, sd = score(table), spread(table)
    best = _best(scores)
    cost = _cost(scores)
    near = cost <= _within(sd)
    enough = scores["steps"] >= LEAST_STEPS
    turned = scores["turned"]

    def found(mask: pd.Series, why: str, *, met: bool = False) -> Choice:
        rate = float(scores.index[mask].max())
        excess = float(np.expm1(cost[rate]))
        text = why.format(
            sd=f"one seed sd ({sd:.1%})" if sd > TOLERANCE else f"{TOLERANCE:.0%}",
            cost=f"{excess:.1%}",
            best=f"{best:.3g}",
            steps=in_words(float(scores["steps"][rate])),
        )
        return Choice(rate, text, met, best, excess, sd, float(scores["steps"][rate]))

    if (near & turned & enough).any():
        return found(near & turned & enough, "the largest within {sd} of the best", met=True)
    if (turned & enough).any():
        why = (
            "the largest that turned with S >= 40 at the smallest size: none within {sd} of the best"
            " ({best}) has that; it costs {cost} of MAEL"
        )
        return found(turned & enough, why)
    if (near & turned).any():
        lowest = scores.index == scores.index[near & turned].min()
        why = (
            "NO rate has S >= 40 at the smallest size (here {steps}): the smallest within {sd} of "
            "the best; use smaller batches or a larger smallest size"
        )
        return found(pd.Series(lowest, scores.index), why)
    states = ", ".join(sorted(set(table["state"])))
    why = f"NO rate turned near the best (states: {states}): the best one; raise curve.max_steps"
    return found(pd.Series(scores.index == best, scores.index), why)


def in_words(steps: float) -> str:
    """S as text; what is not known is the S of a run whose first reading is the lowest."""
    return f"{steps:.0f}" if math.isfinite(steps) else "not known: the first reading is the lowest"


def larger(table: pd.DataFrame) -> list[tuple[float, float, float]]:
    """The usable rates above the chosen one: (rate, MAEL over that of the best less one, S).

    Usable: all its runs turned, and S is 40 or more.  They are faster; this is what each costs.
    """
    scores, chosen = score(table), choose(table).rate
    rows = scores[
        scores["turned"] & (scores["steps"] >= LEAST_STEPS) & (scores.index.to_numpy() > chosen)
    ]
    excess = np.expm1(_cost(scores)[rows.index])
    return list(zip(rows.index.tolist(), excess.tolist(), rows["steps"].tolist(), strict=True))


def predict(
    chosen: dict[str, float], width: dict[str, int], others: list[str]
) -> tuple[dict[str, float], str]:
    """The rates of models that were not tuned, by a power of the width, and the rule in words.

    The power is fitted by least squares in logs through the tuned models and kept between -2 and 0;
    with one width tuned it is -1: halved as the width doubles (FACTS B).  Two digits are kept.
    """
    x = np.log([width[name] for name in chosen])
    y = np.log(list(chosen.values()))
    if len(set(x)) > 1:
        power = float(np.clip(np.polyfit(x, y, 1)[0], -2.0, 0.0))
        rule = f"rate ~ width^{power:.2f}, through {', '.join(chosen)}"
    else:
        power, rule = -1.0, f"halved as the width doubles, from {', '.join(chosen)}"
    level = float(np.mean(y - power * x))
    rates = {name: math.exp(level + power * math.log(width[name])) for name in others}
    return {name: float(f"{rate:.2g}") for name, rate in rates.items()}, rule


def _best(scores: pd.DataFrame) -> float:
    """The rate of the lowest score; where all diverged, the lowest rate."""
    rates = scores.index.to_numpy(dtype=float)
    return float(rates[int(np.argmin(scores["score"].to_numpy()))])


def _cost(scores: pd.DataFrame) -> pd.Series:
    """The score of each rate over that of the best: log MAEL, infinite where a run diverged."""
    finite = scores["score"][np.isfinite(scores["score"])]
    return scores["score"] - (finite.min() if len(finite) else 0.0)


def _within(sd: float) -> float:
    return sd if sd > TOLERANCE else TOLERANCE
