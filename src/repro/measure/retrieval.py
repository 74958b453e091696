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

QUERIES, PASSAGES = 1024, 512  # scored at once
SCORED_BYTES = 400  # of a line of a ranked list, as ir_measures takes it


def top_k(
    queries: NDArray[np.float32], passages: Iterable[NDArray[np.float32]], k: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The k best passages of each query by inner product: indices and scores, [m, k], best first.

    passages: blocks of rows, in order of the corpus; only one block and the running best are held
    (`expected_bytes`).  Rows are padded with index -1 and score -inf where the corpus is smaller than k.
    """
    best = _Best(len(queries), k)
    start = 0
    for block in passages:
        for first in range(0, len(queries), QUERIES):
            for piece in range(0, len(block), PASSAGES):
                found = queries[first : first + QUERIES] @ block[piece : piece + PASSAGES].T
                best.take(first, found, start + piece)
        start += len(block)
    return best.ended()


def expected_bytes(n_queries: int, width: int, k: int, block: int) -> int:
    """The most that `top_k` and `ranking_metrics` hold: queries, a block, its scores, the best lists.

    It does not depend on how many passages are searched.
    """
    vectors = 4 * width * (n_queries + 2 * block)  # the block that is read while one is searched
    scores = (5 * PASSAGES + 32 * k) * min(n_queries, QUERIES)  # and which of them may count
    best = (8 + 4 + 8) * n_queries * k  # indices, scores, and the passages they stand for
    # What the search holds of as many again, and the copy of the best, is gone when these are lines.
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


class _Best:
    """The k best passages of each query so far, and as many that wait to be held against them.

    All in order of the corpus, so that of equal scores the earlier is the lower index.
    """

    def __init__(self, n_queries: int, k: int) -> None:
        self.k = k
        self.index = np.full((n_queries, 2 * k), -1, dtype=np.int64)
        self.score = np.full((n_queries, 2 * k), -np.inf, dtype=np.float32)
        self.bar = np.full(n_queries, -np.inf, dtype=np.float32)  # what is not above cannot count
        self.held = np.full(n_queries, k)

    def take(self, first: int, found: NDArray[np.float32], start: int) -> None:
        """Hold what may count of the passages from `start` on; found: [m, n], queries from `first` on."""
        if not self._hold(first, found, start):
            half = found.shape[1] // 2
            self.take(first, found[:, :half], start)
            self.take(first, found[:, half:], start + half)

    def _hold(self, first: int, found: NDArray[np.float32], start: int) -> bool:
        """Do so; false, and none is held, where there is no room (k passages always find some)."""
        rows = slice(first, first + len(found))
        above = found > self.bar[rows, None]
        if np.count_nonzero(above) > self.k * len(found):
            return False
        row, column = np.divmod(np.flatnonzero(above), found.shape[1])
        full = self._full(rows, row)
        if len(full):
            self._narrow(first + full)  # the bar rises
            still = found[row, column] > self.bar[rows][row]
            row, column = row[still], column[still]
            if len(self._full(rows, row)):
                return False
        new = np.bincount(row, minlength=len(found))
        place = np.arange(len(row)) + (self.held[rows] - np.cumsum(new) + new)[row]
        self.index[rows][row, place] = start + column
        self.score[rows][row, place] = found[row, column]
        self.held[rows] += new
        return True

    def ended(self) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Indices and scores of the k best, best first."""
        for rows in np.array_split(np.arange(len(self.held)), len(self.held) // QUERIES + 1):
            self._narrow(rows)
            order = np.argsort(-self.score[rows, : self.k], axis=1, kind="stable")
            for held in (self.index, self.score):
                held[rows, : self.k] = np.take_along_axis(held[rows], order, axis=1)
        return self.index[:, : self.k].copy(), self.score[:, : self.k].copy()

    def _full(self, rows: slice, row: NDArray[np.int64]) -> NDArray[np.int64]:
        """Which of these queries have no room for as many more as `row` names them."""
        held = self.held[rows]
        return np.flatnonzero(held + np.bincount(row, minlength=len(held)) > 2 * self.k)

    def _narrow(self, rows: NDArray[np.int64]) -> None:
        """Keep the k best of what these queries hold."""
        score, index = self.score[rows], self.index[rows]
        bar = np.partition(score, self.k, axis=1)[:, self.k, None]
        keep, tied = score > bar, score == bar
        keep |= tied & (np.cumsum(tied, axis=1) <= self.k - keep.sum(axis=1, keepdims=True))
        self.score[rows, : self.k] = score[keep].reshape(-1, self.k)
        self.index[rows, : self.k] = index[keep].reshape(-1, self.k)
        self.score[rows, self.k :] = -np.inf
        self.bar[rows], self.held[rows] = bar[:, 0], self.k
