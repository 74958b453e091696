"""Pins: intervals against closed forms, one-sided ends at a bound, and (slowly) their coverage."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from grids import MODELS, SIZES, grid, mael_law, noisy, sigir_v2

from repro.laws.fit import fit
from repro.laws.intervals import intervals
from repro.laws.profile import profile
from repro.laws.resample import bootstrap
from repro.laws.table import Table
from repro.params import UserError


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
