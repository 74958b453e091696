"""The batch of each step: a pure function of the training subset, the seed and the step."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from repro import seeds
from repro.data.dataset import Dataset
from repro.data.negatives import NegativesParams, draw_negatives, draw_own, forbidden


@dataclass(frozen=True)
class Batch:
    """The texts of a step, each distinct passage once."""

    queries: NDArray[np.int32]  # [b], query indices
    passages: NDArray[np.int32]  # [u], distinct passage indices: positives and negatives
    positive: NDArray[np.int64]  # [b], the column of each query's own positive in `passages`
    candidates: NDArray[np.bool_]  # [b, u], the negatives of each query


class Batches:
    """Batches of `size` pairs out of `drawn` (int [n], pair indices); each pass has an order of its own."""

    def __init__(
        self,
        dataset: Dataset,
        drawn: NDArray[np.integer],
        size: int,
        negatives: NegativesParams,
        seed: int,
    ) -> None:
        self.dataset, self.size, self.negatives, self.seed = dataset, size, negatives, seed
        self.pairs = dataset.collection.pairs[drawn]
        self._order = functools.lru_cache(maxsize=2)(self._shuffled)

    def __call__(self, step: int) -> Batch:
        """The batch of `step` (from 0)."""
        turn, place = np.divmod(step * self.size + np.arange(self.size), len(self.pairs))
        rows = np.concatenate([self._order(int(t))[place[turn == t]] for t in np.unique(turn)])
        queries, positives = self.pairs[rows].T
        drawn = draw_negatives(self.dataset.splits.pool, self.negatives, self.size, self.seed, step)
        own = self._own(queries, step)
        passages, columns = np.unique(
            np.concatenate([positives, drawn.ravel(), *own]), return_inverse=True
        )
        positive, sampled, hard = np.split(columns, [self.size, self.size + drawn.size])
        candidates = np.zeros((self.size, len(passages)), bool)
        if self.negatives.sharing == "batch":
            candidates[:, sampled] = candidates[:, hard] = True
        else:
            candidates[np.arange(self.size)[:, None], sampled.reshape(drawn.shape)] = True
            candidates[np.repeat(np.arange(len(own)), [len(each) for each in own]), hard] = True
        if self.negatives.in_batch:
            candidates[:, positive] = True
        judged = self.dataset.judgements.positives(queries)
        candidates &= ~forbidden(self.dataset.component_of_passage, judged, passages)
        return Batch(queries, passages, positive, candidates)

    def _own(self, queries: NDArray[np.int32], step: int) -> list[NDArray[np.int32]]:
        """Hard negatives, one array a query; nothing where none are asked for."""
        if not self.negatives.own:
            return []
        return draw_own(self.dataset.own_negatives, queries, self.negatives.own, self.seed, step)

    def _shuffled(self, turn: int) -> NDArray[np.int64]:
        return seeds.stream(self.seed, "order", turn).permutation(len(self.pairs))
