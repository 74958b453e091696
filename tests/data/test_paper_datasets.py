"""Pins: each dataset file of the papers is read end to end from a local copy of its repository."""

from __future__ import annotations

import json
from pathlib import Path

import copies
import pytest

from repro.data.dataset import (
    Dataset,
    DatasetParams,
    Expected,
    load_dataset_params,
    prepare,
)
from repro.data.duplicates import DuplicatesParams
from repro.data.evaluation import EvaluationParams, EvaluationSize
from repro.data.splits import SplitSizes
from repro.store import Store

FILES = {"msmarco": "dev", "nq": "test", "hotpotqa": "test", "fiqa": "test", "t2ranking": "dev"}
CONTENT = copies.Content()


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A local mirror of every repository that the dataset files name."""
    folder = tmp_path / "mirror"
    both = {"train": "train", "dev": "test", "test": "test"}
    for name in ("msmarco", "hotpotqa", "fiqa"):
        copies.mteb(folder / "mteb" / name, CONTENT, both)
    copies.mteb(folder / "mteb/nq", CONTENT, {"test": "test"})
    copies.t2ranking(folder / "THUIR/T2Ranking", CONTENT)
    monkeypatch.setenv("REPRO_HUB_MIRROR", str(folder))
    return folder


def small(name: str) -> DatasetParams:
    """The dataset file, its sizes cut to those of the copy."""
    params = load_dataset_params(name)
    trains = bool(params.splits.official and params.splits.official.train)
    sizes = {"validation": 20, "tuning": 20, "generator": 10, "train": 100} if trains else {}
    splits = params.splits.model_dump() | sizes | {"test": 50}
    if not trains:
        splits |= {"validation": 0, "tuning": 0, "train": 0, "generator": 0}
    sets = {name: EvaluationSize(pairs=10, passages=25) for name in params.evaluation.sets}
    return params.model_copy(
        update={
            "splits": SplitSizes.model_validate(splits),
            "evaluation": EvaluationParams(negatives=12, sets=sets),
            "expected": Expected(),
        }
    )


@pytest.mark.parametrize("name", FILES)
def test_a_dataset_file_is_read_end_to_end(name: str, mirror: Path, tmp_path: Path) -> None:
    dataset = prepare(Store(tmp_path / "runs"), small(name))
    collection, splits = dataset.collection, dataset.splits
    assert collection.parts[-1] == FILES[name]
    trains = name != "nq"
    # Of the training pairs that on the empty passage is gone, and so is its query.
    expected = len(CONTENT.relevant["test"]) + trains * (len(CONTENT.relevant["train"]) - 1)
    assert collection.counts["pairs"] == collection.counts["queries"] == expected
    assert collection.counts["passages"] == len(CONTENT.passages) - 1
    assert copies.MOJIBAKE in collection.passages
    assert collection.dropped["passage with an empty text"] == 1
    assert collection.dropped["judgement of a missing or dropped query"] == 1 + trains
    assert splits.counts["test"] == 50
    assert (splits.counts["train"] >= 100) == trains
    assert parts_of_test(dataset) == {FILES[name]}
    origin = json.loads((tmp_path / "runs/collection").glob("*/origin.json").__next__().read_text())
    assert list(origin.values()) == [""]  # the mirror does not say which commit it is


def parts_of_test(dataset: Dataset) -> set[str]:
    """The parts that the test pairs were judged in."""
    collection = dataset.collection
    assert collection.part is not None
    return {collection.parts[i] for i in collection.part[dataset.splits.test]}


@pytest.mark.parametrize("name", FILES)
def test_a_dataset_file_states_what_it_takes(name: str) -> None:
    params = load_dataset_params(name)
    stated = params.model_dump(exclude_unset=True)
    assert set(stated["splits"]) == set(SplitSizes.model_fields)
    assert set(stated["duplicates"]) == set(DuplicatesParams.model_fields)
    assert params.duplicates.near == "judged" or params.expected.passages < 10**5
    assert len(params.source.revision) == 40, "a commit: branches move"
    assert params.expected.pairs >= params.splits.test + params.splits.train
    for target in params.targets.values():
        assert load_dataset_params(target.dataset).evaluation.sets[target.set].pairs > 1000
