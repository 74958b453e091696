"""The validation curve of a run: where it is read, when the run stops, and what state it ends in.

MAEL is the minimum of the curve, read on a grid that is log-spaced in lr-steps: the sum of the
learning rates up to a step over one reference rate.  S, the position of the minimum, is
interpolated; MAEL is not.
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from repro.params import Params, switch

State = Literal["turned", "plateau", "censored", "diverged"]


class CurveParams(Params):
    """Where the curve is read and when a run may stop."""

    first: Annotated[float, Field(gt=0, le=1e6)] = 8.0  # lr-steps at the first reading
    ratio: Annotated[float, Field(gt=1, le=1.15)] = 1.15  # of one reading to the next
    # Of the FLOPs since the last reading: a reading that costs more waits for the next place.
    share: Annotated[float, Field(gt=0, lt=1)] = 0.5
    max_steps: Annotated[int, Field(ge=1, le=10_000_000)] = 10_000
    # Passes over the pairs at which a run ends too, where that comes first (SIGIR'24's code: 80).
    most_passes: Annotated[float, Field(gt=0, le=1e6)] | None = switch(None)
    turned_sd: Annotated[float, Field(ge=1, le=100)] = 3.0  # rise, in standard errors (paired)
    # lr-steps over those at the minimum before it counts: after a clear rise, and without one.
    turned_past: Annotated[float, Field(ge=1.15, le=100)] = 1.5
    plateau_past: Annotated[float, Field(ge=1.5, le=100)] = 3.0
    # Passes over the pairs before a run may end.
    least_passes: Annotated[float, Field(ge=0, le=100)] = 2.0


def readings(lr_steps: NDArray[np.float64], params: CurveParams) -> NDArray[np.int64]:
    """The steps (from 1) at which the curve is read; the last step is always one of them.

    lr_steps: float [max_steps], the sum of learning rates after each step over the reference rate.
    """
    last = max(float(lr_steps[-1]), params.first)
    n = int(np.log(last / params.first) / np.log(params.ratio)) + 1
    grid = params.first * params.ratio ** np.arange(n)
    steps = np.searchsorted(lr_steps, grid * (1 - 1e-12)) + 1
    return np.unique(np.append(steps[steps <= len(lr_steps)], len(lr_steps)))


def worth_reading(trained: float, reading: float, params: CurveParams) -> bool:
    """Whether a reading is at most `share` of what is spent, both in FLOPs since the last one.

    Readings stand apart by a ratio, so that only the early ones, far before most minima, wait.
    """
    return reading * (1 - params.share) <= trained * params.share


def state(
    lr_steps: NDArray[np.float64],
    loss: NDArray[np.float64],
    rise: NDArray[np.float64],
    params: CurveParams,
    *,
    passes: float,
    last: bool,
) -> State | None:
    """The state in which the run ends now, or None where it goes on.

    lr_steps, loss: float [r], the readings so far (after step 0).
    rise: float [m], per validation pair: the loss at the last reading less that at the minimum.
    passes: over the training pairs, so far.  The first steps may raise the loss for a while; a run
    that ended there would not have seen its pairs.
    last: whether the run has no more steps.
    """
    if not np.isfinite(loss[-1]):
        return "diverged"
    if passes < params.least_passes and not last:
        return None
    past = lr_steps[-1] / lr_steps[int(np.argmin(loss))]
    error = rise.std(ddof=1) / np.sqrt(len(rise))
    if past >= params.turned_past and rise.mean() > 0 and rise.mean() >= params.turned_sd * error:
        return "turned"
    if past >= params.plateau_past:
        return "plateau"
    if last:
        return "plateau" if past >= params.turned_past else "censored"
    return None


def minimum(lr_steps: NDArray[np.float64], loss: NDArray[np.float64]) -> tuple[float, float]:
    """MAEL, read (nats), and the lr-steps of the minimum, interpolated.

    The position is the vertex of the parabola in log lr-steps through the lowest reading and its
    neighbours; at an end of the curve it is the reading itself.
    """
    i = int(np.argmin(loss))
    if i in (0, len(loss) - 1):
        return float(loss[i]), float(lr_steps[i])
    x, y = np.log(lr_steps[i - 1 : i + 2]), loss[i - 1 : i + 2]
    left, right = (y[0] - y[1]) / (x[1] - x[0]), (y[2] - y[1]) / (x[2] - x[1])
    bend = left + right  # not negative: y[1] is the lowest
    if bend <= 0:
        return float(loss[i]), float(lr_steps[i])
    vertex = (x[0] + x[1]) / 2 + left / bend * (x[2] - x[0]) / 2
    return float(loss[i]), float(np.exp(np.clip(vertex, x[0], x[2])))
