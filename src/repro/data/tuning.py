"""The tuning split as a dataset of its own: where learning rates are chosen, apart from every D."""

from __future__ import annotations

import dataclasses

import numpy as np

from repro.data import arrays
from repro.data.blocks import find_blocks
from repro.data.dataset import Dataset
from repro.errors import UserError


def tuning_view(dataset: Dataset) -> Dataset:
    """`dataset` as a run of the tuning split sees it.

    It trains on the pairs of the tuning split that share no query, passage or near duplicate with
    anything in the tuning evaluation set, its pool included; its `validation` is that set.  Training
    negatives come from the same pool as everywhere.  No pair of train, validation or test is in it.
    Raises `UserError` where the dataset has no tuning set, or evaluates the whole split.
    """
    name = dataset.params.name
    if "tuning" not in dataset.evaluations:
        raise UserError(
            f"the dataset {name} has no tuning set to choose on",
            remedy="add evaluation.sets.tuning to the dataset file, smaller than splits.tuning",
        )
    evaluation = dataset.evaluations["tuning"]
    blocks = find_blocks(dataset.collection, dataset.component_of_passage)
    seen = blocks.touched(evaluation.pairs)
    seen[blocks.of_passage[evaluation.passages]] = True
    tuning = dataset.splits.tuning
    rest = tuning[~seen[blocks.of_pair[tuning]]].astype(np.int32)
    if len(rest) == 0:
        raise UserError(
            f"all {len(tuning):,} pairs of the tuning split of {name} are evaluated: none is left to "
            "train on",
            remedy="raise splits.tuning, or lower evaluation.sets.tuning, in the dataset file",
        )
    digest = arrays.digest({"train": rest, "pool": dataset.splits.pool})
    return dataclasses.replace(
        dataset,
        splits=dataclasses.replace(dataset.splits, train=rest, digest=digest),
        evaluations={"validation": evaluation},
        digests={**dataset.digests, "splits": digest, "evaluation.validation": evaluation.digest},
        view="tuning",
    )
