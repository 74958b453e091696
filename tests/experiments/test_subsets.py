"""Pins: nearness to training equals a plain count; what crosses a split is seen; near and far halves."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from tests.experiments import synthetic

from repro.data.dataset import Dataset, load_dataset_params, prepare
from repro.experiments import near_far, subsets
from repro.store import Store

FILE = """
name: chain
language: en
source: {kind: beir, folder: chain, qrels: [train]}
seed: 3
splits: {validation: 8, test: 8, tuning: 5, generator: 8, held_out: 0, train: 30}
evaluation: {negatives: 4, sets: {validation: {pairs: 8, passages: 12}, test: {pairs: 8, passages: 12}}}
"""


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """Eighty passages of ten words; each shares its last four words with the next one's first."""
    root = tmp_path_factory.mktemp("chain")
    (root / "chain/qrels").mkdir(parents=True)
    ids = range(80)
    rows = {
        "corpus": [
            {"_id": f"d{i}", "text": " ".join(f"w{6 * i + k}" for k in range(10))} for i in ids
        ],
        "queries": [{"_id": f"q{i}", "text": f"what is number {i}"} for i in ids],
    }
    for name, row in rows.items():
        (root / f"chain/{name}.jsonl").write_text("".join(json.dumps(each) + "\n" for each in row))
    (root / "chain/qrels/train.tsv").write_text("".join(f"q{i}\td{i}\t1\n" for i in ids))
    (root / "chain.yaml").write_text(FILE)
    return prepare(Store(root / "runs"), load_dataset_params(str(root / "chain.yaml")))


def grams(text: str) -> set[tuple[str, ...]]:
    run = text.split()
    return {tuple(run[k : k + 4]) for k in range(len(run) - 3)}


def test_nearest_equals_a_plain_count(dataset: Dataset) -> None:
    texts, pairs = dataset.collection.passages, dataset.collection.pairs
    trained = [grams(texts[p]) for p in pairs[dataset.splits.train, 1]]
    expected = []
    for passage in pairs[dataset.splits.validation, 1]:
        own = grams(texts[passage])
        expected.append(max(len(own & other) / len(own | other) for other in trained))
    found = subsets.nearest(dataset, dataset.splits.validation)
    np.testing.assert_allclose(found, expected)
    assert 0 < found.max() < 0.3  # some neighbours were drawn apart: the premise


def test_splits_stand_apart_and_nest(dataset: Dataset) -> None:
    found = subsets.describe(dataset)
    assert found.apart
    assert found.splits.set_index("split")["pairs"]["validation"] == 8
    assert subsets.nested(dataset, [5, 10, 30])
    assert found.lengths.groupby("text")["words"].max()["passage"] == 10
    assert len(subsets.examples(dataset, count=2)) == 2


def test_a_training_pair_among_the_evaluated_is_seen(dataset: Dataset) -> None:
    leaking = dataclasses.replace(dataset.splits, test=dataset.splits.train[:3])
    found = subsets.describe(dataclasses.replace(dataset, splits=leaking))
    assert not found.apart
    row = found.overlap.set_index("split").loc["test"]
    assert row.tolist() == [3, 3, 3]
    assert found.nearest["test"].tolist() == [1, 1, 1]


def test_chance_is_the_logarithm_of_257() -> None:
    assert subsets.chance_nats(256) == pytest.approx(5.5491, abs=1e-4)


def test_near_half_may_follow_another_law() -> None:
    table = synthetic.grid_table(synthetic.product, synthetic.MICRO, noise=0)
    nearest = np.linspace(0, 0.3, 10)
    losses = {}
    for run in table.itertuples():
        far, near = np.full(5, 2 * run.mael), run.mael * (run.d / 640) ** -0.1 * np.ones(5)
        losses[(run.model, run.d, run.seed)] = np.concatenate([far, near])
    rows = near_far.exponents(table, losses, nearest).set_index("half")
    assert rows.loc["near", "beta"] == pytest.approx(0.3)
    assert rows.loc["far", "beta"] == pytest.approx(0.2)
    assert rows.loc["near", "similarity"] > rows.loc["far", "similarity"]
    assert rows["pairs"].tolist() == [5, 5]
