"""Exact search against a sort, ties included; metrics against a case worked by hand."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repro.measure import ranking, retrieval
from repro.measure.retrieval import expected_bytes, ranking_metrics, top_k


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


@pytest.mark.parametrize("at_once", [1, 2, 5])
def test_queries_and_passages_in_parts_find_the_same(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(at_once)
    queries = random.integers(-2, 3, (5, 2)).astype(np.float32)
    passages = random.integers(-2, 3, (40, 2)).astype(np.float32)
    whole = top_k(queries, [passages[:23], passages[23:]], 6)
    monkeypatch.setattr(retrieval, "QUERIES", at_once)
    monkeypatch.setattr(retrieval, "PASSAGES", 3 * at_once)
    parts = top_k(queries, [passages[:23], passages[23:]], 6)
    assert (whole[0] == parts[0]).all()
    assert (whole[1] == parts[1]).all()


def search(n_passages: int, width: int, n_queries: int, k: int, block: int = 4096) -> None:
    """Search vectors of few small whole numbers, made block by block: within the memory that was told
    before, and equal to brute force on some queries.  Sums of such products are exact: ties are ties."""

    def blocks() -> Iterator[np.ndarray]:
        for start in range(0, n_passages, block):
            random = np.random.default_rng(start)
            drawn = random.integers(-1, 2, (min(block, n_passages - start), width), np.int8)
            yield drawn.astype(np.float32)

    queries = np.random.default_rng(1).integers(-1, 2, (n_queries, width)).astype(np.float32)
    expected = expected_bytes(n_queries, width, k, block)
    tracemalloc.start()
    found, scores = top_k(queries, blocks(), k)
    metrics = ranking_metrics(found, [{int(row[0]): 1} for row in found])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert expected / 4 < peak < expected
    assert metrics["mrr10"] == 1.0
    some = np.random.default_rng(2).choice(n_queries, 3, replace=False)
    whole = np.concatenate([queries[some] @ each.T for each in blocks()], axis=1)
    assert (found[some] == by_sorting(whole, k)).all()
    assert any(len(set(row)) < k for row in scores[some].tolist())  # the premise: there are ties


@pytest.mark.parametrize("n_queries", [20, 1500])
def test_it_stays_under_the_memory_told_beforehand(n_queries: int) -> None:
    search(30_000, 32, n_queries, 100)


@pytest.mark.slow
def test_a_million_vectors_stay_under_the_memory_told_beforehand() -> None:
    assert expected_bytes(100, 768, 100, 4096) < 50e6  # 3 GB of vectors
    search(1_000_000, 768, 100, 100)


def test_a_ranking_needs_eight_bytes_more_for_each_passage() -> None:
    few, many = (ranking.expected_bytes(100, n, 768, 100) for n in (1_000_000, 9_000_000))
    assert many - few == 8 * 8_000_000
    assert few > expected_bytes(100, 768, 100, ranking.BLOCK)


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
