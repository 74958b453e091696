"""Pins the fixed evaluation sets: distinct negatives, none akin to a positive, K refused where short."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from made import collect
from pydantic import ValidationError

from repro.data.dataset import Dataset
from repro.data.evaluation import (
    EvaluationParams,
    EvaluationSet,
    EvaluationSize,
    draw_evaluation,
)
from repro.data.splits import SplitSizes, draw_splits
from repro.errors import UserError

NAMES = ("validation", "test", "tuning", "held_out")


def redraw(dataset: Dataset, params: EvaluationParams) -> EvaluationSet:
    """The validation set under other parameters."""
    component, splits = dataset.component_of_passage, dataset.splits
    return draw_evaluation(dataset.collection, component, splits, "validation", params, seed=0)


@pytest.mark.parametrize("name", NAMES)
def test_negatives_are_distinct_and_never_akin_to_a_judged_positive(
    apidocs: Dataset, name: str
) -> None:
    evaluation = apidocs.evaluation(name)
    component = apidocs.component_of_passage
    assert evaluation.negatives.shape == (len(evaluation.pairs), 256)
    for row, query in zip(evaluation.negatives, evaluation.queries, strict=True):
        assert len(np.unique(row)) == 256
        positives = apidocs.collection.pairs[apidocs.collection.pairs[:, 0] == query, 1]
        akin = np.isin(component[evaluation.passages[row]], component[positives])
        assert not akin.any()


@pytest.mark.parametrize(
    ("name", "pairs", "passages"),
    [
        ("validation", 1200, 1400),
        ("test", 1000, 2000),
        ("tuning", 600, 1000),
        ("held_out", 600, 1000),
    ],
)
def test_each_passage_is_encoded_once(
    apidocs: Dataset, name: str, pairs: int, passages: int
) -> None:
    evaluation = apidocs.evaluation(name)
    split = getattr(apidocs.splits, name)
    np.testing.assert_array_equal(evaluation.pairs, split[:pairs])
    queries, positives = apidocs.collection.pairs[evaluation.pairs].T
    np.testing.assert_array_equal(evaluation.queries, queries)
    np.testing.assert_array_equal(evaluation.passages[evaluation.positive], positives)
    assert len(np.unique(evaluation.passages)) == len(evaluation.passages) == passages
    assert len(np.unique(evaluation.negatives)) > 0.99 * passages  # the whole pool is in use


@pytest.mark.parametrize("name", NAMES)
def test_no_evaluated_passage_is_ever_trained_on(apidocs: Dataset, name: str) -> None:
    component = apidocs.component_of_passage
    trained = np.union1d(apidocs.splits.pool, apidocs.collection.pairs[apidocs.splits.train, 1])
    evaluated = apidocs.evaluation(name).passages
    assert not np.isin(component[evaluated], component[trained]).any()


def test_the_sets_share_no_positive(apidocs: Dataset) -> None:
    pairs = np.concatenate([apidocs.evaluation(name).pairs for name in NAMES])
    assert len(np.unique(pairs)) == len(pairs)


@settings(deadline=None, max_examples=30)
@given(seed=some.integers(0, 10**6))
def test_all_positives_of_a_query_and_their_kin_are_excluded(seed: int) -> None:
    """Each query has three positives, and passages of two neighbouring queries may be akin."""
    collection = collect([(f"q{i}", f"p{i} {j}") for i in range(60) for j in range(3)])
    random = np.random.default_rng(seed)
    component = np.where(random.random(180) < 0.3, np.arange(180) // 6, 30 + np.arange(180))
    component = np.unique(component, return_inverse=True)[1].astype(np.int32)
    sizes = SplitSizes(validation=30, test=3, tuning=3, generator=0, held_out=0, train=1)
    params = EvaluationParams(
        negatives=10, sets={"validation": EvaluationSize(pairs=30, passages=30)}
    )
    splits = draw_splits(collection, component, sizes, seed)
    drawn = draw_evaluation(collection, component, splits, "validation", params, seed)
    for row, query in zip(drawn.negatives, drawn.queries, strict=True):
        positives = collection.pairs[collection.pairs[:, 0] == query, 1]
        assert len(positives) == 3
        assert not set(component[drawn.passages[row]]) & set(component[positives])
        assert len(set(row.tolist())) == 10


def test_more_negatives_than_are_eligible_are_refused(apidocs: Dataset) -> None:
    params = EvaluationParams(
        negatives=999, sets={"validation": EvaluationSize(pairs=600, passages=1000)}
    )
    with pytest.raises(
        UserError, match=r"999 negatives a pair .* a pair has 992 that are eligible"
    ):
        redraw(apidocs, params)


@pytest.mark.parametrize("passages", [599, 3201])
def test_a_pool_that_cannot_be_filled_is_refused(apidocs: Dataset, passages: int) -> None:
    params = EvaluationParams(sets={"validation": EvaluationSize(pairs=600, passages=passages)})
    with pytest.raises(UserError, match=r"600 to 3,200 are possible"):
        redraw(apidocs, params)


def test_the_training_split_is_no_evaluation_split() -> None:
    with pytest.raises(ValidationError, match="the training split cannot be an evaluation split"):
        EvaluationParams.model_validate({"sets": {"train": {"pairs": 10, "passages": 1000}}})


def test_as_many_negatives_as_passages_are_refused_in_the_file() -> None:
    with pytest.raises(ValidationError, match="256 negatives a pair cannot be drawn"):
        EvaluationParams(sets={"test": EvaluationSize(pairs=10, passages=256)})


def test_the_digests_are_those_of_the_stored_arrays(apidocs: Dataset, tmp_path: Path) -> None:
    for name in NAMES:
        evaluation = apidocs.evaluation(name)
        evaluation.save(tmp_path / name)
        back = EvaluationSet.load(tmp_path / name)
        assert back.digest == evaluation.digest == apidocs.digests[f"evaluation.{name}"]
        np.testing.assert_array_equal(back.negatives, evaluation.negatives)


def test_apidocs_has_the_same_splits_and_sets_everywhere(apidocs: Dataset) -> None:
    assert {name: digest[:12] for name, digest in apidocs.digests.items()} == {
        "collection": "851b4561a734",
        "components": "22e1abbe46e3",
        "splits": "c79056abe50e",
        "evaluation.validation": "7069cd9e0f99",
        "evaluation.test": "e22fc92164a9",
        "evaluation.tuning": "00a96cf6acee",
        "evaluation.held_out": "f2d5ad3b9d12",
    }
