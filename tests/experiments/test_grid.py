"""Pins: re-seeded cells lie on an anti-diagonal, one a model, under seeds of their own."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from repro.experiments import grid
from repro.experiments.grid import GridParams, anti_diagonal

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
    assert params.seeding() == "1 seed"
