"""Pins official splits: test from its own part alone, the rest from the parts that train, nothing dropped."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from made import random_collection
from pydantic import ValidationError

from repro.data.blocks import find_blocks
from repro.data.collection import Collection, Records, assemble
from repro.data.dataset import load_dataset_params, prepare
from repro.data.splits import EVALUATED, Splits, SplitSizes, draw_splits
from repro.errors import UserError
from repro.experiments import subsets
from repro.store import Store

SIZES = {"validation": 6, "test": 15, "tuning": 6, "generator": 4, "held_out": 0, "train": 20}
OFFICIAL = {"train": ["train"], "test": ["dev"]}


def parted(n: int = 120, unjudged: int = 60) -> Collection:
    """`n` pairs in three parts; every fifth dev pair asks a query of train, on another passage."""
    part = ["train"] * (n - 40) + ["dev"] * 30 + ["other"] * 10
    queries = [(f"q{i}", f"query {i}") for i in range(n)]
    passages = [(f"p{i}", f"text {i} of many", "") for i in range(n + unjudged)]
    judged = [(f"q{i}", f"p{i}", part[i]) for i in range(n)]
    judged += [(f"q{i}", f"p{n - 40 + i}", "dev") for i in range(0, 30, 5)]
    return assemble("parted", "en", Records(queries, passages, judged))


def draw(collection: Collection, component: np.ndarray | None = None, **sizes: object) -> Splits:
    if component is None:
        component = np.arange(len(collection.passages), dtype=np.int32)
    chosen = SplitSizes.model_validate({**SIZES, "official": OFFICIAL, **sizes})
    return draw_splits(collection, component, chosen, seed=1)


def part_of(collection: Collection, pairs: np.ndarray) -> set[str]:
    assert collection.part is not None
    return {collection.parts[i] for i in collection.part[pairs]}


def test_test_pairs_come_from_their_part_and_all_others_from_the_one_that_trains() -> None:
    collection = parted()
    splits = draw(collection)
    assert part_of(collection, splits.test) == {"dev"}
    for name in ("validation", "tuning", "generator", "train"):
        assert part_of(collection, getattr(splits, name)) == {"train"}
    assert splits.counts["test"] == 15
    assert splits.counts["train"] == 80 - 16
    assert splits.unused == 10 + 36 - 15  # of `other`, and what is left of dev
    assert len(set(splits.test.tolist())) == 15


def test_all_pairs_of_a_part_can_be_tested() -> None:
    assert draw(parted(), test=36).counts["test"] == 36
    with pytest.raises(UserError, match="have 36 pairs, 37 are wanted") as caught:
        draw(parted(), test=37)
    assert caught.value.remedy == "splits.test: 36 or less"


def test_a_test_pair_is_never_trained_on_and_its_passage_is_no_negative() -> None:
    collection = parted()
    near = np.arange(len(collection.passages), dtype=np.int32)
    dev = collection.pairs[collection.part == collection.parts.index("dev"), 1]
    free = np.setdiff1d(np.arange(len(near)), collection.pairs[:, 1])
    near[free[:5]] = near[dev[:5]]  # unjudged near-duplicates of tested passages
    splits = draw(collection, near)
    assert not set(near[dev].tolist()) & set(near[splits.pool].tolist())
    assert not set(near[dev].tolist()) & set(near[splits.reserve].tolist())
    trained = set(map(tuple, collection.pairs[splits.train].tolist()))
    assert not trained & set(map(tuple, collection.pairs[splits.test].tolist()))


def test_what_is_drawn_from_the_training_part_stays_apart_by_block() -> None:
    collection = parted()
    component = (np.arange(len(collection.passages)) // 2).astype(np.int32)
    splits = draw(collection, component)
    assert collection.part is not None
    blocks = find_blocks(collection, component, collection.part == collection.parts.index("train"))
    drawn = [name for name in EVALUATED if name != "test"]
    of = {name: set(blocks.of_pair[getattr(splits, name)].tolist()) for name in [*drawn, "train"]}
    for name in drawn:
        assert not of[name] & of["train"]


def test_a_dataset_may_be_evaluated_only() -> None:
    nothing = {"validation": 0, "tuning": 0, "generator": 0, "train": 0}
    splits = draw(parted(), official={"train": [], "test": ["dev"]}, **nothing)
    assert {name: n for name, n in splits.counts.items() if n} == {
        "test": 15,
        "pool": splits.counts["pool"],
        "reserve": splits.counts["reserve"],
        "unused": 126 - 15,
    }


@pytest.mark.parametrize(
    ("sizes", "says"),
    [
        ({"validation": 0}, "validation has no pairs"),
        ({"official": {"train": [], "test": ["dev"]}}, "no part of the judgements trains"),
        ({"official": {"train": ["dev"], "test": ["dev"]}}, "a value stands twice"),
        ({"official": {"train": ["train"], "test": []}}, "at least 1 item"),
    ],
)
def test_sizes_that_contradict_the_parts_are_refused(sizes: dict[str, object], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        SplitSizes.model_validate({**SIZES, "official": OFFICIAL, **sizes})


def test_a_part_that_is_not_there_is_refused() -> None:
    with pytest.raises(UserError, match="of the part `deb`") as caught:
        draw(parted(), official={"train": ["train"], "test": ["deb"]})
    assert caught.value.remedy == "did you mean `dev`?"
    with pytest.raises(UserError, match="of the part `train`"):
        draw(random_collection(1, 40, 60, 45))


def test_without_official_splits_parts_change_nothing() -> None:
    collection = parted()
    plain = assemble(
        "parted",
        "en",
        Records(
            list(zip(collection.query_ids, collection.queries, strict=True)),
            [(i, t, "") for i, t in zip(collection.passage_ids, collection.passages, strict=True)],
            [(collection.query_ids[q], collection.passage_ids[p]) for q, p in collection.pairs],
        ),
    )
    assert plain.part is None
    assert plain.digest == collection.digest
    component = np.arange(len(plain.passages), dtype=np.int32)
    sizes = SplitSizes.model_validate(SIZES)
    one, other = (draw_splits(each, component, sizes, 1) for each in (plain, collection))
    assert one.digest == other.digest


def test_parts_survive_the_disk_and_a_choice_of_pairs(tmp_path: Path) -> None:
    collection = parted()
    collection.save(tmp_path)
    back = Collection.load(tmp_path)
    assert back.parts == ("train", "dev", "other")
    np.testing.assert_array_equal(back.part, collection.part)
    pair = collection.part == 1
    kept = back.keep(np.ones(len(back.passages), bool), pair, {})
    assert len(kept.pairs) == 36
    assert part_of(kept, np.arange(36)) == {"dev"}


def test_a_pair_judged_in_two_parts_is_of_the_first() -> None:
    records = Records(
        [("q", "a query")], [("p", "a passage", "")], [("q", "p", "train"), ("q", "p", "dev")]
    )
    collection = assemble("two", "en", records)
    assert part_of(collection, np.array([0])) == {"train"}
    assert collection.dropped == {"repeated judgement": 1}


FILE = """
name: tiny
language: en
source: {{kind: beir, folder: tiny, qrels: [train, dev]}}
seed: 3
duplicates: {{drop: {drop}}}
splits:
  {{validation: 5, test: 12, tuning: 5, generator: 5, held_out: 0, train: 20{official}}}
evaluation:
  negatives: 4
  sets:
    test: {{pairs: 12, passages: 16}}
"""
LINE = ", official: {train: [train], test: [dev]}"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A dataset file beside a BEIR folder with two files of judgements that overlap."""
    folder = tmp_path / "tiny"
    (folder / "qrels").mkdir(parents=True)
    for name, letter, word in (("corpus", "d", "passage"), ("queries", "q", "query")):
        rows = [
            json.dumps({"_id": f"{letter}{i}", "text": f"{word} w{i} x{i} y{i} z{i}"})
            for i in range(80)
        ]
        (folder / f"{name}.jsonl").write_text("\n".join(rows))
    train = [f"q{i}\td{i}\t1\n" for i in range(50)]
    dev = [f"q{i}\td{i}\t1\n" for i in range(50, 60)] + ["q0\td60\t1\n", "q61\td1\t1\n"]
    (folder / "qrels/train.tsv").write_text("".join(train))
    (folder / "qrels/dev.tsv").write_text("".join(dev))
    path = tmp_path / "tiny.yaml"
    path.write_text(FILE.format(drop="false", official=LINE))
    return path


def test_what_train_and_official_test_share_is_reported_not_dropped(
    file: Path, tmp_path: Path
) -> None:
    dataset = prepare(Store(tmp_path / "runs"), load_dataset_params(str(file)))
    assert part_of(dataset.collection, dataset.splits.test) == {"dev"}
    assert dataset.collection.counts["pairs"] == 62
    seen = subsets.describe(dataset)
    shared = seen.overlap.set_index("split", drop=False).loc["test"]
    pairs = dataset.collection.pairs[dataset.splits.train]
    queries = {dataset.collection.query_ids[query] for query in pairs[:, 0]}
    passages = {dataset.collection.passage_ids[passage] for passage in pairs[:, 1]}
    assert shared["identical queries"] == ("q0" in queries)
    assert shared["identical passages"] == ("d1" in passages)
    assert shared["near-duplicate components"] == ("d1" in passages)
    assert shared["identical queries"] + shared["identical passages"] > 0
    assert seen.apart, "of the splits that are drawn; an official test is reported"
    reported = seen.removed().query("what == 'reported'")
    assert dict(zip(reported["reason"], reported["count"], strict=True)) == {
        f"{name} of the official test that stand in train": count
        for name, count in shared.drop("split").items()
    }


def test_parts_that_are_dropped_on_purpose_are_refused(file: Path) -> None:
    file.write_text(FILE.format(drop="true", official=LINE))
    with pytest.raises(UserError, match="official splits stay whole") as caught:
        load_dataset_params(str(file))
    assert caught.value.remedy == "duplicates.drop: false"


def test_a_collection_stored_without_parts_is_not_taken_for_official_splits(
    file: Path, tmp_path: Path
) -> None:
    store = Store(tmp_path / "runs")
    official = prepare(store, load_dataset_params(str(file)))
    file.write_text(FILE.format(drop="false", official=""))
    plain = prepare(store, load_dataset_params(str(file)))
    assert plain.digests["collection"] == official.digests["collection"]
    assert plain.digests["splits"] != official.digests["splits"]
    assert len(list((tmp_path / "runs/collection").glob("*/manifest.json"))) == 2
