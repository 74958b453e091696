"""Where the curve is read, the four states, and the interpolated minimum."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from repro.train.curve import CurveParams, minimum, readings, state, worth_reading


@given(st.floats(0.05, 20), st.integers(50, 4000), st.floats(1, 30), st.floats(1.02, 1.15))
def test_readings_are_log_spaced_and_end_with_the_last_step(
    rate: float, max_steps: int, first: float, ratio: float
) -> None:
    params = CurveParams(first=first, ratio=ratio, max_steps=max_steps)
    lr_steps = rate * np.arange(1, max_steps + 1)
    steps = readings(lr_steps, params)
    assert steps[-1] == max_steps
    assert (np.diff(steps) > 0).all()
    inner = lr_steps[steps[:-1] - 1]
    assert (inner >= first * (1 - 1e-9)).all()
    # a step apart, or no further than the ratio allows (rounding up to whole steps)
    gaps = np.diff(inner)
    assert ((gaps <= rate * 1.0001) | (inner[1:] <= inner[:-1] * ratio + rate * 1.0001)).all()


PARAMS = CurveParams(first=1, max_steps=1000)
SURE = np.full(400, 0.5) + np.linspace(-0.1, 0.1, 400)
UNSURE = np.full(400, 0.01) + np.linspace(-3, 3, 400)
CASES = [
    ("turned", [1, 2, 3, 4.6], [3, 2, 1, 1.5], SURE, False),
    (None, [1, 2, 3, 4.4], [3, 2, 1, 1.5], SURE, False),  # not yet half past the minimum
    (None, [1, 2, 3, 4.6], [3, 2, 1, 1.01], UNSURE, False),  # past it, but no clear rise
    ("plateau", [1, 2, 3, 9.1], [3, 2, 1, 1.01], UNSURE, False),
    ("plateau", [1, 2, 3, 4.6], [3, 2, 1, 1.01], UNSURE, True),
    ("censored", [1, 2, 3, 4], [3, 2, 1, 0.9], -SURE, True),
    ("diverged", [1, 2, 3], [3, 2, np.nan], np.full(400, np.nan), False),
    ("diverged", [1, 2, 3], [3, 2, np.inf], np.full(400, np.inf), True),
]


@pytest.mark.parametrize(("expected", "lr_steps", "loss", "rise", "last"), CASES)
def test_states(
    expected: str | None, lr_steps: list[float], loss: list[float], rise: np.ndarray, last: bool
) -> None:
    found = state(np.array(lr_steps), np.array(loss), rise, PARAMS, passes=2.0, last=last)
    assert found == expected


def test_a_run_does_not_end_before_it_has_seen_its_pairs() -> None:
    turned = (np.array([1.0, 2, 3, 4.6]), np.array([3.0, 2, 1, 1.5]), SURE, PARAMS)
    assert state(*turned, passes=1.9, last=False) is None
    assert state(*turned, passes=1.9, last=True) == "turned"
    assert state(*turned, passes=2.0, last=False) == "turned"


@given(st.floats(5, 500), st.floats(0.01, 3))
def test_a_parabola_in_log_steps_gives_its_vertex(vertex: float, bend: float) -> None:
    x = np.exp(np.arange(0, 8, 0.13))
    y = 2 + bend * (np.log(x) - np.log(vertex)) ** 2
    mael, position = minimum(x, y)
    assert mael == y.min()  # read, not interpolated
    assert position == pytest.approx(vertex, rel=1e-6)


def test_a_minimum_at_an_end_is_that_reading() -> None:
    assert minimum(np.array([1.0, 2.0, 4.0]), np.array([3.0, 2.0, 1.0])) == (1.0, 4.0)
    assert minimum(np.array([1.0, 2.0, 4.0]), np.array([1.0, 2.0, 3.0])) == (1.0, 1.0)


@given(st.floats(0.01, 0.9), st.floats(1, 1e3))
def test_readings_take_their_share_and_no_more(share: float, reading: float) -> None:
    params = CurveParams(share=share)
    spent, since, readings_made = 0.0, 0.0, 0
    for place in np.unique((8 * 1.15 ** np.arange(60)).astype(int)):
        since += place - spent
        spent = float(place)
        if worth_reading(since, reading, params):
            readings_made, since = readings_made + 1, 0.0
    assert readings_made * reading <= (spent * share) / (1 - share) * (1 + 1e-9)
    assert readings_made > 0 or spent * share < reading * (1 - share)
