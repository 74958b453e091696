"""Pins: every form's derivatives, scale equivariance, monotonicity, printed constants."""

from __future__ import annotations

import numpy as np
import pytest
from grids import grid, mael_law, noisy, sigir_v2
from hypothesis import given, settings
from hypothesis import strategies as st

from repro.errors import UserError
from repro.laws.fit import fit
from repro.laws.forms import FORMS, form
from repro.laws.shapes import to_internal, to_natural
from repro.laws.table import Table

DECREASING = [
    name
    for name, law in FORMS.items()
    if law.response == "loss" and set(law.variables) <= {"n", "d"} and name != "broken"
]


def random_theta(name: str, seed: int) -> np.ndarray:
    """A parameter vector (P, 3) inside the bounds, away from their edges."""
    rng = np.random.default_rng(seed)
    rows = []
    for parameter in form(name).shape.parameters:
        low, high = parameter.start
        rows.append(low + (high - low) * rng.uniform(0.1, 0.9, 3))
    return np.array(rows)


def random_x(name: str, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed + 1)
    return {variable: rng.uniform(-2, 2, 11) for variable in form(name).variables}


@pytest.mark.parametrize("name", FORMS)
@given(seed=st.integers(0, 10_000))
@settings(max_examples=15, deadline=None)
def test_gradient_equals_finite_differences(name: str, seed: int) -> None:
    shape, theta, x = form(name).shape, random_theta(name, seed), random_x(name, seed)
    _, jacobian = shape.evaluate(theta, x)
    for p in range(len(theta)):
        step = 1e-5 * max(1.0, float(np.abs(theta[p]).max()))
        up, down = theta.copy(), theta.copy()
        up[p] += step
        down[p] -= step
        numeric = (shape.evaluate(up, x)[0] - shape.evaluate(down, x)[0]) / (2 * step)
        np.testing.assert_allclose(jacobian[p], numeric, rtol=2e-5, atol=2e-7)


@pytest.mark.parametrize("name", FORMS)
def test_second_derivatives_equal_differences_of_the_gradient(name: str) -> None:
    shape, theta, x = form(name).shape, random_theta(name, 7), random_x(name, 7)
    _, jacobian = shape.evaluate(theta, x)
    psi = np.random.default_rng(0).normal(size=jacobian.shape[1:])
    exact = shape.second(theta, x, jacobian, psi)
    for q in range(len(theta)):
        up, down = theta.copy(), theta.copy()
        up[q] += 1e-5
        down[q] -= 1e-5
        slope = (shape.evaluate(up, x)[1] - shape.evaluate(down, x)[1]) / 2e-5
        expected = np.einsum("pbm,bm->pb", slope, psi)
        np.testing.assert_allclose(exact[:, q], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", FORMS)
def test_printed_constants_and_internal_coordinates_are_inverse(name: str) -> None:
    shape, theta = form(name).shape, random_theta(name, 3)
    centre = {**{v: 9.0 + i for i, v in enumerate(form(name).variables)}, "loss": 0.3}
    back = to_internal(shape, to_natural(shape, theta, centre), centre)
    np.testing.assert_allclose(back, theta, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", DECREASING)
@given(seed=st.integers(0, 10_000), factor=st.floats(1.0, 100.0))
@settings(max_examples=25, deadline=None)
def test_losses_never_increase_in_n_or_d(name: str, seed: int, factor: float) -> None:
    shape, theta, x = form(name).shape, random_theta(name, seed), random_x(name, seed)
    before = shape.evaluate(theta, x)[0]
    for variable in x:
        after = shape.evaluate(theta, {**x, variable: x[variable] + np.log(factor)})[0]
        assert (after <= before + 1e-12).all()


@pytest.mark.parametrize("name", ["product", "product_floor", "additive_floor", "joint_floor"])
@given(scale_n=st.floats(1e-6, 1e6), scale_d=st.floats(1e-6, 1e6))
@settings(max_examples=8, deadline=None)
def test_units_move_only_the_constants(name: str, scale_n: float, scale_d: float) -> None:
    n, d = grid()
    loss = noisy(sigir_v2(n, d), 0)
    one = fit(name, Table(loss, n, d)).parameters
    two = fit(name, Table(loss, n * scale_n, d * scale_d)).parameters
    for parameter in set(one) - {"c", "A", "B"}:
        assert two[parameter] == pytest.approx(one[parameter], rel=1e-5, abs=1e-9)


@given(seed=st.integers(0, 1000))
@settings(max_examples=8, deadline=None)
def test_the_order_of_rows_changes_nothing(seed: int) -> None:
    n, d = grid()
    loss = noisy(sigir_v2(n, d), 1)
    order = np.random.default_rng(seed).permutation(len(n))
    one = fit("joint_floor", Table(loss, n, d)).parameters
    two = fit("joint_floor", Table(loss[order], n[order], d[order])).parameters
    for name, value in one.items():
        assert two[name] == pytest.approx(value, rel=1e-7)


def test_formulas_compute_what_they_say() -> None:
    """Each formula, read as Python with the fitted constants, gives the fit's own predictions."""
    n, d = grid()
    checks = {
        "product_floor": lambda p: p["c"] * n ** -p["alpha"] * d ** -p["beta"] + p["E"],
        "product_d0": lambda p: p["c"] * n ** -p["alpha"] * (d + p["D0"]) ** -p["beta"],
        "additive_floor": lambda p: p["A"] * n ** -p["alpha"] + p["B"] * d ** -p["beta"] + p["E"],
        "joint_floor": lambda p: (
            ((p["A"] / n) ** (p["alpha"] / p["beta"]) + p["B"] / d) ** p["beta"] + p["delta"]
        ),
        "single_n_floor": lambda p: (p["A"] / n) ** p["alpha"] + p["delta"],
        "single_d_floor": lambda p: (p["B"] / d) ** p["beta"] + p["delta"],
        "steps": lambda p: p["k"] * n ** -p["a"] * d ** p["b"],
    }
    table = Table(noisy(mael_law(n, d), 2), n, d)
    for name, formula in checks.items():
        fitted = fit(name, table)
        np.testing.assert_allclose(fitted.predict(n=n, d=d), formula(fitted.parameters), rtol=1e-9)


def test_an_unknown_form_names_the_nearest() -> None:
    with pytest.raises(UserError, match="product_floor"):
        form("product_flor")
