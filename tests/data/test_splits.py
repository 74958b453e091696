"""Pins: whole blocks, nested subsets, a pool without evaluation text, sizes that fit or a refusal."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from made import collect, random_collection

from repro.data.blocks import find_blocks
from repro.data.collection import Collection
from repro.data.dataset import Dataset
from repro.data.splits import EVALUATED, Splits, SplitSizes, draw_splits
from repro.data.text import normal
from repro.errors import UserError

PARTS = ("validation", "test", "tuning", "generator", "held_out", "train")
SMALL = SplitSizes(validation=2, test=2, tuning=2, generator=1, held_out=0, train=1)


def reach(collection: Collection, component: np.ndarray, pairs: np.ndarray) -> dict[str, set]:
    """The query texts, passages and components of these pairs."""
    chosen = collection.pairs[pairs]
    return {
        "query": {normal(collection.queries[query]) for query in chosen[:, 0]},
        "passage": set(chosen[:, 1].tolist()),
        "component": set(component[chosen[:, 1]].tolist()),
    }


def assert_apart(collection: Collection, component: np.ndarray, splits: Splits) -> None:
    """No query text, passage or component of an evaluated split is in another one, or in the pool."""
    reached = {name: reach(collection, component, getattr(splits, name)) for name in PARTS}
    pool = set(component[splits.pool].tolist())
    for one in EVALUATED:
        assert not reached[one]["component"] & pool
        for other in PARTS:
            if other != one:
                for what in ("query", "passage", "component"):
                    assert not reached[one][what] & reached[other][what], (one, other, what)
    reserve = set(component[splits.reserve].tolist())
    assert not reserve & (pool | reached["train"]["component"])


def draw_at_random(seed: int, n_components: int, held_out: int) -> tuple | None:
    """Collection, components and splits; None where the blocks are too large to be split."""
    collection = random_collection(seed, n_queries=70, n_passages=90, n_pairs=70)
    component = np.random.default_rng(seed).integers(0, n_components, 90).astype(np.int32)
    sizes = SMALL.model_copy(update={"held_out": held_out})
    try:
        return collection, component, draw_splits(collection, component, sizes, seed)
    except UserError:
        return None


@settings(deadline=None, max_examples=80)
@given(some.integers(0, 10**6), some.integers(60, 300), some.sampled_from([0, 5]))
def test_no_block_straddles_the_splits(seed: int, n_components: int, held_out: int) -> None:
    drawn = draw_at_random(seed, n_components, held_out)
    if drawn:
        collection, component, splits = drawn
        assert_apart(collection, component, splits)
        every = np.concatenate([getattr(splits, name) for name in PARTS])
        assert len(np.unique(every)) == len(every) == len(collection.pairs) - splits.unused
        assert [splits.counts[name] for name in ("validation", "test", "tuning")] == [2, 2, 2]


@pytest.mark.parametrize("held_out", [0, 5])
def test_enough_of_those_random_collections_can_be_split(held_out: int) -> None:
    drawn = [draw_at_random(seed, 150, held_out) for seed in range(30)]
    assert sum(each is not None for each in drawn) >= 10
    if held_out:
        assert any(each and len(each[2].held_out) > 0 for each in drawn)


def test_apidocs_splits_have_their_sizes_and_are_apart(apidocs: Dataset) -> None:
    splits = apidocs.splits
    assert_apart(apidocs.collection, apidocs.component_of_passage, splits)
    assert splits.counts == {
        "validation": 1200,
        "test": 1000,
        "tuning": 3000,
        "generator": 2000,
        "held_out": 1702,
        "train": 14223,
        "pool": 14223,
        "reserve": 2000,
        "unused": 43,
    }


def test_whole_services_are_held_out(apidocs: Dataset) -> None:
    collection, splits = apidocs.collection, apidocs.splits
    held = set(splits.held_out_groups)
    assert len(held) == 49
    for name in PARTS:
        groups = {collection.groups[p] for p in collection.pairs[getattr(splits, name), 1]}
        assert groups <= held if name == "held_out" else not groups & held
    assert not held & {collection.groups[passage] for passage in [*splits.pool, *splits.reserve]}


def test_subsets_are_nested_and_unique(apidocs: Dataset) -> None:
    sizes = [160, 320, 1280, 5120, 10240]
    subsets = [apidocs.splits.subset(size) for size in sizes]
    for small, large in pairwise(subsets):
        np.testing.assert_array_equal(small, large[: len(small)])
    assert [len(np.unique(subset)) for subset in subsets] == sizes
    assert not subsets[0].flags.writeable


@pytest.mark.parametrize("size", [0, -1, 14224])
def test_a_subset_that_is_not_there_is_refused(apidocs: Dataset, size: int) -> None:
    with pytest.raises(UserError, match=f"{size:,}") as caught:
        apidocs.splits.subset(size)
    assert "14,223" in caught.value.remedy


def test_the_seed_decides_and_nothing_else() -> None:
    collection = random_collection(1, 40, 60, 45)
    component = np.arange(60, dtype=np.int32)
    one, again, other = (draw_splits(collection, component, SMALL, seed) for seed in (7, 7, 8))
    assert one.digest == again.digest
    assert one.digest != other.digest


def test_an_identical_query_keeps_its_passages_together() -> None:
    texts = [
        ("Same query", "p0"),
        ("same  QUERY", "p1"),
        *((f"q{i}", f"p{i}") for i in range(2, 9)),
    ]
    collection = collect(texts)
    component = np.arange(9, dtype=np.int32)
    blocks = find_blocks(collection, component)
    assert blocks.of_pair[0] == blocks.of_pair[1]
    assert len(np.unique(blocks.of_pair)) == 8
    for seed in range(20):
        splits = draw_splits(collection, component, SMALL, seed)
        assert_apart(collection, component, splits)


def test_a_giant_block_goes_to_train() -> None:
    texts = [(f"q{i}", f"p{i}") for i in range(40)]
    component = np.array([0] * 25 + list(range(1, 16)), np.int32)
    for seed in range(20):
        splits = draw_splits(collect(texts), component, SMALL, seed)
        assert set(range(25)) <= set(splits.train.tolist())


def test_unjudged_passages_go_to_the_pool_or_the_reserve() -> None:
    collection = random_collection(3, 40, 200, 45)
    component = np.arange(200, dtype=np.int32)
    splits = draw_splits(collection, component, SMALL, 1)
    unjudged = np.setdiff1d(np.arange(200), collection.pairs[:, 1])
    placed = np.concatenate([splits.pool, splits.reserve])
    assert len(np.unique(placed)) == len(placed)
    assert set(unjudged.tolist()) <= set(placed.tolist())
    assert 0 < np.isin(unjudged, splits.reserve).sum() < 0.3 * len(unjudged)


def test_too_small_a_collection_is_refused_with_sizes_that_fit() -> None:
    collection = collect([(f"q{i}", f"p{i}") for i in range(300)])
    component = np.arange(300, dtype=np.int32)
    sizes = SplitSizes(validation=100, test=200, tuning=100, generator=0, held_out=0, train=200)
    with pytest.raises(UserError, match=r"need 600 pairs, there are 300") as caught:
        draw_splits(collection, component, sizes, 0)
    fit = dict(
        part.split(": ")
        for part in caught.value.remedy.removeprefix("these would fit: ").split(", ")
    )
    smaller = sizes.model_copy(update={name: int(size) for name, size in fit.items()})
    assert draw_splits(collection, component, smaller, 0).counts["validation"] == 45


def test_held_out_groups_that_are_not_there_are_refused() -> None:
    collection = collect([(f"q{i}", f"p{i}") for i in range(300)])
    sizes = SMALL.model_copy(update={"held_out": 50})
    with pytest.raises(UserError, match="50 pairs of whole groups") as caught:
        draw_splits(collection, np.arange(300, dtype=np.int32), sizes, 0)
    assert caught.value.remedy.startswith("held_out: 0 or less")


def test_splits_survive_the_disk(tmp_path: Path, apidocs: Dataset) -> None:
    apidocs.splits.save(tmp_path)
    back = Splits.load(tmp_path)
    assert back.counts == apidocs.splits.counts
    assert back.held_out_groups == apidocs.splits.held_out_groups
    assert back.digest == apidocs.splits.digest
    np.testing.assert_array_equal(back.train, apidocs.splits.train)
