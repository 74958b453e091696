"""Shapes of the classical laws that are not sums of powers: repeated data, broken power laws."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from repro.laws.shapes import EXP_LIMIT, Array, Parameter, Shape, Variables

_FAR = 50.0  # exp(50): so many epochs or excess parameters count as infinitely many


@dataclass(frozen=True)
class Repeated(Shape):
    """E + A/N'^alpha + B/D'^beta with fading value of repetition (Muennighoff et al. 2023, eq. 5-7).

    U unique tokens seen D/U times are worth D' = U (1 + R_D (1 - exp(-(D/U - 1)/R_D))); parameters
    beyond the N that is compute-optimal for U are worth less in the same way.
    """

    parameters: tuple[Parameter, ...]
    variables: tuple[str, ...] = ("n", "d", "u")
    centred_with: Mapping[str, str] = field(default_factory=lambda: {"u": "d"})

    def evaluate(self, theta: Array, x: Variables) -> tuple[Array, Array]:
        p, alpha, q, beta, floor, log_r_d, log_r_n = (row[:, None] for row in theta)
        r_d, r_n = np.exp(log_r_d), np.exp(log_r_n)
        best_n = (np.log(alpha / beta) + p - q + beta * x["u"]) / alpha
        limited = best_n < x["n"]  # more parameters than U can use
        unique_n = np.where(limited, best_n, x["n"])
        value_d, slope_d, _ = _decayed(x["d"] - x["u"], r_d)
        value_n, slope_n, rest_n = _decayed(x["n"] - unique_n, r_n)
        worth_n, worth_d = unique_n + value_n, x["u"] + value_d
        first = np.exp(np.clip(p - alpha * worth_n, -EXP_LIMIT, EXP_LIMIT))
        second = np.exp(np.clip(q - beta * worth_d, -EXP_LIMIT, EXP_LIMIT))
        total = first + second + floor
        one, two = first / total, second / total
        # How N' moves with the optimal N, and that with the other parameters.
        pull = -alpha * np.where(limited, rest_n, 0.0) * one
        jacobian = np.stack(
            [
                one + pull / alpha,
                -worth_n * one + pull * (1.0 / alpha**2 - best_n / alpha),
                two - pull / alpha,
                -worth_d * two + pull * (x["u"] - 1.0 / beta) / alpha,
                1.0 / total,
                -beta * two * slope_d * r_d,
                -alpha * one * slope_n * r_n,
            ]
        )
        return np.log(total), jacobian


@dataclass(frozen=True)
class Broken(Shape):
    """b D^-c0 (1 + (D/d1)^(1/f1))^(-c1 f1): one smooth break (Caballero et al. 2022)."""

    parameters: tuple[Parameter, ...]
    variables: tuple[str, ...] = ("d",)

    def evaluate(self, theta: Array, x: Variables) -> tuple[Array, Array]:
        level, c0, c1, place, width = (row[:, None] for row in theta)
        scaled = (x["d"] - place) / width
        bend = np.logaddexp(0.0, scaled)
        beyond = np.exp(scaled - bend)  # share of the way past the break
        ones = np.ones_like(bend)
        jacobian = np.stack(
            [
                ones,
                -x["d"] * ones,
                -width * bend,
                c1 * beyond,
                -c1 * (bend - beyond * scaled),
            ]
        )
        return level - c0 * x["d"] - c1 * width * bend, jacobian


def _decayed(excess: Array, rate: Array) -> tuple[Array, Array, Array]:
    """log of 1 + R (1 - exp(-r/R)), r = exp(excess) - 1; its slope in R; 1 less that in excess."""
    ratio = np.exp(np.clip(excess, 0.0, _FAR))
    z = np.minimum((ratio - 1.0) / rate, EXP_LIMIT)
    fade = np.exp(-z)
    gain = 1.0 + rate * (1.0 - fade)
    return np.log(gain), (1.0 - fade - z * fade) / gain, 1.0 - fade * ratio / gain
