"""Duplicates: which entries repeat an earlier one, and which passages form one component.

How near two passages are is told by `repro.data.similarity`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse as sparse
from pydantic import Field, model_validator

from repro.data import same
from repro.data.collection import Collection
from repro.data.similarity import Near, near_among, near_texts
from repro.data.text import normal, words
from repro.params import Params

RULES = 2  # raise it when what is dropped or joined changes on purpose


class DuplicatesParams(Params):
    """What counts as the same."""

    drop: bool = True  # false: nothing is dropped, all that would be is joined to one component
    # Among which passages near ones are looked for.  Passages with the same first words are found among
    # all, always.  Under `judged` (millions of passages) one without a judgement may be near to a judged
    # one and still be drawn as its negative, and may stay in the corpus; under `none` any may.
    near: Literal["all", "judged", "none"] = "all"
    drop_ambiguous: bool = False  # all pairs of a query that stands over passages unlike each other
    first_words: int = Field(default=25, ge=1, le=1000)  # passages alike in these are the same
    shingle_words: int = Field(default=4, ge=1, le=20)
    drop_jaccard: float = Field(default=0.6, gt=0, le=1)  # this near to an earlier one: dropped
    join_jaccard: float = Field(default=0.3, gt=0, le=1)  # passages this near form one component

    @model_validator(mode="after")
    def _looser(self) -> DuplicatesParams:
        if self.join_jaccard > self.drop_jaccard:
            raise ValueError("join_jaccard is above drop_jaccard\n  remedy: join_jaccard: 0.3")
        if self.drop_ambiguous and self.near == "none":
            raise ValueError(
                "drop_ambiguous asks which passages are alike, near: none looks for none\n"
                "  remedy: near: judged"
            )
        return self

    def spec(self) -> dict[str, Any]:
        """What determines the result; `near` stands in it where it is not the default."""
        left_out = {"near"} if self.near == "all" else set()
        return self.model_dump(mode="json", exclude=left_out) | {"rules": RULES}


@dataclass(frozen=True)
class Unique:
    """A collection without its duplicates, and `component` int32 [n_passages], numbered from 0."""

    collection: Collection
    component: np.ndarray


def remove_duplicates(collection: Collection, params: DuplicatesParams) -> Unique:
    """What is left of `collection`: of entries that repeat each other the first stays.

    In this order go, where `params.drop`: all pairs of an ambiguous query (where
    `params.drop_ambiguous`); pairs whose query is identical to an earlier one (case and white space
    aside); with them the passages left without a pair; passages that share their first words with
    an earlier one; passages near to an earlier one that stays.  Counts go into `dropped`.

    Near passages are looked for among those that `params.near` names.  Where that is not all of them,
    an unjudged passage near to a judged one stays a passage of its own: it may be drawn as a negative
    of that one's query, or be trained on as a negative where the judged one is evaluated.  Of K
    negatives out of n passages, a query with r such passages meets one with a chance of about K r / n.
    """
    near = _near(collection, params)
    start = _first_with_start(collection, params.first_words)
    gone: dict[str, int] = {}
    passage = np.ones(len(collection.passages), bool)
    pair = np.ones(len(collection.pairs), bool)
    if params.drop:
        if params.drop_ambiguous:
            bad = _ambiguous(collection, near.at_least(params.drop_jaccard))
            gone["pair with an ambiguous query"] = int(bad.sum())
            pair &= ~bad
        later = pair & ~_first_with_query(collection, pair)
        gone["pair with an identical query"] = int(later.sum())
        pair &= ~later
        passage = _still_paired(collection, pair)
        gone["passage left without a pair"] = int((~passage).sum())
        again = passage & (same.firsts_among(start, passage) != np.arange(len(passage)))
        gone[f"passage with an identical start ({params.first_words} words)"] = int(again.sum())
        passage &= ~again
        close = _near_an_earlier(near.at_least(params.drop_jaccard), passage)
        gone["passage near to an earlier one"] = int(close.sum())
        passage &= ~close
        pair &= _count_what_follows(collection, passage, pair, gone)
    links = near.links(among=passage)
    if not params.drop:
        later = np.flatnonzero(start != np.arange(len(start)))
        links = np.concatenate([links, np.stack([start[later], later], axis=1)])
    label = components(links, len(passage))[passage]
    component = np.unique(label, return_inverse=True)[1].astype(np.int32)
    return Unique(collection.keep(passage, pair, gone), component)


def components(links: np.ndarray, n: int) -> np.ndarray:
    """int32 [n]: the connected component of each of `n` things under `links` (int [n_links, 2])."""
    ends = (links[:, 0], links[:, 1])
    graph = sparse.coo_array((np.ones(len(links), np.int32), ends), shape=(n, n))
    _, label = sparse.csgraph.connected_components(graph.tocsr(), directed=False)
    return label.astype(np.int32)


def first_of(values: Iterable[Hashable], among: np.ndarray | None = None) -> np.ndarray:
    """int64 [n]: for each value the index of the first one equal to it, of those in `among`."""
    seen: dict[Hashable, int] = {}
    firsts = [
        seen.setdefault(value, index) if among is None or among[index] else index
        for index, value in enumerate(values)
    ]
    return np.array(firsts, np.int64)


def _near(collection: Collection, params: DuplicatesParams) -> Near:
    n, measure = len(collection.passages), (params.shingle_words, params.join_jaccard)
    if params.near == "all":
        return near_texts(collection.passages, *measure)
    judged = np.unique(collection.pairs[:, 1]).astype(np.int64)
    if params.near == "judged":
        return near_among(collection.passages, judged, *measure)
    return Near(np.arange(n), np.empty((0, 2), np.int64), np.empty(0))


def _first_with_start(collection: Collection, n_words: int) -> np.ndarray:
    """int64 [n_passages]: for each the first passage whose first `n_words` words are the same."""

    def start(text: str) -> str:
        return " ".join(words(text)[:n_words])

    texts = collection.passages
    digest = same.digests(map(start, texts), len(texts))
    return same.firsts(digest, lambda row: start(texts[row]))


def _ambiguous(collection: Collection, near: Near) -> np.ndarray:
    """bool [n_pairs]: whether the pair's query text stands over passages that are not alike."""
    alike = components(near.links(), len(collection.passages))[collection.pairs[:, 1]]
    text = first_of(normal(query) for query in collection.queries)[collection.pairs[:, 0]]
    kinds = np.unique(np.stack([text, alike], axis=1), axis=0)[:, 0]
    return np.bincount(kinds, minlength=len(collection.queries))[text] > 1


def _first_with_query(collection: Collection, pair: np.ndarray) -> np.ndarray:
    """bool [n_pairs]: whether no earlier query of a pair in `pair` has the same text."""
    query = collection.pairs[:, 0]
    asked = np.zeros(len(collection.queries), bool)
    asked[query[pair]] = True
    first = first_of((normal(text) for text in collection.queries), among=asked)
    return first[query] == query


def _still_paired(collection: Collection, pair: np.ndarray) -> np.ndarray:
    """bool [n_passages]: false where a passage had pairs and none of them is in `pair`."""
    had, has = np.zeros((2, len(collection.passages)), bool)
    had[collection.pairs[:, 1]] = True
    has[collection.pairs[pair, 1]] = True
    return ~had | has


def _count_what_follows(
    collection: Collection, passage: np.ndarray, pair: np.ndarray, gone: dict[str, int]
) -> np.ndarray:
    """bool [n_pairs]: the pairs whose passage stays; counts the others, and queries left alone."""
    stays = passage[collection.pairs[:, 1]]
    gone["pair of a dropped passage"] = int((pair & ~stays).sum())
    left = len(np.unique(collection.pairs[pair & stays, 0]))
    gone["query left without a pair"] = len(collection.queries) - left
    return stays


def _near_an_earlier(near: Near, passage: np.ndarray) -> np.ndarray:
    """bool [n]: whether an earlier passage in `passage` that itself stays is near."""
    gone = np.zeros(len(passage), bool)
    first = near.first
    for one, other in near.links(among=passage).tolist():
        if not gone[one] or first[one] == first[other]:  # twins are near to what their twin is near
            gone[other] = True
    return gone


def summary(component: np.ndarray) -> dict[str, int]:
    """How many components there are, how many of several passages, and the size of the largest."""
    size = np.bincount(component, minlength=1)
    return {
        "components": len(size),
        "of several passages": int((size > 1).sum()),
        "largest": int(size.max()),
    }
