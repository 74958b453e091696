"""The mathematics of the laws: a log-prediction and its derivatives, for many parameter vectors at
once.

Everything here works in *internal* coordinates, chosen so that fits are well conditioned:
x[v] = log v - centre[v] for each variable, losses divided by their geometric mean, and for each
power term the logarithm of its value at the centre instead of its constant.  `Parameter` says how
an internal coordinate becomes the constant that the papers print.

Arrays: theta (P, B) for B parameter vectors, x[v] (M,), log-prediction (B, M), Jacobian (P, B, M).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Variables = Mapping[str, Array]
Kind = Literal["exponent", "constant", "radius", "level", "shift", "place", "free"]

LOGGED: tuple[Kind, ...] = (
    "constant",
    "radius",
    "place",
)  # constants whose logarithm is near normal
EXP_LIMIT = 600.0  # exp() of more than 709 overflows float64


@dataclass(frozen=True)
class Parameter:
    """One parameter of a law, its meaning, its bounds, and how it is held internally.

    What each `kind` of coordinate is, and the constant that is printed for it:

    - exponent, free: both are the same number.
    - constant: the log of its term at the centre; exp(theta + log scale + sum of exponent x centre).
    - radius: likewise; the X of a term (X/v)^exponent.
    - level: a loss (or a factor of one), may be 0; theta x scale x exp(sum of exponent x centre).
    - shift: an amount of `variable` in units of its centre, may be 0; theta x exp(centre).
    - place: the log of an amount of `variable` over its centre; exp(theta + centre).

    `powers` names, for a term's constant, (variable, exponent, sign) of each factor.
    """

    name: str
    meaning: str
    kind: Kind = "exponent"
    bounds: tuple[float, float] = (0.0, 10.0)  # internal coordinates
    start: tuple[float, float] = (0.05, 1.5)  # range from which starts are drawn, internal
    powers: tuple[tuple[str, str, float], ...] = ()
    variable: str = ""


class Shape:
    """A log-prediction with derivatives: `parameters`, `variables`, `evaluate`."""

    parameters: tuple[Parameter, ...]
    variables: tuple[str, ...]
    centred_with: Mapping[str, str] = MappingProxyType(
        {}
    )  # a variable that shares another's centre
    may_be_zero: frozenset[str] = frozenset()  # variables that the shape takes at zero

    def evaluate(self, theta: Array, x: Variables) -> tuple[Array, Array]:
        """Log-prediction (B, M) and its Jacobian (P, B, M) at theta (P, B)."""
        raise NotImplementedError

    def second(self, theta: Array, x: Variables, jacobian: Array, psi: Array) -> Array:
        """Sum over points of psi (B, M) times the Hessian of the log-prediction: (P, P, B)."""
        bent, partial = self.bending(theta, x, jacobian, psi)
        return bent - gram(jacobian, psi) if partial else bent

    def bending(
        self, theta: Array, x: Variables, jacobian: Array, psi: Array
    ) -> tuple[Array, bool]:
        """What `second` is made of: (P, P, B), and whether - sum psi J J' is still to be added.

        Here by central differences of the analytic Jacobian; `PowerSum` has it in closed form,
        of the prediction instead of its logarithm, which saves a pass over the points.
        """
        size = len(theta)
        out = np.empty((size, size, theta.shape[1]))
        for q in range(size):
            step = 1e-6 * np.maximum(np.abs(theta[q]), 1e-2)
            up, down = theta.copy(), theta.copy()
            up[q] += step
            down[q] -= step
            difference = self.evaluate(up, x)[1] - self.evaluate(down, x)[1]
            out[:, q] = np.einsum("pbm,bm->pb", difference, psi) / (up[q] - down[q])
        return (out + out.swapaxes(0, 1)) / 2, False

    def guess(self, draws: Array, x: Variables, y: Array, weights: Array) -> Array:
        """Starting points (P, B) from uniform draws (P, B): each within its parameter's range."""
        low = np.array([p.start[0] for p in self.parameters])[:, None]
        high = np.array([p.start[1] for p in self.parameters])[:, None]
        return low + draws * (high - low)


@dataclass(frozen=True)
class Joint(Shape):
    """[(A/N)^(alpha/beta) + B/D]^beta, the form of Kaplan 2020 (eq. 1.5) and of SIGIR'24."""

    parameters: tuple[Parameter, ...]
    variables: tuple[str, ...] = ("n", "d")

    def evaluate(self, theta: Array, x: Variables) -> tuple[Array, Array]:
        p, alpha, q, beta = (row[:, None] for row in theta)
        first = (p - alpha * x["n"]) / beta
        second = q / beta - x["d"]
        total = np.logaddexp(first, second)
        share = np.exp(first - total)
        other = 1.0 - share
        jacobian = np.stack(
            [share, -share * x["n"], other, total - share * first - other * (q / beta)]
        )
        return beta * total, jacobian


@dataclass(frozen=True)
class Wrapped(Shape):
    """Another law with one more parameter, `extra`, which comes last."""

    inner: Shape
    extra: Parameter

    @property
    def parameters(self) -> tuple[Parameter, ...]:  # type: ignore[override]
        return (*self.inner.parameters, self.extra)

    @property
    def variables(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.inner.variables


class Floored(Wrapped):
    """inner + extra."""

    def evaluate(self, theta: Array, x: Variables) -> tuple[Array, Array]:
        value, jacobian = self.inner.evaluate(theta[:-1], x)
        power = np.exp(np.clip(value, -EXP_LIMIT, EXP_LIMIT))
        total = power + theta[-1][:, None]
        return np.log(total), np.concatenate([jacobian * (power / total), 1.0 / total[None]])


class Capped(Wrapped):
    """inner / sqrt(1 + (inner/extra)^2): saturates at chance (envelope of Rosenfeld 2020)."""

    def evaluate(self, theta: Array, x: Variables) -> tuple[Array, Array]:
        value, jacobian = self.inner.evaluate(theta[:-1], x)
        cap = theta[-1][:, None]
        ratio = 2.0 * (value - np.log(cap))
        saturation = 1.0 / (1.0 + np.exp(-np.clip(ratio, -EXP_LIMIT, EXP_LIMIT)))
        log_prediction = value - 0.5 * np.logaddexp(0.0, ratio)
        return log_prediction, np.concatenate(
            [jacobian * (1.0 - saturation), (saturation / cap)[None]]
        )

    def guess(self, draws: Array, x: Variables, y: Array, weights: Array) -> Array:
        start = self.inner.guess(draws[:-1], x, y, weights)
        top = float(np.exp(y.max()))
        return np.concatenate([start, top * (1.05 + 2.0 * draws[-1:])])


def to_natural(shape: Shape, theta: Array, centre: Mapping[str, float]) -> Array:
    """Internal coordinates (P, B) to printed constants; `centre` has log-centres and "loss"."""
    names = {p.name: i for i, p in enumerate(shape.parameters)}
    out = np.array(theta, dtype=float)
    scale = centre["loss"]
    for i, parameter in enumerate(shape.parameters):
        offset = sum(
            (
                -sign * theta[names[exponent]] * centre[variable]
                for variable, exponent, sign in parameter.powers
            ),
            np.zeros(theta.shape[1]),
        )
        if parameter.kind == "constant":
            out[i] = np.exp(np.clip(theta[i] + scale + offset, -EXP_LIMIT, EXP_LIMIT))
        elif parameter.kind == "radius":
            variable, exponent, _ = parameter.powers[0]
            power = np.maximum(np.abs(theta[names[exponent]]), 1e-9)
            out[i] = np.exp(
                np.clip((theta[i] + scale) / power + centre[variable], -EXP_LIMIT, EXP_LIMIT)
            )
        elif parameter.kind == "level":
            out[i] = theta[i] * np.exp(scale + offset)
        elif parameter.kind == "shift":
            out[i] = theta[i] * np.exp(centre[parameter.variable])
        elif parameter.kind == "place":
            out[i] = np.exp(
                np.clip(theta[i] + centre.get(parameter.variable, 0.0), -EXP_LIMIT, EXP_LIMIT)
            )
    return out


def to_internal(shape: Shape, natural: Array, centre: Mapping[str, float]) -> Array:
    """The inverse of `to_natural`."""
    names = {p.name: i for i, p in enumerate(shape.parameters)}
    out = np.array(natural, dtype=float)
    scale = centre["loss"]
    for i, parameter in enumerate(shape.parameters):
        offset = sum(
            (
                -sign * natural[names[exponent]] * centre[variable]
                for variable, exponent, sign in parameter.powers
            ),
            np.zeros(natural.shape[1]),
        )
        if parameter.kind == "constant":
            out[i] = np.log(natural[i]) - scale - offset
        elif parameter.kind == "radius":
            variable, exponent, _ = parameter.powers[0]
            out[i] = (np.log(natural[i]) - centre[variable]) * natural[names[exponent]] - scale
        elif parameter.kind == "level":
            out[i] = natural[i] * np.exp(-scale - offset)
        elif parameter.kind == "shift":
            out[i] = natural[i] * np.exp(-centre[parameter.variable])
        elif parameter.kind == "place":
            out[i] = np.log(natural[i]) - centre.get(parameter.variable, 0.0)
    return out


def stack_variables(
    columns: Mapping[str, Array], names: Sequence[str], centre: Mapping[str, float]
) -> dict[str, Array]:
    """Centred logarithms of the named columns; that of zero is -inf (a shift mends it)."""
    with np.errstate(divide="ignore"):
        return {name: np.log(columns[name]) - centre[name] for name in names}


def log_constants(shape: Shape, natural: Array) -> Array:
    """Printed parameters (P, B) with the constants as logarithms."""
    out = natural.copy()
    for i, parameter in enumerate(shape.parameters):
        if parameter.kind in LOGGED:
            out[i] = np.log(np.maximum(natural[i], 1e-300))
    return out


def gram(jacobian: Array, weights: Array) -> Array:
    """Sum over points of weight (B, M) x outer product of the Jacobian (P, B, M): (P, P, B)."""
    size = len(jacobian)
    out = np.empty((size, size, jacobian.shape[1]))
    for p in range(size):
        weighted = jacobian[p] * weights
        for q in range(p, size):
            out[p, q] = out[q, p] = np.einsum("bm,bm->b", weighted, jacobian[q])
    return out
