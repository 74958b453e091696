"""Labels of which a known share is wrong: the query's passage is replaced by one that does not answer it.

Which pairs are wrong does not depend on the share beyond their number: those that are wrong at 10 %
are wrong at 30 %.  At each data size s x D of the first D are wrong, rounded down.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from repro.data.dataset import Dataset
from repro.errors import UserError
from repro.seeds import stream
from repro.train.labels.kinds import LabelSpec, Wrong
from repro.train.labels.made import LabelSet

TRIES = 1000


def chosen(sizes: Sequence[int], share: float, seed: int) -> NDArray[np.bool_]:
    """bool [largest size]: which pairs are wrong; sizes rise.

    Between one size and the next the wrong ones are the first of an order that the share does not
    change, as many as bring their number to floor(share x size).  So a larger share has all those of a
    smaller one, as long as (larger - smaller) x (size - size before) is two or more.
    """
    wrong = np.zeros(sizes[-1], bool)
    for low, high in pairwise([0, *sizes]):
        order = stream(seed, "wrong", low, high).permutation(np.arange(low, high))
        wrong[order[: math.floor(share * high) - math.floor(share * low)]] = True
    return wrong


def labels(dataset: Dataset, spec: LabelSpec, kind: Wrong) -> LabelSet:
    """The first pairs of train, some with a passage of the pool that is no positive of the query.

    Nor is it of the near-duplicate component of one.  The passage drawn for a pair is the same at
    every share.
    """
    rows = dataset.splits.subset(spec.count)
    queries, passages = dataset.collection.pairs[rows].T
    passages = passages.astype(np.int32).copy()
    component = dataset.component_of_passage
    judged = dataset.judgements.positives(queries)
    for i in np.flatnonzero(chosen(spec.sizes, kind.share, spec.seed)):
        passages[i] = _other(dataset, component[judged[i]], spec.seed, int(rows[i]))
    texts = [dataset.collection.queries[query] for query in queries]
    about = {"kind": "wrong", "labels": spec.count, "passages": spec.count, "unusable": {}}
    return LabelSet(texts, passages, [None] * spec.count, {**about, "examples": []})


def _other(dataset: Dataset, own: NDArray[np.int32], seed: int, pair: int) -> int:
    pool, random = dataset.splits.pool, stream(seed, "wrong passage", pair)
    for _ in range(TRIES):
        passage = int(pool[random.integers(len(pool))])
        if dataset.component_of_passage[passage] not in own:
            return passage
    raise UserError(
        f"no passage of the pool of {dataset.params.name} is a wrong answer to a query",
        remedy="its near-duplicate components are too large: raise duplicates.join_jaccard",
    )
