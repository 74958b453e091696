"""Pins: known answers recovered, the reference optimum from every start, errors with names."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from grids import MODELS, SIZES, chinchilla, grid, mael_law, noisy, sigir_v2

from repro.errors import UserError
from repro.laws.fit import fit, from_json
from repro.laws.table import Table, from_frame


def test_the_joint_law_of_sigir_is_recovered_to_six_digits() -> None:
    n, d = grid()
    found = fit("joint_floor", Table(sigir_v2(n, d), n, d)).parameters
    expected = {"A": 3.6e4, "B": 7.1e3, "alpha": 0.56, "beta": 1.31, "delta": 0.03}
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, rel=1e-6)


def test_the_product_law_is_recovered_and_equals_ordinary_least_squares() -> None:
    n, d = grid()
    found = fit("product", Table(mael_law(n, d), n, d)).parameters
    assert found == pytest.approx({"c": 100.0, "alpha": 0.161, "beta": 0.206}, rel=1e-6)
    loss = noisy(mael_law(n, d), 3)
    design = np.column_stack([np.ones(len(n)), -np.log(n), -np.log(d)])
    level, alpha, beta = np.linalg.lstsq(design, np.log(loss), rcond=None)[0]
    found = fit("product", Table(loss, n, d)).parameters
    assert found == pytest.approx({"c": np.exp(level), "alpha": alpha, "beta": beta}, rel=1e-9)


@pytest.mark.parametrize(
    ("name", "true"),
    [
        ("product_floor", {"c": 150.0, "alpha": 0.2, "beta": 0.25, "E": 0.1}),
        ("product_d0", {"c": 150.0, "alpha": 0.2, "beta": 0.25, "D0": 2000.0}),
        ("additive", {"A": 90.0, "alpha": 0.35, "B": 30.0, "beta": 0.4}),
        ("additive_floor", {"A": 90.0, "alpha": 0.35, "B": 30.0, "beta": 0.4, "E": 0.2}),
        ("joint", {"A": 1e5, "alpha": 0.3, "B": 5e3, "beta": 0.9}),
    ],
)
def test_each_form_recovers_itself(name: str, true: dict[str, float]) -> None:
    n, d = grid()
    table = Table(np.ones(len(n)), n, d)
    made = fit(name, Table(mael_law(n, d), n, d))
    theta = from_truth(name, true, made.centre)
    value = made.form.shape.evaluate(
        theta, {v: np.log(table.columns[v]) - made.centre[v] for v in "nd"}
    )[0]
    loss = np.exp(value[0] + made.centre["loss"])
    assert fit(name, Table(loss, n, d)).parameters == pytest.approx(true, rel=1e-5)


def from_truth(name: str, true: dict[str, float], centre: dict[str, float]) -> np.ndarray:
    from repro.laws.forms import form
    from repro.laws.shapes import to_internal

    law = form(name)
    return to_internal(law.shape, np.array([[true[p]] for p in law.names]), centre)


def test_chinchilla_optimum_from_every_one_of_200_starts() -> None:
    rng = np.random.default_rng(0)
    hull = {"A": (0, 25), "alpha": (0.05, 2), "B": (0, 25), "beta": (0.05, 2), "E": (-1, 1)}
    starts = {name: rng.uniform(*ends, 200) for name, ends in hull.items()}
    starts |= {name: np.exp(starts[name]) for name in "ABE"}
    found = fit("additive_floor", chinchilla(), delta=1e-3, starts=starts, screen=False)
    assert found.record.reached == found.record.polished == 200
    assert found.cost == pytest.approx(0.001018274018, abs=5e-13)
    rounded = {name: float(f"{value:.6g}") for name, value in found.parameters.items()}
    assert rounded["A"] == 477.826
    assert found.parameters["B"] == pytest.approx(2143.417, abs=1e-3)
    assert rounded["E"] == 1.81722
    assert found.parameters["alpha"] == pytest.approx(0.34731, abs=5e-6)
    assert found.parameters["beta"] == pytest.approx(0.36717, abs=5e-6)


def test_chinchilla_default_starts_find_the_same_optimum() -> None:
    found = fit("additive_floor", chinchilla(), delta=1e-3)
    assert found.cost == pytest.approx(0.001018274018, abs=5e-13)
    assert found.record.reached == found.record.polished


def test_five_points_move_chinchillas_beta_by_four_standard_errors() -> None:
    found = fit("additive_floor", chinchilla(drop=0), delta=1e-3).parameters
    assert found["beta"] == pytest.approx(0.4531, abs=5e-4)
    assert (found["beta"] - 0.36717) / 0.0206 > 4


def test_a_bound_that_is_respected_costs_nothing_and_one_that_is_not_pulls() -> None:
    n, d = grid()
    loss = mael_law(n, d)
    loose, tight = loss.copy(), loss.copy()
    loose[-1] *= 1.5  # a run stopped early: its MAEL is only an upper bound
    tight[-1] /= 1.5
    bound = np.zeros(len(n), bool)
    bound[-1] = True
    assert fit("product", Table(loose, n, d, bound=bound)).parameters["beta"] == pytest.approx(
        0.206
    )
    assert fit("product", Table(loose, n, d)).parameters["beta"] < 0.205
    assert fit("product", Table(tight, n, d, bound=bound)).parameters["beta"] > 0.207


def test_weights_of_zero_drop_a_row() -> None:
    n, d = grid()
    loss = noisy(mael_law(n, d), 4)
    weights = np.ones(len(n))
    weights[::5] = 0.0
    one = fit("additive", Table(loss, n, d, weights)).parameters
    two = fit("additive", Table(loss, n, d).take(weights > 0)).parameters
    assert one == pytest.approx(two, rel=1e-6)


def test_a_floor_that_is_not_there_rests_at_zero_and_says_so() -> None:
    n, d = grid()
    seeds = [fit("product_floor", Table(noisy(mael_law(n, d), s), n, d)) for s in range(8)]
    at_zero = [f for f in seeds if f.parameters["E"] == 0.0]
    assert at_zero  # the premise: it happens in about half of the samples
    assert any("E is at its lower bound" in w for w in at_zero[0].warnings)


@pytest.mark.parametrize("name", ["joint", "joint_floor", "additive", "product"])
def test_one_model_size_is_refused_and_the_single_law_is_named(name: str) -> None:
    table = Table(mael_law(np.full(7, 1e7), SIZES), np.full(7, 1e7), SIZES)
    with pytest.raises(UserError, match=r"same model size.*\n.*single_d"):
        fit(name, table)
    assert fit("single_d", table).parameters["beta"] == pytest.approx(0.206)


def test_too_few_points_are_an_error_and_few_a_warning() -> None:
    n, d = grid(MODELS[:2], SIZES[:2])
    with pytest.raises(UserError, match="4 points cannot determine the 5 parameters"):
        fit("joint_floor", Table(sigir_v2(n, d), n, d))
    n, d = grid(MODELS[:2], SIZES[:3])
    assert any("fewer than two" in w for w in fit("additive", Table(sigir_v2(n, d), n, d)).warnings)


@pytest.mark.parametrize(
    ("losses", "message"),
    [
        ([1.0, float("nan"), 0.8, 0.7], "row 2"),
        ([1.0, 0.9, 0.0, -0.7], "rows 3, 4"),
        ([1.0, "oops", 0.8, 0.7], "text in row 2: 'oops'"),
    ],
)
def test_bad_losses_name_their_rows(losses: list[object], message: str) -> None:
    frame = pd.DataFrame({"n": [1, 2, 3, 4], "d": [1, 2, 3, 4], "loss": losses})
    with pytest.raises(UserError, match=message):
        from_frame(frame, loss="loss", n="n", d="d")


def test_a_wrong_column_name_brings_the_nearest() -> None:
    frame = pd.DataFrame({"params": [1.0], "mael": [1.0]})
    with pytest.raises(UserError, match="mael"):
        from_frame(frame, loss="meal", n="params")


def test_states_of_runs_become_bounds_and_diverged_ones_are_refused() -> None:
    frame = pd.DataFrame(
        {"d": [1.0, 2, 3], "loss": [3.0, 2, 1], "state": ["turned", "censored", "turned"]}
    )
    assert from_frame(frame, loss="loss", d="d", state="state").bound.tolist() == [0, 1, 0]
    lower = from_frame(frame, loss="loss", d="d", state="state", censored=-1)
    assert lower.bound.tolist() == [0, -1, 0]
    with pytest.raises(UserError, match="row 3"):
        from_frame(
            frame.assign(state=["turned", "turned", "diverged"]), loss="loss", d="d", state="state"
        )


def test_identical_rows_warn_and_replicates_do_not() -> None:
    n, d = grid()
    loss = noisy(mael_law(n, d), 5)
    twice = Table(np.r_[loss, loss[:3]], np.r_[n, n[:3]], np.r_[d, d[:3]])
    assert any("3 identical rows" in w for w in twice.warnings())
    assert Table(np.r_[loss, loss * 1.01], np.r_[n, n], np.r_[d, d]).warnings() == []


def test_a_fit_survives_json() -> None:
    n, d = grid()
    one = fit("joint_floor", Table(noisy(sigir_v2(n, d), 6), n, d))
    two = from_json(one.to_json())
    assert two.parameters == one.parameters
    np.testing.assert_allclose(two.band(n, d), one.band(n, d))
    with pytest.raises(UserError, match="not a fit"):
        from_json("{}")


def test_extrapolation_is_a_factor_beyond_the_grid() -> None:
    n, d = grid()
    fitted = fit("product", Table(mael_law(n, d), n, d))
    assert fitted.extrapolation(1e7, 1e4) == 1.0
    assert fitted.extrapolation(1e7, 640_000) == pytest.approx(2.0)
    assert fitted.extrapolation(1e7, 500) == pytest.approx(10.0)


def test_the_report_names_law_errors_and_starts() -> None:
    n, d = grid()
    text = fit("product_floor", Table(noisy(mael_law(n, d), 1), n, d)).report()
    for part in ("c N^-alpha D^-beta + E", "35 points", "64 starts screened, 16 polished"):
        assert part in text
