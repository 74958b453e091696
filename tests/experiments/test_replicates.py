"""Pins: seeds of one cell are one fact for the laws, and their spread is the noise of a seed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from tests.experiments import synthetic

from repro.experiments import law_choice, law_fits, metric_link
from repro.experiments.replicates import cell_means, seed_noise
from repro.laws.effects import balanced
from repro.laws.fit import fit
from repro.laws.intervals import intervals

TABLE = synthetic.reseeded(synthetic.product, noise=0.01)


def test_the_pooled_noise_by_hand() -> None:
    cell = {"model": "a", "state": "turned"}
    rows = [(320, 2.0), (320, 2.2), (640, 1.0), (640, 1.1), (640, 1.2), (1280, 0.9)]
    table = pd.DataFrame([{**cell, "d": d, "mael": mael} for d, mael in rows])
    found = seed_noise(table)
    assert found is not None
    assert (found.df, found.cells) == (3, 2)
    assert found.sd == pytest.approx(((0.02 + 0.02) / 3) ** 0.5)
    low, high = found.ci95
    assert low < found.sd < high


def test_the_noise_is_that_of_the_runs() -> None:
    found = [seed_noise(synthetic.reseeded(synthetic.product, 0.01, k)) for k in range(60)]
    assert {noise.df for noise in found if noise} == {10}
    assert np.mean([noise.relative**2 for noise in found if noise]) == pytest.approx(1e-4, rel=0.15)


def test_one_seed_tells_no_noise_nor_do_runs_without_a_minimum() -> None:
    assert seed_noise(synthetic.grid_table(synthetic.product)) is None
    table = TABLE.assign(state=np.where(TABLE["seed"] > 0, "censored", "turned"))
    assert seed_noise(table) is None


def test_a_cell_is_one_row_whatever_its_seeds() -> None:
    cells = cell_means(TABLE)
    assert len(cells) == 30
    assert cells["seeds"].sum() == len(TABLE) == 40
    one = cells[(cells["model"] == "1x32") & (cells["d"] == 10240)].iloc[0]
    own = TABLE[(TABLE["model"] == "1x32") & (TABLE["d"] == 10240)]
    assert one["mael"] == pytest.approx(own["mael"].mean())
    assert one["seeds"] == 3


def test_a_cell_is_what_the_worst_of_its_runs_is() -> None:
    table = TABLE.copy()
    own = table.index[(table["model"] == "1x32") & (table["d"] == 10240)]
    table.loc[own[:2], "state"] = ["diverged", "plateau"]
    cell = cell_means(table).set_index(["model", "d"]).loc[("1x32", 10240)]
    assert (cell["state"], cell["seeds"]) == ("plateau", 2)


def test_laws_see_a_balanced_grid_of_equal_cells() -> None:
    losses = law_fits.losses(TABLE)
    assert len(losses) == 30
    assert set(losses.weight) == {1.0}
    assert balanced(losses, ("n", "d"))
    # The estimate and the centre of its interval are one number, as on any balanced grid.
    fitted = fit("product", losses)
    low, high = intervals(fitted)["alpha"]
    assert (low + high) / 2 == pytest.approx(fitted.parameters["alpha"], rel=1e-6)


def test_a_bound_yields_to_a_seed_that_reached_its_minimum() -> None:
    table = TABLE.copy()
    own = table.index[(table["model"] == "1x32") & (table["d"] == 10240)]
    table.loc[own[0], ["state", "mael"]] = ["censored", 9.0]
    losses = law_fits.losses(table)
    assert not losses.bound.any()
    assert losses.loss.max() < 9


@pytest.mark.slow
def test_coverage_of_the_exponents_with_reseeded_cells() -> None:
    """Model effects of 1 %, noise of 1 %: 95 % intervals cover, though five cells rest on three runs."""
    rng, hits, draws = np.random.default_rng(3), np.zeros(2), 300
    clean = synthetic.reseeded(synthetic.product, noise=0)
    for _ in range(draws):
        effect = dict(zip(synthetic.FIVE, 0.01 * rng.standard_normal(5), strict=True))
        noise = 0.01 * rng.standard_normal(len(clean)) + clean["model"].map(effect).to_numpy(float)
        table = clean.assign(mael=clean["mael"] * np.exp(noise))
        found = intervals(fit("product", law_fits.losses(table)))
        for k, (name, truth) in enumerate((("alpha", 0.1), ("beta", 0.2))):
            hits[k] += found[name][0] < truth < found[name][1]
    assert np.all(np.abs(hits / draws - 0.95) < 0.035), hits / draws


@pytest.mark.slow
def test_the_evaluation_sample_is_that_of_cells() -> None:
    rng = np.random.default_rng(0)
    pairs = {(r.model, r.d, r.seed): r.mael * rng.exponential(size=40) for r in TABLE.itertuples()}
    plain, wide = (law_choice.answers(TABLE, losses)["M6"] for losses in (None, pairs))
    assert plain["n"] == wide["n"] == 30
    for name in ("alpha", "beta"):
        assert np.ptp(wide["parts"][name]["ci95"]) > np.ptp(plain["parts"][name]["ci95"])
    assert "evaluation sample" in wide["why"]


def test_correlations_count_cells() -> None:
    found = metric_link.answers(TABLE)
    assert {row["n"] for row in found["correlations"]} == {30}
    assert {row["n"] for row in found["within"]} == {5, 6}
