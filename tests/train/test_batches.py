"""Batches: a pure function of seed and step, with every pair once a pass and clean candidates."""

from __future__ import annotations

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
