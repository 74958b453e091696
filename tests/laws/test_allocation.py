"""Pins: SIGIR'24's prices and allocations, closed forms against the numerical optimum, M11 to M21."""

from __future__ import annotations

import numpy as np
import pytest
from grids import MODELS, grid, mael_law, noisy, sigir_v2
from hypothesis import given, settings
from hypothesis import strategies as st

from repro.errors import UserError
from repro.laws import efficiency as eff
from repro.laws.allocation import (
    optimum,
    pairs_for_loss,
    pairs_replaced,
    product_optimum,
    transfer_split,
)
from repro.laws.costs import NOTHING, WEB, Costs, Serving, Training, unit_costs
from repro.laws.table import Table


def sigir_v1(n: np.ndarray, d: np.ndarray) -> np.ndarray:
    return np.asarray(((8.2e5 / n) ** (0.57 / 1.39) + 5.2e3 / d) ** 1.39 + 0.03)


def test_unit_costs_follow_from_their_ingredients() -> None:
    pair, train, serve = unit_costs(Costs(serving=WEB))
    assert pair == 0.6
    assert train == pytest.approx(3.2246e-8, rel=2e-5)
    assert serve == pytest.approx(0.42995, rel=1e-5)


@pytest.mark.parametrize(
    ("budget", "serving", "v1", "v2"),
    [
        (5e3, False, "3.3e+09", "9.8e+08"),
        (2e4, False, "2.28e+10", "6.8e+09"),  # the paper says 13B: neither law gives it
        (1.5e5, False, "3.72e+11", "1.12e+11"),
        (5e6, True, "1.09e+07", "1e+07"),
        (2e7, True, "4.45e+07", "4.2e+07"),
    ],
)
def test_sigir_allocations(budget: float, serving: bool, v1: str, v2: str) -> None:
    costs = Costs(serving=WEB if serving else NOTHING)
    for law, expected in ((sigir_v1, v1), (sigir_v2, v2)):
        digits = len(expected.split("e")[0].replace(".", ""))
        found = optimum(law, costs.usd, budget)
        assert f"{found.n:.{digits}g}" == expected
        assert found.cost == pytest.approx(budget, rel=1e-6)
        assert found.limits == ()


def test_labels_that_do_not_exist_cap_the_plan() -> None:
    costs = Costs(serving=WEB)
    free = optimum(sigir_v2, costs.usd, 2e7)
    capped = optimum(sigir_v2, costs.usd, 2e7, max_pairs=500_000)
    assert free.d > 500_000  # the premise: more labels than MS MARCO has
    assert capped.d == pytest.approx(500_000)
    assert capped.limits == ("labels available",)
    assert capped.n < 2e7 / 0.42995
    assert capped.loss > free.loss


@given(alpha=st.floats(0.05, 0.8), beta=st.floats(0.05, 0.8), budget=st.floats(1e3, 1e7))
@settings(max_examples=20, deadline=None)
def test_product_closed_form_equals_the_numerical_optimum(
    alpha: float, beta: float, budget: float
) -> None:
    costs = Costs(serving=WEB)
    _, train, serve = unit_costs(costs)
    expected = product_optimum(alpha, beta, budget, train + serve, 0.6)
    found = optimum(
        lambda n, d: n**-alpha * d**-beta, costs.usd, budget, n_range=(1.0, 1e12), min_pairs=1e-6
    )
    assert (found.n, found.d) == pytest.approx(expected, rel=1e-4)


def test_the_product_law_has_no_best_middle_under_compute() -> None:
    """M14: along equal compute the loss falls monotonically toward larger models."""
    flop = 1e17

    def cost(n: np.ndarray, d: np.ndarray) -> np.ndarray:
        return n**0.4936 * d**0.9231 * 1e9

    found = optimum(mael_law, cost, flop, n_range=(MODELS[0], MODELS[-1]))
    assert found.limits == ("largest model",)
    n = np.geomspace(MODELS[0], MODELS[-1], 50)
    d = (flop / 1e9 / n**0.4936) ** (1 / 0.9231)
    assert (np.diff(mael_law(n, d)) < 0).all()


def test_the_papers_efficiency_arithmetic() -> None:
    found = eff.efficiency(0.161, 0.206, 0.5064, 0.9231)
    assert pytest.approx(0.4936) == 1 - 0.5064  # M11
    assert found.model == pytest.approx(0.3262, abs=5e-5)
    assert found.data == pytest.approx(0.2232, abs=5e-5)  # the paper prints .2234
    assert found.ratio == pytest.approx(1.46, abs=5e-3)
    data, loss = eff.equal_compute(0.161, 0.206, 0.5064, 0.9231)  # M13
    assert data == pytest.approx(0.690, abs=5e-4)
    assert loss == pytest.approx(0.965, abs=5e-4)


def test_the_headline_turns_with_the_unit_of_a_step() -> None:
    """M21: the paper halves the rate at each of five models."""
    rho = eff.lr_exponent(MODELS, 2.0 ** -np.arange(5))
    assert rho == pytest.approx(0.52, abs=0.02)
    if_lr_steps = eff.convert(0.5064, rho, "lr", "raw")
    assert abs(if_lr_steps) < 0.03  # raw steps hardly depend on N
    turned = eff.efficiency(0.161, 0.206, if_lr_steps, 0.9231)
    assert turned.model == pytest.approx(0.161, abs=0.005)
    assert turned.ratio == pytest.approx(0.72, abs=0.02)
    assert eff.convert(0.5064, rho, "raw", "lr") == pytest.approx(1.02, abs=0.02)


def test_efficiency_draws_centre_on_the_arithmetic_and_cover() -> None:
    n, d = grid()
    steps = 3.0 * n**-0.5064 * d**0.9231
    rng = np.random.default_rng(0)
    found = eff.efficiency_draws(
        Table(noisy(mael_law(n, d), 0, 1e-4), n, d), Table(noisy(steps, 1, 1e-4), n, d), 500, rng
    )
    assert np.median(found.ratio) == pytest.approx(1.4616, rel=1e-3)
    inside = 0
    for seed in range(200):
        losses, counts = noisy(mael_law(n, d), seed), noisy(steps, 1000 + seed, 0.1)
        ratio = eff.efficiency_draws(Table(losses, n, d), Table(counts, n, d), 400, rng).ratio
        low, high = np.percentile(ratio, (2.5, 97.5))
        inside += low <= 1.46165 <= high
    assert 180 <= inside <= 199


def test_ratio_has_a_value_for_exponents_of_any_sign() -> None:
    """A free larger model wins by any factor; so does one beside data that raise the loss."""

    def of(alpha: float, beta: float, a: float, b: float) -> float:
        return float(eff.ratio(*(np.array([v]) for v in (alpha, beta, a, b)), most=99)[0])

    assert of(0.161, 0.206, 0.5064, 0.9231) == pytest.approx(1.4616, abs=1e-4)
    assert of(0.1, 0.2, 1.02, 0.9) == 99
    assert of(0.1, 0.2, 1.0, 0.9) == 99
    assert of(0.1, -0.01, 0.5, 0.9) == 99
    assert of(-0.1, 0.2, 0.5, 0.9) == pytest.approx(-0.9)
    assert of(0.1, 0.2, 0.5, -0.1) == 0
    assert np.isnan(of(-0.1, -0.2, 0.5, 0.9))
    assert np.isnan(of(0.1, 0.2, 1.1, 0.0))


def test_inverse_questions() -> None:
    assert pairs_for_loss(mael_law, 1e7, float(mael_law(np.array(1e7), np.array(12345.0)))) == (
        pytest.approx(12345.0)
    )
    with pytest.raises(UserError, match="does not reach"):
        pairs_for_loss(sigir_v2, 1e6, 0.03)
    saved = pairs_replaced(mael_law, 1e7, 10_000, 2e7)
    assert 10_000 - saved == pytest.approx(10_000 * 2 ** (-0.161 / 0.206))


def test_a_budget_that_buys_nothing_is_an_error() -> None:
    with pytest.raises(UserError, match="does not pay"):
        optimum(mael_law, Costs().usd, 1e-6, n_range=(1e6, 1e9))


def test_serving_and_steps_are_counted() -> None:
    serving = Serving(passages=1e6, queries_per_day=1e5, days=10, usd_per_gigabyte_month=0.1)
    parts = Costs(serving=serving).parts(1e8, 1e4)
    tokens = 1e6 * 512 + 1e5 * 10 * 30
    per_flop = 3.93 / (312e12 * 3600 * 0.25)
    storage = 1e6 * 768 * 4 / 1e9 * 10 / 30.4375 * 0.1
    assert float(parts["serving"]) == pytest.approx(2e8 * tokens * per_flop + storage)
    training = Training(steps=lambda n, d: d / 10)
    assert float(training.flop(np.array(1e8), np.array(1e4))) == pytest.approx(
        6e8 * 256 * 150 * 1000
    )


def test_transfer_split_follows_the_gap() -> None:
    """T3: a small transfer gap says pre-train, a large one says annotate."""

    def law(gap: float):
        return lambda p, f: (2.0 * p**-0.3 + gap) * f**-0.2 + 0.5

    small = transfer_split(law(0.01), 1e4, 0.01, 1.0)
    large = transfer_split(law(1.0), 1e4, 0.01, 1.0)
    assert small.n > large.n
    assert small.d < large.d
