"""Pins: information criteria by hand, the paper's hold-outs, the interaction test's error rate."""

from __future__ import annotations

import numpy as np
import pytest
from grids import MODELS, SIZES, grid, mael_law, noisy, sigir_v2

from repro.errors import UserError
from repro.laws import holdout
from repro.laws.fit import fit, predictions
from repro.laws.table import Table


def test_criteria_equal_statsmodels() -> None:
    import statsmodels.api as sm

    n, d = grid()
    loss = noisy(mael_law(n, d), 0)
    fitted = fit("product", Table(loss, n, d))
    peer = sm.OLS(np.log(loss), sm.add_constant(np.column_stack([np.log(n), np.log(d)]))).fit()
    constant = len(n) * (1 + np.log(2 * np.pi))  # ours leaves out what is equal for all forms
    k = 4  # three coefficients and the variance
    assert holdout.r2_log(fitted) == pytest.approx(peer.rsquared)
    assert holdout.bic(fitted) + constant == pytest.approx(peer.bic + np.log(len(n)))
    correction = 2 * k * (k + 1) / (len(n) - k - 1)
    assert holdout.aicc(fitted) + constant == pytest.approx(peer.aic + 2 + correction)
    np.testing.assert_allclose(
        [fitted.standard_errors[p] for p in ("alpha", "beta")], peer.bse[1:], rtol=1e-6
    )


def test_leave_one_model_out_predicts_every_row_from_the_others() -> None:
    n, d = grid()
    loss = noisy(mael_law(n, d), 1)
    out = holdout.leave_one_out("product", Table(loss, n, d), by="n")
    assert len(out.errors) == 35
    rest = n != MODELS[2]
    design = np.column_stack([np.ones(35), np.log(n), np.log(d)])
    solution = np.linalg.lstsq(design[rest], np.log(loss[rest]), rcond=None)[0]
    expected = np.abs(np.exp(design[~rest] @ solution) / loss[~rest] - 1)
    np.testing.assert_allclose(out.errors[out.group == MODELS[2]], expected, rtol=1e-6)


@pytest.mark.parametrize("delta", [np.inf, 0.01])
@pytest.mark.parametrize("law", ["product", "additive_floor", "joint", "joint_floor", "product_d0"])
def test_fits_to_many_choices_of_rows_are_those_one_by_one(law: str, delta: float) -> None:
    n, d = grid()
    bound = np.zeros(35, np.int8)
    bound[4] = 1
    weight = 1 + np.arange(35) % 3
    table = Table(noisy(sigir_v2(n, d), 3), n, d, weight, bound)
    seen = np.array([n != value for value in np.unique(n)] + [d != value for value in np.unique(d)])
    found = predictions(law, table, seen, delta)
    for rows, said in zip(seen, found, strict=True):
        alone = fit(law, table.take(rows), delta=delta)
        np.testing.assert_allclose(said, alone.predict(n=n, d=d), rtol=2e-6)


def test_a_choice_that_cannot_determine_the_law_is_refused() -> None:
    n, d = grid()
    seen = np.array([n > 0, n == MODELS[0]])
    with pytest.raises(UserError, match="every row has the same"):
        predictions("product", Table(mael_law(n, d), n, d), seen)


def test_the_default_corner_is_the_papers() -> None:
    n, d = grid()
    out = holdout.corner("product", Table(mael_law(n, d), n, d))
    assert sorted(set(out.group)) == sorted(MODELS[3:])
    assert len(out.actual) == 4
    assert out.worst < 1e-9


def test_the_right_law_wins_its_own_grid() -> None:
    n, d = grid()
    laws = ["product", "additive", "joint", "joint_floor", "additive_floor"]
    one = holdout.compare(laws, Table(noisy(mael_law(n, d), 2), n, d))
    assert one.loc[0, "form"] == "product"
    two = holdout.compare(laws, Table(noisy(sigir_v2(n, d), 2), n, d))
    assert two.loc[0, "form"] == "joint_floor"
    assert "cannot be told apart" not in two.attrs["verdict"]


def test_forms_that_nest_the_truth_cannot_be_told_apart() -> None:
    n, d = grid()
    table = holdout.compare(["product", "product_floor"], Table(noisy(mael_law(n, d), 3), n, d))
    assert "cannot be told apart" in table.attrs["verdict"]


def test_small_grids_say_what_is_missing() -> None:
    n, d = grid(MODELS[:2], SIZES[:3])
    frame = holdout.compare(["product"], Table(noisy(mael_law(n, d), 4), n, d))
    assert np.isnan(frame.loc[0, "loo_n"])
    assert "leave one n out" in frame.loc[0, "note"]


def test_interaction_is_found_where_it_is_and_rarely_where_it_is_not() -> None:
    n, d = grid()
    false = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        effect = np.repeat(
            np.exp(0.02 * rng.normal(size=5)), 7
        )  # a model effect is not an interaction
        result = holdout.interaction_test(Table(noisy(mael_law(n, d) * effect, seed), n, d))
        false += not result.parallel
    assert 2 <= false <= 20  # 5 % of 200 is 10
    bent = holdout.interaction_test(Table(noisy(sigir_v2(n, d), 0), n, d))
    assert not bent.parallel
    assert bent.p_value < 1e-6


def test_more_runs_predict_the_corner_better() -> None:
    n, d = grid()
    curve = holdout.learning_curve("joint_floor", Table(noisy(sigir_v2(n, d), 5, 0.01), n, d))
    assert curve["mean"].iloc[-1] < curve["mean"].iloc[0]
    assert curve["runs"].is_monotonic_increasing
    assert curve["share"].between(0, 1).all()


def test_a_law_does_not_gain_by_failing_on_the_hardest(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {
        "product": {"form": "product", "loo_n": 0.06, "loo_d": 0.02, "corner": 0.05},
        "product_floor": {"form": "product_floor", "loo_n": 0.06, "loo_d": 0.03, "corner": np.nan},
    }
    monkeypatch.setattr(
        holdout, "_compare_one", lambda law, table, delta: {**rows[law.name], "k": 1, "aicc": 0.0}
    )
    n, d = grid()
    found = holdout.compare(["product_floor", "product"], Table(mael_law(n, d), n, d))
    assert found["form"].tolist() == ["product", "product_floor"]
