"""Pins: every step of the grid is measured in the noise of a seed, and the weak ones are named."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from tests.experiments import synthetic

from repro.experiments import gains
from repro.experiments.replicates import SeedNoise, seed_noise

NOISE = SeedNoise(0.02, 0.01, 10, 5)


def checks(table: pd.DataFrame, noise: SeedNoise | None = NOISE) -> list[dict[str, object]]:
    return gains.soundness(table, noise)


def of(rows: list[dict[str, object]], along: str) -> dict[str, object]:
    """The check of the steps along an axis in the noise of seeds."""
    return next(row for row in rows if str(row["check"]).startswith(f"moves in {along} that lower"))


def test_steps_of_a_law_without_noise_are_its_differences() -> None:
    table = synthetic.reseeded(synthetic.product, noise=0)
    found = gains.steps(table, NOISE)
    assert (found["along"] == "D").sum() == 25
    assert (found["along"] == "N").sum() == 24
    np.testing.assert_allclose(found.loc[found["along"] == "D", "relative"], 1 - 2**-0.2)
    first = found.iloc[0]
    assert (first["model"], first["before"], first["d"]) == ("1x32", "320", 640)
    law = synthetic.product(np.full(2, 12_704.0), np.array([320.0, 640.0]))
    assert first["drop"] == pytest.approx(law[0] - law[1])
    np.testing.assert_allclose(found["sds"], found["drop"] / 0.02)


def test_a_sound_grid_meets_everything() -> None:
    table = synthetic.reseeded(synthetic.product, noise=0.003)
    table["steps"] += 40
    found = checks(table, seed_noise(table))
    assert len(found) == 9
    confirmed = [row for row in found if "other pairs" in row["check"]]
    assert [row["met"] for row in confirmed] == [None, None]  # no losses of single pairs are given
    assert all(row["met"] for row in found if row not in confirmed), found
    assert [row["found"] for row in found[-2:]] == ["5", "320 to 10,240"]


def test_a_step_is_borne_out_by_other_pairs_or_named() -> None:
    table = synthetic.reseeded(synthetic.product, noise=0)
    rng = np.random.default_rng(0)
    hard = rng.normal(size=400)  # how hard a pair is, alike in all runs: it cancels in a difference
    losses = {
        (run.model, run.d, run.seed): run.mael + hard + 0.01 * rng.normal(size=400)
        for run in table.itertuples()
    }
    found = gains.steps(table, NOISE, pair_losses=losses)
    assert gains.confirmed(found).all()
    luck = (table["model"] == "2x64") & (table["d"] == 640)
    table.loc[luck, "test_entropy"] += 1  # the test pairs do not bear it out
    noisy = dict(losses)
    noisy["1x32", 320, 0] = table["mael"].iloc[0] + 10 * rng.normal(size=400)
    rows = gains.soundness(table, NOISE, pair_losses=noisy)
    said = {row["check"][:10]: row for row in rows if "other pairs" in row["check"]}
    assert "1x32, 320 to 640" in said["moves in D"]["where"]
    assert "2x64, 320 to 640" in said["moves in D"]["where"]
    assert said["moves in D"]["found"] == "23 of 25"
    assert "D = 640, 1x64 to 2x64" in said["moves in N"]["where"]
    assert "D = 320, 1x32 to 1x64" in said["moves in N"]["where"]
    table.loc[(table["model"] == "2x128") & (table["d"] == 640), "state"] = "censored"
    rows = gains.soundness(table, NOISE, pair_losses=losses)
    told = next(row for row in rows if "other pairs" in row["check"])["where"]
    assert "2x128, 320 to 640 (not measured)" in told
    assert "nan" not in told


def test_a_step_that_is_lost_in_the_noise_is_named() -> None:
    table = synthetic.reseeded(synthetic.product, noise=0)
    flat = (table["model"] == "1x64") & (table["d"] == 640)
    before = table.loc[(table["model"] == "1x64") & (table["d"] == 320), "mael"].iloc[0]
    table.loc[flat, "mael"] = before - 0.03
    along_d = of(checks(table), "D")
    assert (along_d["met"], along_d["found"]) == (False, "24 of 25")
    assert along_d["where"] == "1x64, 320 to 640 (1.5 sd)"
    assert "D = 640, 1x32 to 1x64" in str(of(checks(table), "N")["where"])


def test_what_is_not_measured_is_not_met() -> None:
    table = synthetic.reseeded(synthetic.product, noise=0)
    table.loc[(table["model"] == "2x64") & (table["d"] == 2560), "state"] = "censored"
    along_d = of(checks(table), "D")
    assert along_d["found"] == "23 of 25"
    assert "2x64, 1,280 to 2560 (not measured)".replace("2560", "2,560") in str(along_d["where"])
    assert checks(table)[0]["where"] == "2x64 on 2,560: censored"


def test_without_seeds_the_steps_are_not_known() -> None:
    table = synthetic.grid_table(synthetic.product, noise=0)
    assert seed_noise(table) is None
    assert [of(checks(table, None), along)["met"] for along in "DN"] == [None, None]


def test_small_steps_and_losses_and_many_unturned_cells_are_told() -> None:
    table = synthetic.reseeded(synthetic.product, noise=0)
    table["steps"] += 40
    table.loc[3, ["steps", "mael"]] = [39.0, 0.29]
    table.loc[:4, "state"] = "plateau"
    turned, steps, mael = checks(table)[:3]
    assert [row["met"] for row in (turned, steps, mael)] == [False, False, False]
    assert turned["found"] == "5 of 30 (17 %)"
    assert steps["where"] == mael["where"] == "1x32 on 2,560 pairs, seed 0"


def test_slopes_that_grow_are_counted_by_model() -> None:
    row, shared = checks(synthetic.reseeded(synthetic.worth_2000, noise=0))[-2:]
    assert row["met"]
    assert (shared["met"], shared["found"]) == (True, "1,280 to 10,240")
    assert "1x32: 4 sizes, 1,280 to 10,240" in str(row["where"])
    table = synthetic.grid_table(synthetic.head_start, synthetic.MICRO, (320, 1280, 5120), noise=0)
    row, shared = checks(table)[-2:]
    assert (row["met"], row["found"], shared["met"], shared["found"]) == (False, "0", False, "none")


@pytest.mark.parametrize("models", [["1x32"], ["1x32", "2x64"]])
def test_small_grids_and_dead_ones_are_answered(models: list[str]) -> None:
    table = synthetic.grid_table(synthetic.product, {m: 10_000 + k for k, m in enumerate(models)})
    assert len(checks(table)) == 9
    assert len(checks(table.assign(state="diverged"))) == 7


def test_runs_that_are_lowest_at_their_first_reading_are_named() -> None:
    table = synthetic.reseeded(synthetic.product)
    row = "runs lowest at their first reading (S unknown)"
    assert row not in [check["check"] for check in checks(table.assign(at_first=False))]
    found = {check["check"]: check for check in checks(table.assign(at_first=table["d"] == 320))}
    assert found[row]["met"] is False
    assert "2x128 on 320 pairs, seed" in str(found[row]["where"])
