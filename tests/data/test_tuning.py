"""The tuning view: it shares nothing with what any other run trains on or is judged by."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from repro.data.blocks import find_blocks
from repro.data.dataset import Dataset
from repro.data.tuning import tuning_view
from repro.errors import UserError


def enlarged(dataset: Dataset, n_pairs: int) -> Dataset:
    """`dataset` with so many training pairs moved to its tuning split."""
    train = dataset.splits.train
    tuning = np.concatenate([dataset.splits.tuning, train[-n_pairs:]])
    splits = dataclasses.replace(dataset.splits, tuning=tuning, train=train[:-n_pairs])
    return dataclasses.replace(dataset, splits=splits)


def test_it_trains_on_the_rest_of_the_split_and_on_nothing_near_its_evaluation(
    dataset: Dataset,
) -> None:
    whole = enlarged(dataset, 60)
    view = tuning_view(whole)
    assert 0 < len(view.splits.train) <= 60
    assert set(view.splits.train) <= set(whole.splits.tuning)
    assert not set(view.splits.train) & set(whole.splits.train)
    evaluation = view.evaluation("validation")
    assert evaluation is whole.evaluations["tuning"]
    blocks = find_blocks(whole.collection, whole.component_of_passage)
    trained = set(blocks.of_pair[view.splits.train])
    assert not trained & set(blocks.of_passage[evaluation.passages])
    assert view.splits.digest != whole.splits.digest
    assert np.array_equal(view.splits.pool, whole.splits.pool)


def test_what_cannot_be_tuned_on_is_refused_with_a_remedy(dataset: Dataset) -> None:
    with pytest.raises(UserError, match="none is left to train on") as fault:
        tuning_view(dataset)
    assert "splits.tuning" in fault.value.remedy
    sets = {name: each for name, each in dataset.evaluations.items() if name != "tuning"}
    with pytest.raises(UserError, match="no tuning set"):
        tuning_view(dataclasses.replace(dataset, evaluations=sets))
