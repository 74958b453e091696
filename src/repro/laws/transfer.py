"""The transfer law with a head start, the simpler forms it is held against, and what a budget buys.

p in pre-training steps, f in labelled pairs, losses in nats.  Every form here has the head start f0, so
that the start itself (f = 0) is a point like any other, and the forms differ in nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from repro.laws.forms import Form, form
from repro.laws.powersum import PowerSum, Term
from repro.laws.shapes import Array

_MEANING = {
    "A": "gap that pre-training closes",
    "alpha": "exponent in pre-training",
    "G": "transfer gap that no pre-training closes",
    "B": "constant of the labels' term",
    "beta": "exponent in labelled pairs",
    "E": "irreducible loss (floor)",
    "f0": "pairs that the start is worth",
    "c": "level of the law",
    "D0": "pairs that the pre-trained start is worth",
}
_P: tuple[str, str, float] = ("p", "alpha", -1.0)
_F: tuple[str, str, float] = ("f", "beta", -1.0)
_GAP, _FLOOR = Term("G", (_F,), linear=True), Term("E", linear=True)
_OURS = "ours: the transfer law made simpler"


def _sum(*terms: Term) -> PowerSum:
    return PowerSum(terms, _MEANING, {"f": "f0"})


FULL = form("transfer_f0")
SIMPLER = (
    Form(
        "transfer_no_gap", "without the gap G", "A p^-alpha (f + f0)^-beta + E",
        r"A\,p^{-\alpha}(f+f_0)^{-\beta}+E", _OURS, _sum(Term("A", (_P, _F)), _FLOOR),
    ),
    Form(
        "transfer_no_floor", "without the floor E", "(A p^-alpha + G) (f + f0)^-beta",
        r"(A\,p^{-\alpha}+G)\,(f+f_0)^{-\beta}", _OURS, _sum(Term("A", (_P, _F)), _GAP),
    ),
    Form(
        "transfer_product", "product", "A p^-alpha (f + f0)^-beta",
        r"A\,p^{-\alpha}(f+f_0)^{-\beta}", _OURS, _sum(Term("A", (_P, _F))),
    ),
    Form(
        "transfer_additive", "additive", "A p^-alpha + B (f + f0)^-beta + E",
        r"A\,p^{-\alpha}+B\,(f+f_0)^{-\beta}+E",
        "additive law of Rosenfeld et al. 2020 in (p, f)",
        _sum(Term("A", (_P,)), Term("B", (_F,)), _FLOOR),
    ),
)  # fmt: skip

HEAD_START = Form(
    "head_start",
    "power law with head start",
    "c (f + D0)^-beta",
    r"c\,(f+D_0)^{-\beta}",
    "ours: the pre-trained start counted as D0 pairs",
    PowerSum((Term("c", (_F,)),), _MEANING, {"f": "D0"}),
)


def loss(law: Mapping[str, float | Array], p: Array, f: Array) -> Array:
    """(A p^-alpha + G) (f + f0)^-beta + E of a law's parameters by name, in nats."""
    gap = law["A"] * np.asarray(p, dtype=float) ** -law["alpha"] + law["G"]
    return np.asarray(gap * (f + law["f0"]) ** -law["beta"] + law["E"])


def pretraining_share(
    law: Mapping[str, float | Array],
    budget: float,
    usd_per_step: float,
    usd_per_pair: float,
    max_steps: float = 1e12,
) -> Array:
    """The share of a budget that the best split spends on pre-training, from the first-order condition.

    law: A, alpha, G, beta, f0 (numbers, or draws (R,)) of (A p^-alpha + G) (f + f0)^-beta + E.  At the
    best split  alpha s / (c_p p) = beta / (c_f (f + f0)),  s = A p^-alpha / (A p^-alpha + G):  without
    head start the share is alpha s / (alpha s + beta), whatever a label costs.  Where labels or steps
    are not worth buying at all it is the end of the range (1 to max_steps steps; f >= 0).
    """
    a, alpha, g, beta, f0 = np.broadcast_arrays(
        *(np.asarray(law[name], dtype=float) for name in ("A", "alpha", "G", "beta", "f0"))
    )
    low = np.zeros(a.shape)
    high = np.full(a.shape, np.log(min(max_steps, budget / usd_per_step)))
    for _ in range(200):
        log_p = (low + high) / 2
        p = np.exp(log_p)
        gap = a * p**-alpha
        left = budget - usd_per_step * p + usd_per_pair * f0  # what f + f0 costs
        more = alpha * gap / (gap + g) * left > beta * usd_per_step * p
        low, high = np.where(more, log_p, low), np.where(more, high, log_p)
    return np.asarray(usd_per_step * np.exp((low + high) / 2) / budget)
