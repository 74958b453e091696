"""Exact search against a sort, ties included; metrics against a case worked by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repro.measure.retrieval import ranking_metrics, top_k


def by_sorting(scores: np.ndarray, k: int) -> np.ndarray:
    return np.array([np.lexsort((np.arange(len(row)), -row))[:k] for row in scores])


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(1, 12), st.integers(1, 9))
def test_it_equals_a_full_sort_with_ties(seed: int, n: int, block: int, k: int) -> None:
    random = np.random.default_rng(seed)
    queries = random.integers(-2, 3, (3, 2)).astype(np.float32)  # small integers: many ties
    passages = random.integers(-2, 3, (n, 2)).astype(np.float32)
    blocks = [passages[i : i + block] for i in range(0, n, block)]
    found, scores = top_k(queries, blocks, k)
    expected = by_sorting(queries @ passages.T, k)
    assert (found[:, : expected.shape[1]] == expected).all()
    assert (found[:, expected.shape[1] :] == -1).all()
    for row in range(3):
        kept = found[row] >= 0
        assert (scores[row, kept] == (queries @ passages.T)[row, found[row, kept]]).all()


def test_metrics_equal_a_case_worked_by_hand() -> None:
    ranked = np.array([[4, 7, 2, 9], [1, 3, 5, 8]])
    judged = [{7: 1, 9: 1}, {6: 1}]  # the second query's positive is not found
    found = ranking_metrics(ranked, judged)
    ideal = 1 / math.log2(2) + 1 / math.log2(3)
    gain = 1 / math.log2(3) + 1 / math.log2(5)
    assert found["mrr10"] == pytest.approx((1 / 2 + 0) / 2)
    assert found["recall100"] == pytest.approx((1.0 + 0) / 2)
    assert found["ndcg10"] == pytest.approx((gain / ideal + 0) / 2)
    assert found["map10"] == pytest.approx(((1 / 2 + 2 / 4) / 2 + 0) / 2)


def test_ties_are_broken_by_our_rule_not_the_evaluators() -> None:
    queries = np.ones((1, 1), dtype=np.float32)
    passages = np.ones((12, 1), dtype=np.float32)  # all tied: trec_eval would put the last id first
    ranked, _ = top_k(queries, [passages], 12)
    assert ranked[0].tolist() == list(range(12))
    assert ranking_metrics(ranked, [{0: 1}])["mrr10"] == 1.0
    assert ranking_metrics(ranked, [{9: 1}])["mrr10"] == pytest.approx(0.1)
    assert ranking_metrics(ranked, [{10: 1}])["mrr10"] == 0.0
