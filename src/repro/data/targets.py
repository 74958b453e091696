"""Evaluation out of domain: the targets that a dataset file declares, each with its evaluation set."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from repro.data.dataset import Dataset, DatasetParams, load_dataset_params, prepare
from repro.data.evaluation import EvaluationSet
from repro.data.text import normal
from repro.params import UserError
from repro.store import Store


def out_of_domain(
    store: Store, params: DatasetParams
) -> Iterator[tuple[str, Dataset, EvaluationSet]]:
    """Name, dataset and evaluation set of each target that `params` declare, in their order.

    The set is the one of the target's dataset: drawn once, stored, named by its digest.  Raises
    `UserError` where the dataset has no such set, or where an encoder trained on `params` would have
    seen a passage that the set asks for.
    """
    trained = prepare(store, params) if params.targets else None
    for name, target in params.targets.items():
        dataset = prepare(store, load_dataset_params(target.dataset))
        evaluation = dataset.evaluation(target.set)
        seen = n_seen(trained, dataset, evaluation) if trained else 0
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
    known = {normal(collection.passages[i]) for i in index}
    asked = target.collection.pairs[evaluation.pairs, 1]
    return sum(normal(target.collection.passages[i]) in known for i in asked)
