"""Pins: grids too small for a law in N and D are answered, not failed; first readings prove nothing."""

from __future__ import annotations

import pytest
from tests.experiments import synthetic

from repro.experiments import classical, law_fits


@pytest.mark.parametrize("models", [{"1x32": 10_000}, {"1x32": 10_000, "2x64": 90_000}])
def test_the_product_law_of_a_small_grid_is_none(models: dict[str, int]) -> None:
    table = synthetic.grid_table(synthetic.product, models)
    assert (law_fits.product(table) is None) == (len(models) == 1)


def test_steps_that_are_first_readings_decide_nothing() -> None:
    table = synthetic.reseeded(synthetic.product)
    blocked = classical.fewer_samples(table.assign(at_first=True, steps=9.0))
    assert blocked["holds"] is None
    assert blocked["blocked"]


def test_a_cell_counts_once_however_many_seeds_it_has() -> None:
    table = synthetic.reseeded(synthetic.product)
    assert classical.fewer_samples(table.assign(at_first=False))["n"] == 30
