"""Pins: Chinchilla's three approaches on a known law and on the public points; Kaplan's counting."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from grids import chinchilla, reference

from repro.errors import UserError
from repro.laws.fit import fit, local_optimum
from repro.laws.flops import Transformer
from repro.laws.isoflop import closed_form, envelope, parabolas, parametric, parametric_sample
from repro.laws.resample import bootstrap, refit
from repro.laws.table import Table

HOFFMANN = {
    "A": np.exp(6.0073404),
    "alpha": 0.33917084,
    "B": np.exp(6.0179186),
    "beta": 0.2849083,
    "E": np.exp(0.5267228),
}

# Muennighoff et al. 2023: fitted to 54 runs without repetition, then to 182 with.
STEP_ONE = {
    "A": float(np.exp(6.255414)),
    "B": float(np.exp(7.3049974)),
    "E": float(np.exp(0.6254804)),
    "alpha": 0.3526596,
    "beta": 0.3526596,
}
STEP_TWO = {"R_D": 15.387756, "R_N": 5.309743}


def law(n: np.ndarray, d: np.ndarray, alpha: float = 0.3, beta: float = 0.3) -> np.ndarray:
    return np.asarray(400 * n**-alpha + 500 * d**-beta + 1.7)


def test_three_approaches_agree_where_they_should() -> None:
    """With alpha = beta the parabola is unbiased: all three find a = .5."""
    budgets = np.geomspace(1e18, 1e22, 7)
    n, c = (v.ravel() for v in np.meshgrid(np.geomspace(1e7, 1e11, 41), budgets))
    inside = (c / (6 * n) > n) & (c / (6 * n) < 1000 * n)
    n, c = n[inside], c[inside]
    loss = law(n, c / (6 * n))
    assert parabolas(n, c, loss).a == pytest.approx(0.5, abs=0.01)
    fitted = fit("additive_floor", Table(loss, n, c / (6 * n)))
    assert parametric(fitted).a == pytest.approx(0.5, abs=1e-5)
    models = np.geomspace(1e7, 1e11, 81)
    spent = np.geomspace(1e17, 1e23, 200)[None] * np.ones((81, 1))
    curves = law(models[:, None], spent / (6 * models[:, None]))
    found = envelope(models, spent, curves, 200)
    assert found.a == pytest.approx(0.5, abs=0.02)
    assert found.a + found.b == pytest.approx(1.0)


def test_closed_form_is_the_numerical_minimum() -> None:
    a, b, g = closed_form(400.0, 0.34, 500.0, 0.28)
    c = 1e20
    n = np.geomspace(1e6, 1e12, 200_001)
    best = n[np.argmin(400 * n**-0.34 + 500 * (c / (6 * n)) ** -0.28)]
    assert g * (c / 6) ** a == pytest.approx(best, rel=1e-4)
    assert a + b == pytest.approx(1.0)
    assert a == pytest.approx(0.28 / 0.62)


def test_parabola_is_biased_where_exponents_differ() -> None:
    n, c = (
        v.ravel() for v in np.meshgrid(np.geomspace(1e7, 1e11, 41), np.geomspace(1e18, 1e22, 7))
    )
    loss = law(n, c / (6 * n), 0.4, 0.25)
    true, _, _ = closed_form(400.0, 0.4, 500.0, 0.25)
    assert abs(parabolas(n, c, loss).a - true) > 0.005


def test_besiroglu_allocation_and_hoffmanns_is_not_an_optimum() -> None:
    table = chinchilla()
    fitted = fit("additive_floor", table, delta=1e-3)
    assert parametric(fitted).a == pytest.approx(0.513, abs=2e-3)
    there = {name: float(value) for name, value in HOFFMANN.items()}
    held = fit("additive_floor", table, delta=1e-3, fixed=there)
    assert held.cost == pytest.approx(0.00123, abs=5e-6)
    rounded = dict(
        zip(["A", "B", "E", "alpha", "beta"], (406.4, 410.7, 1.69, 0.34, 0.28), strict=True)
    )
    coarse = fit("additive_floor", table, delta=1e-3, fixed=rounded)
    assert coarse.cost == pytest.approx(0.00412, abs=5e-6)  # rounding triples the objective
    below = local_optimum("additive_floor", table, there, delta=1e-3)
    assert below.cost == pytest.approx(fitted.cost, rel=1e-9)


@pytest.mark.slow
def test_besiroglu_standard_errors_with_the_published_resamples() -> None:
    fitted = fit("additive_floor", chinchilla(), delta=1e-3)
    np.random.seed(42)  # noqa: NPY002  (the published notebook's own resamples)
    counts = np.zeros((4000, 240))
    for row in counts:
        np.add.at(row, np.random.choice(240, 240, replace=True), 1)  # noqa: NPY002
    found = refit(fitted, weights=counts).parameters
    expected = {"A": 124.49, "B": 1293.17, "E": 0.02566, "alpha": 0.015397, "beta": 0.020594}
    for name, value in expected.items():
        assert found[name].std(ddof=0) == pytest.approx(value, rel=0.01)
    other = bootstrap(fitted, 4000, np.random.default_rng(1)).parameters
    for name, value in expected.items():
        assert other[name].std() == pytest.approx(value, rel=0.12 if name == "B" else 0.05)
    a = found["beta"] / (found["alpha"] + found["beta"])
    assert a.std() == pytest.approx(0.020, abs=5e-4)
    se, low, high = parametric_sample(fitted, 2000, np.random.default_rng(2))["a"]
    assert se == pytest.approx(0.02, abs=0.002)
    assert high - low == pytest.approx(0.051, abs=0.004)


def test_muennighoffs_published_pair_is_a_local_optimum() -> None:
    frame = pd.read_csv(reference("datablations_c4/runs_fit_182.csv"))
    table = Table(
        frame["val_loss"].to_numpy(),
        frame["params"].to_numpy(),
        frame["tokens"].to_numpy(),
        extra={"u": frame["unique_tokens"].to_numpy()},
    )
    known = STEP_ONE
    published = STEP_ONE | STEP_TWO
    local = local_optimum("repeated", table, published, delta=1e-3, fixed=known)
    assert local.cost == pytest.approx(0.0158259, abs=1e-7)
    assert local.parameters["R_D"] == pytest.approx(15.39, abs=0.05)
    better = fit("repeated", table, delta=1e-3, fixed=known)
    assert better.cost == pytest.approx(0.01580466, abs=1e-8)
    assert better.parameters["R_D"] == pytest.approx(95.37, abs=0.05)
    assert better.parameters["R_N"] == pytest.approx(1.706, abs=5e-3)
    assert any(abs(optimum[2]["R_D"] - 15.37) < 0.1 for optimum in better.record.optima)
    assert any("other optima" in warning for warning in better.warnings)


def test_repeated_data_equals_the_published_examples() -> None:
    """The values that the datablations README prints for two allocations of 25e9 unique tokens."""
    n, d, u = np.array([6.34e9, 8.67e9]), np.array([242e9, 178e9]), np.full(2, 25e9)
    known = STEP_ONE | STEP_TWO
    from repro.laws.forms import form
    from repro.laws.shapes import stack_variables, to_internal

    repeated = form("repeated")
    centre = dict.fromkeys((*repeated.variables, "loss"), 0.0)
    theta = to_internal(
        repeated.shape, np.array([[known[name]] for name in repeated.names]), centre
    )
    x = stack_variables({"n": n, "d": d, "u": u}, repeated.variables, centre)
    found = np.exp(repeated.shape.evaluate(theta, x)[0][0])
    np.testing.assert_allclose(found, [2.2256440890, 2.2269634075], rtol=1e-8)


def test_kaplans_counting_on_real_configurations() -> None:
    base = Transformer(12, 768, n_vocab=30522)
    assert base.encoder_parameters == 85_054_464  # BERT-Base
    assert Transformer(2, 128).encoder_parameters == 396_544  # BERT-Tiny
    assert Transformer(20, 1024).encoder_parameters == 251_924_480  # ERNIE 3.0 xbase
    assert base.parameters == 12 * 12 * 768**2
    assert base.parameters == pytest.approx(base.encoder_parameters, rel=2e-3)
    gpt3 = Transformer(96, 12288, n_ctx=2048)
    assert gpt3.parameters == pytest.approx(174e9, rel=0.01)
    assert base.forward_flop_per_token == 2 * base.parameters + 2 * 12 * 512 * 768
    assert base.training_flop_per_token == 3 * base.forward_flop_per_token


def test_too_few_budgets_are_refused() -> None:
    with pytest.raises(UserError, match="three are needed"):
        parabolas(np.array([1e7, 1e8, 1e9]), np.full(3, 1e18), np.array([3.0, 2.9, 3.0]))
