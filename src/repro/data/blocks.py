"""Blocks: judged pairs that hang together, so that a split must take all of them or none."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from repro.data.collection import Collection
from repro.data.duplicates import components, first_of
from repro.data.text import normal


@dataclass(frozen=True)
class Blocks:
    """The block of each passage (int32 [n_passages]) and of each pair (int32 [n_pairs]).

    Two pairs are in one block where they share a query (or one with an identical text), a passage
    or a component of near-duplicate passages, or are joined by a chain of such pairs.
    """

    of_passage: np.ndarray
    of_pair: np.ndarray

    @property
    def count(self) -> int:
        """One more than the highest number of a block."""
        return int(self.of_passage.max(initial=-1)) + 1

    def touched(self, pairs: np.ndarray) -> np.ndarray:
        """bool [count]: whether one of these pairs (indices, or bool [n_pairs]) is in the block."""
        mark = np.zeros(self.count, bool)
        mark[self.of_pair[pairs]] = True
        return mark


def find_blocks(
    collection: Collection, component: np.ndarray, pair: np.ndarray | None = None
) -> Blocks:
    """The blocks under the pairs in `pair` (bool [n_pairs]; all of them where it is None).

    `component` is int32 [n_passages].  Passages without a pair are in a block too, by component.
    """
    n_components = int(component.max(initial=-1)) + 1
    text = first_of(normal(query) for query in collection.queries)
    chosen = collection.pairs if pair is None else collection.pairs[pair]
    links = np.stack([n_components + text[chosen[:, 0]], component[chosen[:, 1]]], axis=1)
    of_component = components(links, n_components + len(text))[:n_components]
    number = np.unique(of_component, return_inverse=True)[1].astype(np.int32)
    of_passage = number[component]
    return Blocks(of_passage, of_passage[collection.pairs[:, 1]])
