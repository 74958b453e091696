"""Duplicates: which entries repeat an earlier one, and which passages form one component.

Two passages are as near as the Jaccard similarity of their sets of word 4-grams.  All pairs above
a threshold are found, none is left to chance as with MinHash: two sets of similarity t or more
must share one of their rarest elements, in the first |x| - ceil(t |x|) + 1 of them (prefix
filtering: Chaudhuri, Ganti and Kaushik 2006; Bayardo, Ma and Srikant 2007).  The few candidates
are then compared in full.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sparse
from pydantic import Field, model_validator

from repro.data.collection import Collection
from repro.data.text import normal, words
from repro.params import Params

RULES = 1  # raise it when what is dropped or joined changes on purpose
BLOCK = 4096  # passages compared at once: bounds the memory


class DuplicatesParams(Params):
    """What counts as the same."""

    drop: bool = True  # false: nothing is dropped, all that would be is joined to one component
    first_words: int = Field(default=25, ge=1, le=1000)  # passages alike in these are the same
    shingle_words: int = Field(default=4, ge=1, le=20)
    drop_jaccard: float = Field(
        default=0.6, gt=0, le=1
    )  # a passage this near to an earlier one is dropped
    join_jaccard: float = Field(default=0.4, gt=0, le=1)  # passages this near form one component

    @model_validator(mode="after")
    def _looser(self) -> DuplicatesParams:
        if self.join_jaccard > self.drop_jaccard:
            raise ValueError("join_jaccard is above drop_jaccard\n  remedy: join_jaccard: 0.4")
        return self


@dataclass(frozen=True)
class Unique:
    """A collection without its duplicates, and `component` int32 [n_passages], numbered from 0."""

    collection: Collection
    component: np.ndarray


def remove_duplicates(collection: Collection, params: DuplicatesParams) -> Unique:
    """What is left of `collection`: of entries that repeat each other the first stays.

    In this order go: pairs whose query is identical to an earlier one (case and white space aside),
    with the passages that had no other pair; passages that share their first words with an earlier
    one; passages near an earlier one that stays.  Counts go into the collection's `dropped`.
    """
    if params.drop:
        collection = _drop_identical_queries(collection)
        collection = _drop_same_start(collection, params.first_words)
        near = similar_pairs(
            shingles(collection.passages, params.shingle_words), params.drop_jaccard
        )
        collection = _drop_passages(
            collection, _later(near, len(collection.passages)), "near duplicate"
        )
    links = similar_pairs(shingles(collection.passages, params.shingle_words), params.join_jaccard)
    if not params.drop:
        starts = _first_of(_start(text, params.first_words) for text in collection.passages)
        links = np.concatenate([links, np.stack([starts, np.arange(len(starts))], axis=1)])
    return Unique(collection, components(links, len(collection.passages)))


def shingles(texts: Sequence[str], n_words: int) -> sparse.csr_array:
    """int32 [n_texts, n_shingles]: 1 where the text has that run of words (a shorter text: all)."""
    number: dict[tuple[str, ...], int] = {}
    columns: list[int] = []
    ends = [0]
    for text in texts:
        run = words(text)
        last = max(len(run) - n_words, 0)
        columns += {
            number.setdefault(tuple(run[start : start + n_words]), len(number)): None
            for start in range(last + 1)
        }
        ends.append(len(columns))
    shape = (len(texts), max(len(number), 1))
    return sparse.csr_array((np.ones(len(columns), np.int32), columns, ends), shape=shape)


def similar_pairs(sets: sparse.csr_array, jaccard: float) -> np.ndarray:
    """int64 [n, 2]: all (earlier, later) rows of `sets` at least as similar, in order."""
    size = np.diff(sets.indptr)
    prefix = _prefix(sets, size, jaccard)
    turned = prefix.T.tocsr()
    found = [np.empty((0, 2), np.int64)]
    for start in range(0, sets.shape[0], BLOCK):
        candidates = (prefix[start : start + BLOCK] @ turned).tocoo()
        one, other = (
            candidates.coords[0].astype(np.int64) + start,
            candidates.coords[1].astype(np.int64),
        )
        small, large = np.minimum(size[one], size[other]), np.maximum(size[one], size[other])
        keep = (one < other) & (small >= jaccard * large)
        one, other = one[keep], other[keep]
        shared = _intersections(sets, one, other)
        near = shared >= jaccard * (size[one] + size[other] - shared)
        found.append(np.stack([one[near], other[near]], axis=1))
    pairs = np.concatenate(found)
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]


def components(links: np.ndarray, n: int) -> np.ndarray:
    """int32 [n]: the connected component of each of `n` things under `links` (int [n_links, 2])."""
    graph = sparse.coo_array(
        (np.ones(len(links), np.int8), (links[:, 0], links[:, 1])), shape=(n, n)
    )
    _, label = sparse.csgraph.connected_components(graph.tocsr(), directed=False)
    return label.astype(np.int32)


def _prefix(sets: sparse.csr_array, size: np.ndarray, jaccard: float) -> sparse.csr_array:
    """Of each row the rarest elements: so many that a similar row must share one."""
    frequency = np.bincount(sets.indices, minlength=sets.shape[1])
    row = np.repeat(np.arange(sets.shape[0]), size)
    order = np.lexsort((sets.indices, frequency[sets.indices], row))
    column = sets.indices[order]
    rank = np.arange(len(row)) - sets.indptr[row]
    # The small term guards against .6 * 5 = 3.0000000000000004.
    length = size - np.ceil(jaccard * size - 1e-9).astype(int) + 1
    keep = (rank < length[row]) & (frequency[column] > 1)
    ones = np.ones(int(keep.sum()), np.int32)
    return sparse.csr_array((ones, (row[keep], column[keep])), shape=sets.shape)


def _intersections(sets: sparse.csr_array, one: np.ndarray, other: np.ndarray) -> np.ndarray:
    parts = [np.empty(0, np.int64)]
    for start in range(0, len(one), 16 * BLOCK):
        part = slice(start, start + 16 * BLOCK)
        parts.append(sets[one[part]].multiply(sets[other[part]]).sum(axis=1))
    return np.concatenate(parts)


def _drop_identical_queries(collection: Collection) -> Collection:
    query = collection.pairs[:, 0]
    first = _first_of(normal(text) for text in collection.queries)
    pair = first[query] == query
    had, has = np.zeros((2, len(collection.passages)), bool)
    had[collection.pairs[:, 1]] = True
    has[collection.pairs[pair, 1]] = True
    return collection.keep(~had | has, pair, {"pair with an identical query": int((~pair).sum())})


def _drop_same_start(collection: Collection, n_words: int) -> Collection:
    first = _first_of(_start(text, n_words) for text in collection.passages)
    later = first != np.arange(len(first))
    return _drop_passages(collection, later, f"identical first {n_words} words")


def _drop_passages(collection: Collection, gone: np.ndarray, why: str) -> Collection:
    everything = np.ones(len(collection.pairs), bool)
    return collection.keep(~gone, everything, {f"passage: {why}": int(gone.sum())})


def _later(near: np.ndarray, n: int) -> np.ndarray:
    """bool [n]: whether an earlier one that stays is near; `near` is sorted."""
    gone = np.zeros(n, bool)
    for one, other in near.tolist():
        if not gone[one]:
            gone[other] = True
    return gone


def _start(text: str, n_words: int) -> tuple[str, ...]:
    return tuple(words(text)[:n_words])


def _first_of(values: Iterable[Hashable]) -> np.ndarray:
    """int64 [n]: for each value the index of the first one equal to it."""
    seen: dict[Hashable, int] = {}
    firsts = [seen.setdefault(value, index) for index, value in enumerate(values)]
    return np.array(firsts, np.int64)


def summary(unique: Unique) -> dict[str, int]:
    """How many components there are, and the sizes of those with more than one passage."""
    size = np.bincount(unique.component)
    several = Counter(size[size > 1].tolist())
    return {
        "components": len(size),
        "components of several passages": sum(several.values()),
        "largest component": int(size.max(initial=0)),
    }
