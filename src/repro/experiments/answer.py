"""What an experiment says to a claim: plain data, ready for JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Answer = dict[str, Any]
Interval = tuple[float, float] | None


def answer(
    value: float | None,
    why: str,
    *,
    n: int,
    ci95: Interval = None,
    parts: Mapping[str, Answer] | None = None,
    blocked: str = "",
    holds: bool | None = None,
) -> Answer:
    """An answer: the value with its 95 % interval, from `n` runs (or fits), and the reason in words.

    parts: the quantities that a rule of params/claims.yaml asks about, each made by `part`.
    blocked: why no verdict can be given whatever the numbers are; "" where one can.
    holds: the decision, for a claim whose rule is more than a limit on numbers; None: undecided.
    """
    return {
        "value": finite(value),
        "ci95": interval(ci95),
        "n": int(n),
        "why": why,
        "parts": dict(parts or {}),
        "blocked": blocked,
        "holds": holds,
    }


def part(value: float | None, ci95: Interval = None, *, endless: bool = False) -> Answer:
    """One quantity of an answer and its 95 % interval (None where it has none).

    endless: the value has no interval because nothing is left to tell its error: it decides nothing.
    """
    return {"value": finite(value), "ci95": interval(ci95), "endless": endless}


def middle(draws: NDArray[np.float64]) -> tuple[float, float]:
    """The interval that holds the middle 95 % of the draws, float64 [n]."""
    low, high = np.quantile(draws, [0.025, 0.975])
    return float(low), float(high)


def finite(value: float | None) -> float | None:
    """`value` as a float; None where it is none, or not a finite number."""
    return float(value) if value is not None and math.isfinite(value) else None


def interval(ends: Sequence[float] | None) -> list[float] | None:
    """`ends` as a list; None where an end is not a finite number."""
    if ends is None or not all(math.isfinite(end) for end in ends):
        return None
    return [float(end) for end in ends]
