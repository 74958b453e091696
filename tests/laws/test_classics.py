"""Pins: notebook 09's known answers come out, and its traps are traps."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from repro.errors import UserError
from repro.laws import classics, published


def test_amaris_exponents_are_recovered() -> None:
    found = classics.amari_exponents(classics.amari(np.random.default_rng(0)))
    assert found["found"].to_numpy() == pytest.approx(found["expected"].to_numpy(), rel=0.06)
    assert found["floor"].iloc[-1] == pytest.approx(0.25, rel=1e-2)


def test_a_power_law_is_only_seen_between_chance_and_floor() -> None:
    _, ranges = classics.regimes(np.random.default_rng(0))
    early, middle, late = ranges.iloc[:, 2]
    assert early < 0.1
    assert late < 0.2
    assert middle == pytest.approx(0.3, abs=0.05)


def test_only_the_true_form_extrapolates() -> None:
    found = classics.small_to_large(np.random.default_rng(0)).set_index("law")["mean error"]
    assert found.idxmin() == "additive_floor"
    assert found["additive_floor"] < 0.05 < found.drop("additive_floor").min()


def test_kaplans_constants_come_back() -> None:
    found = classics.kaplan().head(4)
    np.testing.assert_allclose(found["computed"], found["paper"].astype(float), rtol=1e-6)


def test_three_approaches_find_the_published_laws_exponent() -> None:
    found = classics.approaches(np.random.default_rng(0))
    assert found["error"].abs().max() < 0.03


def test_leaving_out_embeddings_raises_the_exponent_at_small_compute() -> None:
    found = classics.counting().set_index(["compute", "N and C count"])["a"].unstack()
    small, large = found.iloc[-1], found.iloc[0]  # sorted: large, middle, small
    assert small["without embeddings"] > 0.7
    assert large["without embeddings"] == pytest.approx(0.5, abs=0.03)
    assert found["all parameters"].to_numpy() == pytest.approx(0.5, abs=0.03)


def test_a_floor_that_is_not_there_is_zero_half_of_the_time() -> None:
    found = classics.vanishing_floor(np.random.default_rng(0), 60)
    assert 0.35 < (found == 0).mean() < 0.7


def test_published_fits_on_points() -> None:
    name = os.environ.get("REPRO_REFERENCE_DATA")
    table, source = published.chinchilla_points(
        Path(name) if name else None, np.random.default_rng(0)
    )
    assert len(table) == 240
    assert ("made" in source) == (name is None)
    _, costs = published.chinchilla_refit(table)
    assert costs["ratio"][2] > 3  # rounding triples the objective
    reduced = published.mean_or_sum(table).set_index("Huber reduced by")["ratio"]
    assert reduced["sum"] < 1.0001 < reduced["mean"]  # the mean stops early
    if name is None:
        with pytest.raises(UserError, match="not here"):
            published.repeated_profile(None)
