"""Pins: a step's negatives follow from seed and step, and the mask equals the rule pair by pair."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from made import collect, random_collection

from repro.data.dataset import Dataset
from repro.data.negatives import Judgements, NegativesParams, draw_negatives, forbidden
from repro.errors import UserError

POOL = np.arange(100, 400, dtype=np.int32)


@pytest.mark.parametrize(("sharing", "shape"), [("batch", (64,)), ("query", (8, 64))])
def test_negatives_come_from_the_pool_without_repeats(sharing: str, shape: tuple[int, ...]) -> None:
    params = NegativesParams(count=64, sharing=sharing)
    drawn = draw_negatives(POOL, params, 8, seed=1, step=5)
    assert drawn.shape == shape
    assert drawn.dtype == np.int32
    assert np.isin(drawn, POOL).all()
    for row in np.atleast_2d(drawn):
        assert len(np.unique(row)) == 64


def test_a_draw_follows_from_seed_and_step() -> None:
    params = NegativesParams(count=20)
    draws = {
        (seed, step): draw_negatives(POOL, params, 4, seed, step).tobytes()
        for seed in (1, 2)
        for step in (0, 1, 2)
    }
    assert len(set(draws.values())) == 6
    assert draw_negatives(POOL, params, 4, 2, 1).tobytes() == draws[2, 1]


def test_over_many_steps_every_passage_is_drawn_alike() -> None:
    params = NegativesParams(count=30)
    drawn = np.concatenate([draw_negatives(POOL, params, 1, 0, step) for step in range(2000)])
    times = np.bincount(drawn, minlength=400)[100:]
    assert times.sum() == 60_000
    assert abs(times - 200).max() < 5 * np.sqrt(200)


def test_no_negatives_and_too_many() -> None:
    assert draw_negatives(POOL, NegativesParams(count=0), 4, 0, 0).shape == (0,)
    with pytest.raises(
        UserError, match="301 negatives are to be drawn from a pool of 300"
    ) as caught:
        draw_negatives(POOL, NegativesParams(count=301), 4, 0, 0)
    assert caught.value.remedy == "negatives.count: 300 or less"


@settings(deadline=None, max_examples=60)
@given(seed=some.integers(0, 10**6), per_query=some.booleans())
def test_the_mask_is_the_rule_pair_by_pair(seed: int, per_query: bool) -> None:
    collection = random_collection(seed, n_queries=12, n_passages=30, n_pairs=40)
    random = np.random.default_rng(seed)
    component = random.integers(0, 20, 30).astype(np.int32)
    judgements = Judgements.of(collection)
    queries = random.integers(0, len(collection.queries), 5)
    passages = random.integers(0, 30, (5, 7) if per_query else 7)
    mask = forbidden(component, judgements.positives(queries), passages)
    for i, query in enumerate(queries):
        text = collection.queries[query]
        own = {component[p] for q, p in collection.pairs if collection.queries[q] == text}
        row = passages[i] if per_query else passages
        assert mask[i].tolist() == [component[passage] in own for passage in row]


def test_in_batch_the_diagonal_and_akin_positives_are_forbidden() -> None:
    collection = collect([("a", "p0"), ("b", "p1"), ("b", "p2"), ("c", "p3")])
    component = np.array([0, 1, 2, 1], np.int32)
    queries, positives = collection.pairs[[0, 2, 3]].T  # b comes with p2; its other positive is p1
    mask = forbidden(component, Judgements.of(collection).positives(queries), positives)
    assert mask.tolist() == [[True, False, False], [False, True, True], [False, False, True]]


def test_positives_are_filled_up_with_the_last_one() -> None:
    judgements = Judgements.of(collect([("a", "p0"), ("b", "p1"), ("b", "p2")]))
    assert judgements.positives(np.array([0, 1])).tolist() == [[0, 0], [1, 2]]
    assert judgements.positives(np.array([], int)).shape == (0, 1)


def test_no_unmasked_training_negative_of_apidocs_is_akin_to_a_positive(apidocs: Dataset) -> None:
    component = apidocs.component_of_passage
    masked = 0
    for step in range(50):
        pairs = apidocs.splits.subset(3200)[64 * step : 64 * (step + 1)]
        queries = apidocs.collection.pairs[pairs, 0]
        drawn = draw_negatives(apidocs.splits.pool, NegativesParams(), 64, seed=0, step=step)
        mask = forbidden(component, apidocs.judgements.positives(queries), drawn)
        own = component[apidocs.collection.pairs[pairs, 1]]
        np.testing.assert_array_equal(mask, own[:, None] == component[drawn])
        masked += int(mask.sum())
    assert masked > 0  # the premise: without the mask some would be
