"""Exact retrieval, streamed, and the ranking metrics computed by ir_measures.

Tie rule: of passages with equal scores the one with the lower index comes first; the metrics see
ranks, so that no evaluator breaks ties by its own rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

# Our names of the metrics, and theirs in ir_measures.
METRICS = {"mrr10": "RR@10", "recall100": "R@100", "ndcg10": "nDCG@10", "map10": "AP@10"}

QUERIES = 1024  # scored at once
SCORED_BYTES = 400  # of a line of a ranked list, as ir_measures takes it


def top_k(
    queries: NDArray[np.float32], passages: Iterable[NDArray[np.float32]], k: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The k best passages of each query by inner product: indices and scores, [m, k], best first.

    passages: blocks of rows, in order of the corpus; only one block and the running best are held
    (`expected_bytes`).  Rows are padded with index -1 and score -inf where the corpus is smaller than k.
    """
    best = np.full((len(queries), k), -1, dtype=np.int64)
    score = np.full((len(queries), k), -np.inf, dtype=np.float32)
    start = 0
    for block in passages:
        for first in range(0, len(queries), QUERIES):
            part = slice(first, first + QUERIES)
            _improve(best[part], score[part], queries[part] @ block.T, start)
        start += len(block)
    return best, score


def expected_bytes(n_queries: int, width: int, k: int, block: int) -> int:
    """The most that `top_k` and `ranking_metrics` hold: queries, a block, its scores, the best lists.

    It does not depend on how many passages are searched.
    """
    vectors = 4 * width * (n_queries + 2 * block)  # the block that is read while one is searched
    scores = 4 * block * min(n_queries, QUERIES) + 32 * block
    best = (8 + 4 + 8) * n_queries * k  # indices, scores, and the passages they stand for
    return vectors + scores + best + SCORED_BYTES * n_queries * k


def ranking_metrics(
    ranked: NDArray[np.integer], judged: Sequence[Mapping[int, int]]
) -> dict[str, float]:
    """Means over queries of MRR@10, Recall@100, nDCG@10 and MAP@10.

    ranked: int [m, k], passage indices, best first (-1: none).
    judged: for each query its judged passages and their grades (all those of the judgements).
    """
    import ir_measures

    qrels = [
        ir_measures.Qrel(str(q), str(passage), grade)
        for q, grades in enumerate(judged)
        for passage, grade in grades.items()
    ]
    run = [
        ir_measures.ScoredDoc(str(q), str(passage), -float(rank))
        for q, row in enumerate(ranked)
        for rank, passage in enumerate(row)
        if passage >= 0
    ]
    measures = {name: ir_measures.parse_measure(theirs) for name, theirs in METRICS.items()}
    found = ir_measures.calc_aggregate(list(measures.values()), qrels, run)
    return {name: float(found[measure]) for name, measure in measures.items()}


def _improve(
    best: NDArray[np.int64], score: NDArray[np.float32], found: NDArray[np.float32], start: int
) -> None:
    """Bring the passages from `start` on, with scores `found` [m, n], into the best ones, in place."""
    k = best.shape[1]
    for row in range(len(found)):
        floor = score[row, -1]
        ahead = np.flatnonzero(found[row] > floor)  # equal to the last: the earlier one stays
        if len(ahead) > 4 * k:
            ahead = ahead[_at_least_kth(found[row, ahead], k)]
        scores = np.concatenate([score[row], found[row, ahead]])
        indices = np.concatenate([best[row], ahead + start])
        order = np.argsort(-scores, kind="stable")[:k]  # stable: lower index first
        score[row], best[row] = scores[order], indices[order]


def _at_least_kth(scores: NDArray[np.float32], k: int) -> NDArray[np.bool_]:
    """Which scores are at least the k-th best, all ties with it included."""
    return scores >= np.partition(scores, len(scores) - k)[len(scores) - k]
