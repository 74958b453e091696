"""Batches: a pure function of seed and step, with every pair once a pass and clean candidates."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from repro.data.dataset import Dataset
from repro.data.negatives import NegativesParams
from repro.train.batches import Batches


def make(dataset: Dataset, n_pairs: int = 50, size: int = 16, **negatives: object) -> Batches:
    params = NegativesParams.model_validate({"count": 20, **negatives})
    return Batches(dataset, dataset.splits.subset(n_pairs), size, params, seed=7)


def test_the_same_step_gives_the_same_batch_in_any_order(dataset: Dataset) -> None:
    forward, alone = make(dataset), make(dataset)
    batches = [forward(step) for step in range(6)]
    again = alone(4)
    assert (again.queries == batches[4].queries).all()
    assert (again.passages == batches[4].passages).all()
    assert (again.candidates == batches[4].candidates).all()


def test_every_pair_comes_once_a_pass(dataset: Dataset) -> None:
    batches = make(dataset)
    seen = np.concatenate([batches(step).queries for step in range(25)])  # 8 passes over 50
    own = dataset.collection.pairs[dataset.splits.subset(50), 0]
    assert sorted(seen[:50]) == sorted(own)
    assert sorted(seen[50:100]) == sorted(own)
    assert not (seen[:50] == seen[50:100]).all()


@pytest.mark.parametrize("sharing", ["batch", "query"])
@pytest.mark.parametrize("in_batch", [False, True])
def test_candidates_are_the_drawn_ones_and_never_near_a_positive(
    dataset: Dataset, sharing: str, in_batch: bool
) -> None:
    batches = make(dataset, sharing=sharing, in_batch=in_batch)
    component, pool = dataset.component_of_passage, set(dataset.splits.pool.tolist())
    for step in range(5):
        batch = batches(step)
        positives = batch.passages[batch.positive]
        expected = dict(dataset.collection.pairs[dataset.splits.subset(50)].tolist())
        assert [expected[q] for q in batch.queries.tolist()] == positives.tolist()
        assert len(set(batch.passages.tolist())) == len(batch.passages)
        for row, query in enumerate(batch.queries):
            judged = dataset.judgements.positives(np.array([query]))[0]
            chosen = batch.passages[batch.candidates[row]]
            assert not set(component[chosen]) & set(component[judged])
            assert set(chosen.tolist()) <= pool
            others = {p for p in positives.tolist() if component[p] not in component[judged]}
            if in_batch:
                assert others <= set(chosen.tolist())
                assert 15 <= len(chosen) <= 20 + len(others)
            else:
                assert 15 <= len(chosen) <= 20


def test_shared_draws_serve_all_queries_and_own_draws_do_not(dataset: Dataset) -> None:
    shared, own = make(dataset, sharing="batch")(0), make(dataset, sharing="query")(0)
    assert len(shared.passages) <= 16 + 20
    assert len(own.passages) > 16 + 20


@pytest.fixture(scope="module")
def hard(dataset: Dataset) -> Dataset:
    """The dataset, its first 50 training queries with hard negatives: 3, 0, 1, 2, 3, ... of them."""
    random = np.random.default_rng(2)
    queries = dataset.collection.pairs[dataset.splits.subset(50), 0]
    everywhere = np.arange(len(dataset.collection.passages))
    rows = [
        (query, passage)
        for i, query in enumerate(queries.tolist())
        for passage in random.choice(everywhere, (i + 3) % 4, replace=False).tolist()
    ]
    collection = dataclasses.replace(dataset.collection, negatives=np.array(sorted(rows), np.int32))
    return dataclasses.replace(dataset, collection=collection)


@pytest.mark.parametrize("sharing", ["batch", "query"])
@pytest.mark.parametrize("own", [1, 2, 5])
def test_own_negatives_are_added_to_the_drawn_ones(
    hard: Dataset, dataset: Dataset, sharing: str, own: int
) -> None:
    pool = set(dataset.splits.pool.tolist())
    component = dataset.component_of_passage
    assert not set(hard.collection.negatives[:, 1].tolist()) <= pool  # the premise
    plain = make(dataset, sharing=sharing)
    batches = make(hard, sharing=sharing, own=own)
    used = set()
    for step in range(9):
        before, after = plain(step), batches(step)
        np.testing.assert_array_equal(after.queries, before.queries)
        added = set()
        for row, query in enumerate(after.queries.tolist()):
            rows = hard.collection.negatives
            theirs = set(rows[rows[:, 0] == query, 1].tolist()) & pool
            judged = dataset.judgements.positives(np.array([query]))[0]
            allowed = {p for p in theirs if component[p] not in component[judged]}
            chosen = set(after.passages[after.candidates[row]].tolist())
            drawn = set(before.passages[before.candidates[row]].tolist())
            assert drawn <= chosen
            if sharing == "query":
                assert chosen - drawn <= allowed
            assert len((chosen & allowed) | (drawn & allowed)) >= min(own, len(theirs)) - (
                len(theirs) - len(allowed)
            )
            assert chosen <= pool
            added |= chosen - drawn
            used |= {(query, passage) for passage in chosen & allowed}
        assert sharing == "query" or len(added) <= 16 * own
    assert used


def test_without_own_negatives_nothing_changes(hard: Dataset, dataset: Dataset) -> None:
    for step in range(3):
        one, other = make(hard)(step), make(dataset)(step)
        np.testing.assert_array_equal(one.passages, other.passages)
        np.testing.assert_array_equal(one.candidates, other.candidates)


def test_own_negatives_enter_a_spec_only_where_they_are_asked_for() -> None:
    assert NegativesParams().model_dump() == {
        "count": 256, "source": "random", "sharing": "batch", "in_batch": False,
    }  # fmt: skip
    assert NegativesParams(own=2).model_dump(mode="json")["own"] == 2
