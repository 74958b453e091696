"""A dataset as it looks under other labels: the same evaluation, other training pairs."""

from __future__ import annotations

import dataclasses

import numpy as np

from repro.data import arrays
from repro.data.collection import seal
from repro.data.column import Joined
from repro.data.dataset import Dataset
from repro.train.labels.made import LabelSet


def labelled(dataset: Dataset, labels: LabelSet) -> Dataset:
    """`dataset` with `labels` for training pairs, in their order.

    Queries, and passages where a kind changes them, are added behind the others, so that evaluation
    sets and the pool of negatives stay as they are; a changed passage is of the component of its
    original.  The pairs take the places of the first training pairs: what was judged there is not known
    under these labels.
    """
    base, n = dataset.collection, len(labels.queries)
    changed = [i for i, text in enumerate(labels.texts) if text is not None]
    passage = labels.passages.astype(np.int32).copy()
    origin = labels.passages[changed]
    passage[changed] = len(base.passages) + np.arange(len(changed))
    own = np.stack([len(base.queries) + np.arange(n), passage], axis=1).astype(np.int32)

    replaced = dataset.splits.train[:n]
    pairs = np.concatenate([base.pairs, own[len(replaced) :]])
    pairs[replaced] = own[: len(replaced)]
    added = len(base.pairs) + np.arange(n - len(replaced))
    train = np.concatenate([replaced, added]).astype(np.int32)

    collection = dataclasses.replace(
        base,
        query_ids=[*base.query_ids, *(f"label-{i}" for i in range(n))],
        queries=[*base.queries, *labels.queries],
        passage_ids=Joined(base.passage_ids, [f"label-{i}-passage" for i in changed]),
        passages=Joined(base.passages, [text for text in labels.texts if text is not None]),
        groups=Joined(base.groups, [base.groups[i] for i in origin]),
        pairs=pairs,
        part=None,  # splits are drawn already
        parts=(),
    )
    digest = arrays.digest({"train": own, "pool": dataset.splits.pool})
    component = dataset.component_of_passage
    return dataclasses.replace(
        dataset,
        collection=seal(collection),
        component_of_passage=np.concatenate([component, component[origin]]),
        splits=dataclasses.replace(dataset.splits, train=train, digest=digest),
        digests={**dataset.digests, "splits": digest},
    )
