"""The rule that picks a learning rate, on made tables: every branch, and that a ladder comes to an end.

Pins: the choice is the largest rate within one seed sd that turned with S >= 40; where there is
none the cost is told; a ladder grows towards the answer and asks for nothing twice.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repro.experiments.lr_choice import Ladder, choose, larger, predict, score, spread

COLUMNS = ["rate", "pairs", "seed", "mael", "steps", "state"]
Row = tuple[float, int, int, float, float, str]


def table(rows: list[Row]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=COLUMNS).assign(at_first=False)


def bowl(
    best: float, steps_at_one: float, noise: float = 0.01, diverges: float = np.inf
) -> Callable[[float, int, int], Row]:
    """A model whose log MAEL is a parabola in log rate, and whose S falls as the rate rises."""

    def made(rate: float, pairs: int, seed: int) -> Row:
        shift = noise * (0.0, 1.0, -1.0, 0.5)[seed % 4]
        mael = 2.0 * pairs**-0.1 * np.exp(0.05 * np.log2(rate / best) ** 2 + shift)
        state = "diverged" if rate > diverges else "turned"
        return (rate, pairs, seed, mael, steps_at_one / rate * (pairs / 320) ** 0.5, state)

    return made


def climbed(ladder: Ladder, made: Callable[[float, int, int], Row]) -> pd.DataFrame:
    rows: list[Row] = []
    for _ in range(60):
        cells = ladder.missing(table(rows))
        if not cells:
            return table(rows)
        assert not set(cells) & {row[:3] for row in rows}
        rows += [made(*cell) for cell in cells]
    raise AssertionError("the ladder does not end")


def test_it_takes_the_largest_within_one_seed_sd() -> None:
    rows = [(0.1, 10, seed, mael, 90, "turned") for seed, mael in enumerate((1.00, 1.02, 0.98))]
    rows += [(0.2, 10, 0, 1.015, 60, "turned"), (0.4, 10, 0, 1.2, 50, "turned")]
    choice = choose(table(rows))
    assert (choice.rate, choice.best, choice.met) == (0.2, 0.1, True)
    assert choice.sd == pytest.approx(np.std(np.log([1.0, 1.02, 0.98]), ddof=1))
    assert choice.cost == pytest.approx(1.015 / (1.02 * 0.98) ** (1 / 3) - 1)


@pytest.mark.parametrize(
    ("rows", "rate", "word"),
    [
        # the best has too few steps: the largest that has enough, and what it costs
        ([(0.1, 1.2, 80, "turned"), (0.2, 1.1, 45, "turned"), (0.4, 1.0, 30, "turned")], 0.2, "10.0%"),
        # none has enough steps
        ([(0.2, 1.1, 30, "turned"), (0.4, 1.0, 20, "turned")], 0.4, "NO rate has S >= 40"),
        # a run that still falls, or is flat, does not count as turned
        ([(0.2, 1.1, 60, "turned"), (0.4, 1.0, 60, "censored")], 0.2, "costs 10.0%"),
        ([(0.2, 1.1, 60, "plateau"), (0.4, 1.0, 60, "plateau")], 0.4, "NO rate turned"),
        # what diverged is never the best, whatever its lowest loss was
        ([(0.2, 1.1, 60, "turned"), (0.4, 0.1, 60, "diverged")], 0.2, "largest within"),
        ([(0.2, None, None, "diverged"), (0.4, None, None, "diverged")], 0.2, "diverged"),
    ],
)  # fmt: skip
def test_where_the_rule_cannot_be_met_it_says_so(rows: list, rate: float, word: str) -> None:
    choice = choose(table([(r, 10, 0, mael, steps, state) for r, mael, steps, state in rows]))
    assert choice.rate == rate
    assert word in choice.reason
    assert choice.met == ("largest within" in choice.reason)


def test_a_minimum_at_the_first_reading_shows_no_steps() -> None:
    rows = table([(0.1, 10, 0, 1.05, 60, "turned"), (0.2, 10, 0, 1.0, 44, "turned")])
    assert choose(rows).rate == 0.2
    choice = choose(rows.assign(at_first=[False, True]))
    assert (choice.rate, choice.met) == (0.1, False)
    alone = choose(rows.iloc[1:].assign(at_first=True))
    assert "NO rate has S >= 40" in alone.reason
    assert "the first reading is the lowest" in alone.reason
    assert alone.as_dict()["steps"] is None


def test_what_larger_rates_cost_is_told() -> None:
    rows = [(0.1, 10, 0, 1.0, 90, "turned"), (0.2, 10, 0, 1.1, 60, "turned")]
    rows += [(0.4, 10, 0, 1.2, 30, "turned"), (0.8, 10, 0, 1.3, 60, "censored")]
    ((rate, cost, steps),) = larger(table(rows))
    assert (rate, steps) == (0.2, 60)
    assert cost == pytest.approx(0.1)


def test_one_bad_size_counts() -> None:
    rows: list[Row] = [(0.1, d, 0, 1.0, 50, "turned") for d in (10, 20)]
    rows += [(0.2, 10, 0, 0.9, 50, "turned"), (0.2, 20, 0, 0.9, 50, "diverged")]
    assert choose(table(rows)).rate == 0.1
    rows = [(0.1, 10, 0, 1.0, 39, "turned"), (0.1, 20, 0, 1.0, 90, "turned")]
    assert score(table(rows))["steps"].tolist() == [39]


@pytest.mark.slow
@settings(deadline=None, max_examples=40)
@given(
    best=st.sampled_from([1e-4, 1e-3, 3e-2]),
    start=st.sampled_from([1e-4, 1e-3, 1e-2]),
    share=st.floats(0.05, 8.0),
    ceiling=st.sampled_from([2.0, 4.0, np.inf]),
)
def test_a_ladder_grows_to_the_answer_and_ends(
    best: float, start: float, share: float, ceiling: float
) -> None:
    """S = 40 at `share` times the best rate; the model diverges above `ceiling` times it."""
    ladder = Ladder((start / 2, start, 2 * start), (320, 1280))
    made = bowl(best, 40 * best * share, diverges=1.01 * best * ceiling)
    found = climbed(ladder, made)
    choice = choose(found)
    assert len(found["rate"].unique()) <= 11
    inside = start / 100 < best < start * 60 and share > 1 / 16
    if inside:
        assert 0.7 < choice.best / best < 1.5
        assert choice.steps >= 40 or share < 0.1
        assert choice.rate <= best * 2.1
    for rate in {choice.rate, choice.best}:
        assert len(found[(found["rate"] == rate) & (found["pairs"] == 320)]) == 3
    assert np.isfinite(spread(found))


def test_a_fixed_ladder_does_not_grow_and_bounds_are_kept() -> None:
    fixed = climbed(Ladder((1e-3, 2e-3), (320,), extend=False), bowl(1e-1, 1.0))
    assert set(fixed["rate"]) == {1e-3, 2e-3}
    bounded = climbed(Ladder((1e-3, 2e-3), (320,), below=0.01), bowl(1e-1, 10.0))
    assert bounded["rate"].max() == 8e-3


def test_other_models_follow_by_a_power_of_the_width() -> None:
    rates, rule = predict({"a": 4e-3, "b": 1e-3}, {"a": 32, "b": 64, "c": 128, "d": 32}, ["c", "d"])
    assert rates == {"c": 2.5e-4, "d": 4e-3}
    assert "width^-2.00" in rule
    rates, rule = predict({"a": 4e-3}, {"a": 32, "c": 128}, ["c"])
    assert rates == {"c": 1e-3}
    assert "halved" in rule
    rates, _ = predict({"a": 1e-3, "b": 4e-3}, {"a": 32, "b": 64, "c": 128}, ["c"])
    assert rates == {"c": 2e-3}  # never a higher rate for a larger model
