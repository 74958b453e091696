"""Pre-train or annotate: the best split of a budget under the transfer law, and how it moves.

Prices: a pre-training step costs 1, a labelled pair `price` steps.  There is one budget, so that prices
can be compared: what the middle of the study (geometric means of its steps and sizes) costs at the
middle price.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from repro.experiments.answer import Answer, answer, finite, part
from repro.laws.allocation import transfer_split
from repro.laws.fit import Fit
from repro.laws.shapes import Array
from repro.laws.transfer import loss, pretraining_share

PRICES = (0.01, 0.1, 1.0)  # of a labelled pair, in pre-training steps
GAPS = (0.0, 0.25, 1.0, 4.0)  # G, in units of what pre-training still closes at the middle


def splits(
    fitted: Fit, draws: Mapping[str, Array], prices: Sequence[float]
) -> list[dict[str, Any]]:
    """A row a price and gap: the best p, f, share of pre-training, loss (plain data).

    gap: None is the fitted G; a number stands in its place, in units of A p^-alpha at the middle
    checkpoint.  formula: the share by the first-order condition.  ci95: of the share, over draws.
    outside: by what factor the split leaves the range that was run.
    """
    law = dict(fitted.parameters)
    middle, budget = _budget(fitted, prices)
    least = float(fitted.table.columns["f"][fitted.table.columns["f"] > 0].min())
    rows = []
    for price in prices:
        for gap in (None, *GAPS):
            changed = _with_gap(law, gap, middle)
            found = transfer_split(_loss(changed), budget, 1.0, price)
            moved = pretraining_share(_with_gap(draws, gap, middle), budget, 1.0, price)
            rows.append(
                {
                    "price": float(price),
                    "budget": budget,
                    "gap": gap,
                    "G": finite(float(np.asarray(changed["G"]))),
                    "p": found.n,
                    "f": found.d,
                    "share": found.n / budget,
                    "formula": float(pretraining_share(changed, budget, 1.0, price)),
                    "ci95": _ends(moved),
                    "loss": found.loss,
                    "outside": max(1.0, fitted.extrapolation(p=found.n, f=max(found.d, least))),
                    "limits": list(found.limits),
                }
            )
    return rows


def falls(fitted: Fit, draws: Mapping[str, Array], prices: Sequence[float]) -> list[dict[str, Any]]:
    """Change of the pre-training share from no gap to the largest of `GAPS`, a row a price."""
    law = dict(fitted.parameters)
    middle, budget = _budget(fitted, prices)
    rows = []
    for price in prices:
        ends = [
            [pretraining_share(_with_gap(own, gap, middle), budget, 1.0, price) for gap in GAPS]
            for own in (law, draws)
        ]
        moved = np.asarray(ends[1][-1] - ends[1][0])
        change = float(ends[0][-1] - ends[0][0])
        rows.append({"price": float(price), "change": change, "ci95": _ends(moved)})
    return rows


def gap_left(fitted: Fit, draws: Mapping[str, Array]) -> dict[str, Any]:
    """The share of the gap at the last checkpoint that no pre-training closes: G / (A p^-alpha + G)."""
    last = float(fitted.table.columns["p"].max())
    share = [
        own["G"] / (own["A"] * last ** -own["alpha"] + own["G"])
        for own in (fitted.parameters, draws)
    ]
    return {"p": int(last), "value": float(share[0]), "ci95": _ends(np.asarray(share[1]))}


def by_formula() -> Answer:
    """T3:calc: a law without gap and with equal exponents spends half on pre-training.

    The numerical optimum for three prices of a label; the worst of them is the value.
    """
    law = {"A": 10.0, "alpha": 0.3, "G": 0.0, "beta": 0.3, "E": 0.5, "f0": 0.0}
    budget, prices = 1e6, (0.1, 1.0, 10.0)
    shares = [transfer_split(_loss(law), budget, 1.0, price).n / budget for price in prices]
    worst = max(shares, key=lambda share: abs(share - 0.5))
    gap = law | {"G": 1.0}
    bound = [float(pretraining_share(gap, budget, 1.0, price)) for price in prices]
    found = [transfer_split(_loss(gap), budget, 1.0, price).n / budget for price in prices]
    miss = max(abs(a - b) for a, b in zip(bound, found, strict=True))
    why = (
        "numerical optimum against alpha / (alpha + beta) at three prices of a label; with a gap G it "
        f"agrees with the first-order condition to {miss:.0e} and falls to {found[0]:.3f}, whatever "
        "a label costs"
    )
    return answer(worst, why, n=len(prices), parts={"share": part(worst)})


def _budget(fitted: Fit, prices: Sequence[float]) -> tuple[float, float]:
    """The middle checkpoint (steps) and the budget (in steps)."""
    p, f = (fitted.table.columns[name] for name in ("p", "f"))
    middle = float(np.exp(np.log(np.unique(p)).mean()))
    pairs = float(np.exp(np.log(np.unique(f[f > 0])).mean()))
    return middle, middle + float(np.median(prices)) * pairs


def _loss(law: Mapping[str, Any]) -> Any:
    return lambda p, f: loss(law, p, f)


def _with_gap(law: Mapping[str, Any], gap: float | None, middle: float) -> dict[str, Any]:
    """`law` with its G replaced by `gap` times what pre-training still closes at the middle."""
    if gap is None:
        return dict(law)
    return {**law, "G": gap * law["A"] * middle ** -law["alpha"]}


def _ends(values: Array) -> list[float] | None:
    finite_ = values[np.isfinite(values)]
    if len(finite_) < 0.9 * len(values):
        return None
    return [float(end) for end in np.quantile(finite_, [0.025, 0.975])]
