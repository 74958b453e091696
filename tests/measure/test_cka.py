"""CKA by features against its definition by Gram matrices, its invariances, its nulls, its memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from repro.errors import UserError
from repro.measure.cka import biased_cka, debiased_cka

RANDOM = np.random.default_rng(7)
X = RANDOM.standard_normal((40, 6)) + 3.0
Y = np.column_stack([X[:, :3] ** 2, RANDOM.standard_normal((40, 5))])


def gram_biased(x: np.ndarray, y: np.ndarray) -> float:
    """By definition: centred n x n Gram matrices."""
    centre = np.eye(len(x)) - 1 / len(x)
    k, l = centre @ x @ x.T @ centre, centre @ y @ y.T @ centre  # noqa: E741
    return float(np.sum(k * l) / np.sqrt(np.sum(k * k) * np.sum(l * l)))


def gram_debiased(x: np.ndarray, y: np.ndarray) -> float:
    """By definition: Gram matrices, not centred, without their diagonals."""

    def hsic(a: np.ndarray, b: np.ndarray) -> float:
        k, l = a @ a.T, b @ b.T  # noqa: E741
        np.fill_diagonal(k, 0)
        np.fill_diagonal(l, 0)
        n, one = len(a), np.ones(len(a))
        total = np.trace(k @ l) + one @ k @ one * (one @ l @ one) / ((n - 1) * (n - 2))
        return float(total - 2 / (n - 2) * one @ k @ l @ one) / (n * (n - 3))

    return hsic(x, y) / np.sqrt(hsic(x, x) * hsic(y, y))


@pytest.mark.parametrize("rows", [4, 5, 40])
@pytest.mark.parametrize("offset", [0.0, 50.0])
def test_features_and_gram_matrices_agree(rows: int, offset: float) -> None:
    x, y = X[:rows] + offset, Y[:rows]
    assert biased_cka(x, y) == pytest.approx(gram_biased(x, y), rel=1e-9)
    try:
        found = debiased_cka(x, y)
    except UserError:  # four rows can have no unbiased spread
        assert rows == 4
        return
    assert found == pytest.approx(gram_debiased(x, y), rel=1e-7)


@pytest.mark.parametrize("cka", [biased_cka, debiased_cka])
def test_a_representation_is_like_itself_and_order_does_not_matter(cka) -> None:
    assert cka(X, X) == pytest.approx(1.0, abs=1e-12)
    assert cka(X, Y) == pytest.approx(cka(Y, X), rel=1e-12)
    assert cka(X, Y) < 0.95  # so that 1 is not what everything gives


@pytest.mark.parametrize("cka", [biased_cka, debiased_cka])
def test_rotation_scale_and_shift_change_nothing_and_stretching_does(cka) -> None:
    turn, _ = np.linalg.qr(RANDOM.standard_normal((6, 6)))
    assert cka(X @ turn * 1e3 + 5, Y) == pytest.approx(cka(X, Y), rel=1e-9)
    assert cka(X * 1e-6, Y * 1e6) == pytest.approx(cka(X, Y), rel=1e-9)
    stretched = X * np.array([50.0, 1, 1, 1, 1, 1])
    assert abs(cka(stretched, Y) - cka(X, Y)) > 0.01


def test_independent_gaussians_are_alike_only_when_biased() -> None:
    """1,024 texts in 768 dimensions: the biased value is d / (n + d), the debiased one 0."""
    x, y = RANDOM.standard_normal((2, 1024, 768))
    assert biased_cka(x, y) == pytest.approx(768 / (1024 + 768), abs=0.005)
    assert abs(debiased_cka(x, y)) < 0.005


def test_no_bias_over_many_draws() -> None:
    draws = [debiased_cka(*RANDOM.standard_normal((2, 30, 20))) for _ in range(400)]
    assert abs(np.mean(draws)) < 4 * np.std(draws) / 20
    assert min(draws) < 0  # unbiased: on both sides of 0


def test_memory_does_not_grow_with_the_square_of_the_texts() -> None:
    x, y = RANDOM.standard_normal((2, 20_000, 16), dtype=np.float32)
    tracemalloc.start()
    try:
        debiased_cka(x, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 20 * x.size * 8  # a Gram matrix alone would take 3.2 GB
    assert peak < 20_000**2


def test_float32_is_as_good_as_float64() -> None:
    x, y = X.astype(np.float32), Y.astype(np.float32)
    assert debiased_cka(x, y) == pytest.approx(debiased_cka(X, Y), rel=1e-5)


@pytest.mark.parametrize("cka", [biased_cka, debiased_cka])
@pytest.mark.parametrize(
    ("x", "y", "fault"),
    [
        (X, Y[:-1], "same texts; there are 40 and 39"),
        (X[:3], Y[:3], r"at least 4 vectors as rows; x is of shape \(3, 6\)"),
        (X[:, 0], Y, r"x is of shape \(40,\)"),
        (X, np.where(Y > 2, np.nan, Y), "y holds values that are not finite"),
        (np.ones((40, 6)), Y, "all rows of x are alike"),
        (X, np.zeros((40, 2)), "all rows of y are alike"),
        (np.full((40, 3), 0.1), Y, "all rows of x are alike"),
    ],
)
def test_what_has_no_cka_is_refused(cka, x: np.ndarray, y: np.ndarray, fault: str) -> None:
    with pytest.raises(UserError, match=fault):
        cka(x, y)


def test_fewer_texts_than_have_a_spread_are_told() -> None:
    """Four corners of a simplex: every pair as far apart as any other, nothing left of the spread."""
    with pytest.raises(UserError, match="not above 0"):
        debiased_cka(np.eye(4), np.eye(4))
