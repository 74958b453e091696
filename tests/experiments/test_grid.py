"""Pins: re-seeded cells lie on an anti-diagonal; `sizes: auto` doubles as far as the data go."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from repro.errors import UserError
from repro.experiments import grid
from repro.experiments.grid import LEAST, GridParams, anti_diagonal

SIZES = st.lists(st.integers(2, 100_000), min_size=1, max_size=9, unique=True)


def test_a_grid_of_five_by_six_is_seeded_again_from_corner_to_corner() -> None:
    sizes = [320, 640, 1280, 2560, 5120, 10240]
    found = anti_diagonal(["a", "b", "c", "d", "e"], sizes)
    assert found == [("a", 10240), ("b", 5120), ("c", 1280), ("d", 640), ("e", 320)]


def test_a_square_grid_has_one_anti_diagonal() -> None:
    assert anti_diagonal("abc", [3, 1, 2]) == [("a", 3), ("b", 2), ("c", 1)]


@given(models=st.integers(1, 9), sizes=SIZES)
def test_one_cell_a_model_falling_from_the_largest_size(models: int, sizes: list[int]) -> None:
    found = anti_diagonal([str(i) for i in range(models)], sizes)
    assert [model for model, _ in found] == [str(i) for i in range(models)]
    drawn = [size for _, size in found]
    assert drawn == sorted(drawn, reverse=True)
    assert drawn[0] == max(sizes)
    if models > 1:
        assert drawn[-1] == min(sizes)
    if models <= len(sizes):
        assert len(set(drawn)) == models
    place = [sorted(sizes).index(size) for size in drawn]
    line = [(len(sizes) - 1) * (1 - i / max(models - 1, 1)) for i in range(models)]
    assert all(abs(a - b) <= 0.5 + 1e-9 for a, b in zip(place, line, strict=True))


@dataclass
class Plan:
    """What `grid.runs` asks of a study; models of the given sizes."""

    grid: GridParams
    sizes: dict[str, int]

    @property
    def profile(self) -> Any:
        models = {name: SimpleNamespace(weights=name) for name in self.sizes}
        return SimpleNamespace(grid=self.grid, models=models)

    def size(self, weights: str) -> Any:
        return SimpleNamespace(encoder=self.sizes[weights])

    def trained(self, model: str, *, pairs: int, seed: int) -> Any:
        return model, pairs, seed


def test_reseeds_are_more_seeds_of_the_anti_diagonal_alone() -> None:
    params = GridParams(models=["large", "small"], sizes=[10, 20], seeds=[0, 4], reseeds=2)
    found: list[Any] = grid.runs(Plan(params, {"large": 9, "small": 1}))  # type: ignore[arg-type]
    assert len(found) == len(set(found)) == 2 * 2 * 2 + 2 * 2
    assert {run for run in found if run[2] > 4} == {
        (model, pairs, seed) for model, pairs in (("small", 20), ("large", 10)) for seed in (5, 6)
    }
    assert "2 more on an anti-diagonal" in params.seeding()


def test_without_reseeds_nothing_is_run_again() -> None:
    params = GridParams(models=["a", "b"], sizes=[10, 20])
    found: list[Any] = grid.runs(Plan(params, {"a": 1, "b": 2}))  # type: ignore[arg-type]
    assert len(found) == 4
    assert params.seeding() == "1 seed a cell"


@given(available=st.integers(160, 10**7))
def test_auto_doubles_as_far_as_the_data_go(available: int) -> None:
    grid_ = GridParams.model_validate({"models": ["a"], "sizes": "auto"})
    sizes = grid_.settled(available).sizes
    assert sizes[0] == LEAST == 160
    assert all(2 * one == other for one, other in pairwise(sizes))
    assert sizes[-1] <= available < 2 * sizes[-1]


def test_auto_starts_where_it_is_told_and_leaves_no_trace() -> None:
    told = GridParams.model_validate({"models": ["a"], "sizes": "auto from 32"})
    assert told.settled(129).sizes == [32, 64, 128]
    listed = GridParams(models=["a"], sizes=[32, 64, 128])
    assert told.settled(129).model_dump() == listed.model_dump()
    assert listed.settled(5) is listed


def test_auto_goes_no_further_than_it_is_told() -> None:
    told = GridParams.model_validate({"models": ["a"], "sizes": "auto from 80 to 640"})
    assert told.settled(10**6).sizes == [80, 160, 320, 640]
    assert told.settled(639).sizes == [80, 160, 320]
    assert GridParams.model_validate({"models": ["a"], "sizes": "auto to 400"}).settled(
        999
    ).sizes == [
        160,
        320,
    ]


def test_too_few_pairs_for_the_least_size_are_refused() -> None:
    grid_ = GridParams.model_validate({"models": ["a"], "sizes": "auto"})
    with pytest.raises(UserError, match="there are 120 to train on") as caught:
        grid_.settled(120)
    assert "auto from 30" in caught.value.remedy


@pytest.mark.parametrize(
    "sizes", ["automatic", "auto from", "auto from -3", "auto from 1", "160", "auto to 99"]
)
def test_another_word_for_sizes_is_refused(sizes: str) -> None:
    with pytest.raises(ValidationError, match=r"auto from 160|greater than or equal to 2"):
        GridParams.model_validate({"models": ["a"], "sizes": sizes})
