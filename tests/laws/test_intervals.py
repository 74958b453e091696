"""Pins: intervals against closed forms, one-sided ends at a bound, and (slowly) their coverage."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from grids import MODELS, SIZES, grid, mael_law, noisy, sigir_v2

from repro.errors import UserError
from repro.laws.components import components
from repro.laws.fit import fit
from repro.laws.intervals import intervals, widened
from repro.laws.profile import profile
from repro.laws.resample import bootstrap, resample_evaluation
from repro.laws.table import Table


def test_the_product_default_is_the_t_interval_of_model_means() -> None:
    n, d = grid()
    loss = noisy(mael_law(n, d), 0)
    found = intervals(fit("product", Table(loss, n, d)))
    line = scipy.stats.linregress(np.log(MODELS), np.log(loss).reshape(5, 7).mean(axis=1))
    half = scipy.stats.t.ppf(0.975, 3) * line.stderr
    assert found["alpha"] == pytest.approx((-line.slope - half, -line.slope + half))
    line = scipy.stats.linregress(np.log(SIZES), np.log(loss).reshape(5, 7).mean(axis=0))
    half = scipy.stats.t.ppf(0.975, 5) * line.stderr
    assert found["beta"] == pytest.approx((-line.slope - half, -line.slope + half))
    assert "means" in found.method


def test_replicates_enter_as_cell_means() -> None:
    n, d = grid()
    one, two = noisy(mael_law(n, d), 0), noisy(mael_law(n, d), 1)
    both = intervals(fit("product", Table(np.r_[one, two], np.r_[n, n], np.r_[d, d])))
    mean = intervals(fit("product", Table(np.sqrt(one * two), n, d)))
    assert both["alpha"] == pytest.approx(mean["alpha"])


def test_cells_with_more_runs_than_others_are_no_missing_cells() -> None:
    n, d = grid()
    loss = noisy(mael_law(n, d), 0)
    again = slice(0, 3)
    more = Table(np.r_[loss, 1.01 * loss[again]], np.r_[n, n[again]], np.r_[d, d[again]])
    found = intervals(fit("product", more))
    assert any("different numbers of runs" in note for note in found.notes)
    assert not any("missing cells" in note for note in found.notes)
    fewer = intervals(fit("product", more.take(np.arange(3, 35))))
    assert any("missing cells" in note for note in fewer.notes)


def test_profile_of_a_linear_law_is_its_t_interval() -> None:
    n, d = grid()
    fitted = fit("product", Table(noisy(mael_law(n, d), 1), n, d))
    wald = intervals(fitted, method="wald")
    found = profile(fitted, ["alpha", "beta"])
    assert found["alpha"] == pytest.approx(wald["alpha"], rel=1e-4)
    assert found["beta"] == pytest.approx(wald["beta"], rel=1e-4)


def test_profile_ends_lie_where_the_deviance_says() -> None:
    n, d = grid()
    fitted = fit("joint_floor", Table(noisy(sigir_v2(n, d), 2), n, d))
    low, high = intervals(fitted)["beta"]
    goal = scipy.stats.f.ppf(0.95, 1, fitted.df)
    for end in (low, high):
        again = fit("joint_floor", fitted.table, fixed={"beta": end})
        assert (again.cost / fitted.cost - 1) * fitted.df == pytest.approx(goal, rel=1e-3)


def test_a_floor_of_zero_has_a_one_sided_interval() -> None:
    n, d = grid()
    for seed in range(8):
        fitted = fit("product_floor", Table(noisy(mael_law(n, d), seed), n, d))
        if fitted.parameters["E"] == 0.0:
            break
    found = intervals(fitted)
    assert found["E"][0] == 0.0
    assert 0.0 < found["E"][1] < fitted.table.loss.min()
    assert any("one-sided" in note for note in found.notes)


def test_two_models_fall_back_and_say_so() -> None:
    n, d = grid(MODELS[:2])
    found = intervals(fit("product", Table(noisy(mael_law(n, d), 3), n, d)))
    assert any("fewer than three values of n" in note for note in found.notes)


def test_bootstrap_agrees_with_the_covariance_on_many_points() -> None:
    n, d = grid(np.geomspace(1e5, 1e8, 12), np.geomspace(1e3, 1e6, 12))
    fitted = fit("additive", Table(noisy(mael_law(n, d) + 0.3, 4, 0.01), n, d))
    sample = bootstrap(fitted, 500, np.random.default_rng(0), kind="residuals")
    ratio = sample.parameters["beta"].std() / fitted.standard_errors["beta"]
    assert 0.9 < ratio < 1.1
    strata = bootstrap(fitted, 50, np.random.default_rng(0), kind="strata")
    assert np.isfinite(strata.cost).all()


def test_methods_that_do_not_apply_are_refused() -> None:
    n, d = grid()
    table = Table(noisy(mael_law(n, d), 5), n, d)
    with pytest.raises(UserError, match="profile"):
        intervals(fit("additive", table), method="means")
    with pytest.raises(UserError, match="rng"):
        intervals(fit("product", table), method="bootstrap")
    with pytest.raises(UserError, match="bootstrap"):
        intervals(fit("product", table, delta=1e-3), method="profile")


def test_effects_of_models_are_seen_and_equal_the_means_on_a_balanced_grid() -> None:
    n, d = grid()
    rng = np.random.default_rng(3)
    effect = np.repeat(np.exp(0.1 * rng.normal(size=5)), 7)
    fitted = fit("product", Table(noisy(mael_law(n, d) * effect, 3), n, d))
    found = components(fitted)
    assert found.model_sd > 2 * found.size_sd
    assert found.df == pytest.approx([3, 5, 24])
    means, effects = intervals(fitted), intervals(fitted, method="effects")
    assert effects["alpha"] == pytest.approx(means["alpha"], rel=1e-6)
    draws = bootstrap(fitted, 4000, rng, kind="effects").parameters["alpha"]
    low, high = np.percentile(draws, (2.5, 97.5))
    assert high - low == pytest.approx(means["alpha"][1] - means["alpha"][0], rel=0.15)


def test_joint_intervals_that_count_models_are_wider_and_need_models() -> None:
    n, d = grid()
    rng = np.random.default_rng(4)
    effect = np.repeat(np.exp(0.05 * rng.normal(size=5)), 7)
    fitted = fit("joint_floor", Table(noisy(sigir_v2(n, d) * effect, 4), n, d))
    plain, effects = intervals(fitted), intervals(fitted, method="effects")
    assert any("method='effects'" in note for note in plain.notes)
    assert np.diff(effects["alpha"])[0] > 1.5 * np.diff(plain["alpha"])[0]
    n, d = grid(MODELS[:2])
    with pytest.raises(UserError, match="too few"):
        intervals(fit("product", Table(noisy(mael_law(n, d), 0), n, d)), method="effects")


def test_the_evaluation_sample_moves_the_level_more_than_the_exponents() -> None:
    n, d = grid()
    rng = np.random.default_rng(5)
    hardness = rng.gamma(2.0, 0.5, 400)
    pairs = mael_law(n, d)[:, None] * (hardness / hardness.mean())
    pairs = pairs * np.exp(0.1 * rng.normal(size=pairs.shape))
    fitted = fit("product", Table(pairs.mean(axis=1), n, d))
    sample = resample_evaluation(fitted, pairs, 500, rng)
    spread = np.log(sample.parameters["c"]).std()
    assert spread > hardness.std() / hardness.mean() / np.sqrt(400) * 0.7
    assert sample.parameters["alpha"].std() < 0.01
    plain = intervals(fitted)
    wide = widened(plain, sample)
    assert wide["c"][1] > plain["c"][1]
    assert wide["alpha"][0] < plain["alpha"][0]
    with pytest.raises(UserError, match="34 runs"):
        resample_evaluation(fitted, pairs[1:], 10, rng)


@pytest.mark.slow
def test_product_intervals_cover_with_and_without_a_model_effect() -> None:
    """The full table (4,000 draws, all laws) is benchmarks/coverage.py; this guards it."""
    n, d = grid()
    for effect, lowest_wald in ((0.0, 0.92), (0.02, 0.0)):
        inside = {"means": 0, "wald": 0}
        for seed in range(1000):
            rng = np.random.default_rng(seed)
            y = noisy(mael_law(n, d), seed) * np.repeat(np.exp(effect * rng.normal(size=5)), 7)
            fitted = fit("product", Table(y, n, d))
            for method in ("means", "wald"):
                low, high = intervals(fitted, method=method)["alpha"]
                inside[method] += low <= 0.161 <= high
        assert 930 <= inside["means"] <= 970
        assert inside["wald"] >= 1000 * lowest_wald
        if effect:
            assert inside["wald"] < 750  # the premise: counting cells instead of models fails


def test_losses_that_rise_or_stand_still_leave_endless_intervals_and_no_warning() -> None:
    n, d = grid()
    for loss in (np.full(35, 2.0), 1.0 + d / d.max()):
        for name in ("single_d", "product", "joint_floor"):
            fitted = fit(name, Table(loss, n, d))
            for method in ("auto", "effects", "wald"):
                if method == "effects" and name == "single_d":
                    continue
                for low, high in intervals(fitted, method=method).values():
                    assert low <= high
            fitted.band(n, d)
            assert fitted.report()
