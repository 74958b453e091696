"""Training negatives: which passages a step draws, and which a query must not be pushed from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from pydantic import Field

from repro.data.collection import Collection
from repro.data.text import normal
from repro.errors import UserError
from repro.params import Params
from repro.seeds import stream


class NegativesParams(Params):
    """The negatives of a training step."""

    count: int = Field(default=256, ge=0, le=10**6)  # sampled negatives a pair: K of the papers
    source: Literal["random"] = "random"
    sharing: Literal["batch", "query"] = (
        "batch"  # one draw for the whole batch, or one for each query
    )
    in_batch: bool = False  # the positives of the batch's other pairs serve as well
    # Added to these: that many of each query's own, which the data name (`negative` of a source).
    own: int = Field(default=0, ge=0, le=1000, exclude_if=lambda own: own == 0)


@dataclass(frozen=True)
class Judgements:
    """The judged positives of each query: those of query q stand at offsets[q] to offsets[q + 1].

    Queries with an identical text share theirs.  `offsets` int64 [n_queries + 1], `passages` int32.
    """

    offsets: np.ndarray
    passages: np.ndarray

    @classmethod
    def of(cls, collection: Collection) -> Judgements:
        """The judgements of a collection."""
        number: dict[str, int] = {}
        text = np.array(
            [number.setdefault(normal(query), len(number)) for query in collection.queries],
            np.int64,
        )
        by_text: list[list[int]] = [[] for _ in number]
        for query, passage in collection.pairs.tolist():
            by_text[text[query]].append(passage)
        lists = [sorted(set(by_text[index])) for index in text]
        offsets = np.concatenate([[0], np.cumsum([len(each) for each in lists])]).astype(np.int64)
        flat = [passage for each in lists for passage in each]
        return cls(offsets, np.array(flat, np.int32))

    def positives(self, queries: np.ndarray) -> np.ndarray:
        """int32 [n, most]: the judged positives of each query, filled up by repeating the last."""
        start, end = self.offsets[queries], self.offsets[queries + 1]
        most = int((end - start).max(initial=1))
        return self.passages[np.minimum(start[:, None] + np.arange(most), end[:, None] - 1)]


def draw_negatives(
    pool: np.ndarray, params: NegativesParams, n_queries: int, seed: int, step: int
) -> np.ndarray:
    """The sampled negatives of a step, from `pool` (passage indices), as int32.

    Shape [count] where the batch shares them, else [n_queries, count].  They depend on the seed and
    the step alone; inside one draw no passage comes twice.  A pool too small raises `UserError`.
    """
    if params.count > len(pool):
        raise UserError(
            f"{params.count:,} negatives are to be drawn from a pool of {len(pool):,} passages",
            remedy=f"negatives.count: {len(pool)} or less",
        )
    random = stream(seed, "negatives", step)
    if params.sharing == "batch":
        return random.choice(pool, params.count, replace=False).astype(np.int32)
    drawn = [random.choice(pool, params.count, replace=False) for _ in range(n_queries)]
    return np.array(drawn, np.int32).reshape(n_queries, params.count)


def own_negatives(collection: Collection, pool: np.ndarray) -> Judgements:
    """The hard negatives of each query that training may see: those in `pool`.

    No block of an evaluated pair reaches into the pool, so that none of them answers an evaluated query.
    """
    inside = np.zeros(len(collection.passages), bool)
    inside[pool] = True
    found = collection.negatives[inside[collection.negatives[:, 1]]]
    found = found[np.lexsort(found.T[::-1])]
    counts = np.bincount(found[:, 0], minlength=len(collection.queries))
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return Judgements(offsets, found[:, 1].astype(np.int32))


def draw_own(
    own: Judgements, queries: np.ndarray, count: int, seed: int, step: int
) -> list[np.ndarray]:
    """For each query the negatives of its own that the step uses: `count`, or all where there are fewer."""
    random = stream(seed, "own negatives", step)
    drawn = []
    for query in queries:
        theirs = own.passages[own.offsets[query] : own.offsets[query + 1]]
        few = len(theirs) <= count
        drawn.append(theirs if few else random.choice(theirs, count, replace=False))
    return drawn


def forbidden(component: np.ndarray, positives: np.ndarray, passages: np.ndarray) -> np.ndarray:
    """bool [n, k]: whether passage j is out of bounds as a negative of query i.

    It is where its component is that of a judged positive.  `component` int [n_passages];
    `positives` int [n, most] as `Judgements.positives` gives them; `passages` int [k], the same for
    all queries, or [n, k].  With in-batch negatives `passages` are the batch's own positives: the
    diagonal is then forbidden, as it should be.
    """
    theirs = component[passages]
    own = component[positives]
    mask = own[:, :1] == theirs
    for column in range(1, own.shape[1]):
        mask |= own[:, column : column + 1] == theirs
    return mask
