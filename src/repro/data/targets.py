"""Evaluation out of domain: the targets that a dataset file declares, each with its evaluation set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np

from repro.data.column import take
from repro.data.dataset import Dataset, DatasetParams, load_dataset_params, prepare
from repro.data.evaluation import EvaluationSet
from repro.data.text import normal
from repro.errors import UserError
from repro.store import Store


def out_of_domain(
    store: Store,
    params: DatasetParams,
    prepared: Callable[[Store, DatasetParams], Dataset] = prepare,
) -> Iterator[tuple[str, Dataset, EvaluationSet]]:
    """Name, dataset and evaluation set of each target that `params` declare, in their order.

    The set is the one of the target's dataset: drawn once, stored, named by its digest.  Raises
    `UserError` where the dataset has no such set, or where an encoder trained on `params` would have
    seen a passage that the set asks for.  prepared: makes a dataset of its parameters.
    """
    trained = prepared(store, params) if params.targets else None
    for name, target in params.targets.items():
        dataset = prepared(store, load_dataset_params(target.dataset))
        evaluation = dataset.evaluation(target.set)
        assert trained is not None
        known = trained.is_here and dataset.is_here
        seen = n_seen(trained, dataset, evaluation) if known else 0
        if seen:
            raise UserError(
                f"the target {name} is not apart from what {params.name} trains on: "
                f"{seen:,} of its {len(evaluation.pairs):,} passages stand there too",
                remedy=f"targets.{name}: name a dataset or a set that shares nothing with training",
            )
        yield name, dataset, evaluation


def n_seen(trained: Dataset, target: Dataset, evaluation: EvaluationSet) -> int:
    """How many judged passages of `evaluation` also stand, word for word, in training or its pool.

    The split `generator` counts as training: a query generator learns from it.
    """
    splits, collection = trained.splits, trained.collection
    pairs = np.concatenate([splits.train, splits.generator])
    index = np.union1d(splits.pool, collection.pairs[pairs, 1])
    texts = target.collection.passages
    asked = Counter(normal(texts[i]) for i in target.collection.pairs[evaluation.pairs, 1])
    trained_on = np.zeros(len(collection.passages), bool)
    trained_on[index] = True
    met = {text for text in map(normal, take(collection.passages, trained_on)) if text in asked}
    return sum(asked[text] for text in met)
