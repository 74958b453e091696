"""Pins: a dataset is found by name or path, prepared once, and checked against what it should be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from repro.data import dataset as module
from repro.data.dataset import (
    DatasetParams,
    find_dataset_file,
    load_dataset_params,
    prepare,
)
from repro.errors import UserError
from repro.store import Store

FILE = """
name: tiny
language: en
source: {kind: beir, folder: tiny, qrels: [train]}
seed: 3
splits: {validation: 5, test: 5, tuning: 5, generator: 5, held_out: 0, train: 20}
evaluation:
  negatives: 4
  sets:
    validation: {pairs: 5, passages: 8}
    test: {pairs: 5, passages: 6}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A dataset file beside a folder of sixty pairs."""
    folder = tmp_path / "tiny"
    (folder / "qrels").mkdir(parents=True)
    ids = range(60)
    rows = {
        "corpus": [{"_id": f"d{i}", "text": f"passage w{i} x{i} y{i} z{i}"} for i in ids],
        "queries": [{"_id": f"q{i}", "text": f"query {i}"} for i in ids],
    }
    for name, row in rows.items():
        text = "".join(json.dumps(each) + "\n" for each in row)
        (folder / f"{name}.jsonl").write_text(text)
    (folder / "qrels/train.tsv").write_text("".join(f"q{i}\td{i}\t1\n" for i in ids))
    path = tmp_path / "tiny.yaml"
    path.write_text(FILE)
    return path


def test_a_dataset_is_prepared_once(file: Path, tmp_path: Path) -> None:
    params = load_dataset_params(str(file))
    first = prepare(Store(tmp_path / "runs"), params)
    made = {
        path: path.stat().st_mtime_ns for path in (tmp_path / "runs").rglob("*") if path.is_file()
    }
    second = prepare(Store(tmp_path / "runs"), params)
    assert first.digests == second.digests
    assert set(first.digests) == {
        "collection",
        "components",
        "splits",
        "evaluation.validation",
        "evaluation.test",
    }
    assert made == {path: path.stat().st_mtime_ns for path in made}


def test_the_place_of_the_data_does_not_matter_but_its_content_does(
    file: Path, tmp_path: Path
) -> None:
    store = Store(tmp_path / "runs")
    here = prepare(store, load_dataset_params(str(file)))
    (tmp_path / "tiny").rename(tmp_path / "moved")
    file.write_text(FILE.replace("folder: tiny", "folder: moved"))
    assert prepare(store, load_dataset_params(str(file))).digests == here.digests
    assert len(list((tmp_path / "runs/collection").glob("*/manifest.json"))) == 1
    queries = tmp_path / "moved/queries.jsonl"
    queries.write_text(queries.read_text().replace("query 7", "query seven"))
    changed = prepare(store, load_dataset_params(str(file)))
    assert changed.digests["collection"] != here.digests["collection"]


def test_the_data_seed_moves_splits_and_sets_only(file: Path, tmp_path: Path) -> None:
    store = Store(tmp_path / "runs")
    one = prepare(store, load_dataset_params(str(file)))
    file.write_text(FILE.replace("seed: 3", "seed: 4"))
    other = prepare(store, load_dataset_params(str(file)))
    same = {name for name in one.digests if one.digests[name] == other.digests[name]}
    assert same == {"collection", "components"}


def test_an_unexpected_collection_is_refused(file: Path, tmp_path: Path) -> None:
    file.write_text(f"{FILE}expected: {{pairs: 61}}\n")
    with pytest.raises(UserError, match="its pairs is 60, 61 was expected"):
        prepare(Store(tmp_path / "runs"), load_dataset_params(str(file)))


def test_a_set_that_was_not_declared_is_refused(file: Path, tmp_path: Path) -> None:
    small = prepare(Store(tmp_path / "runs"), load_dataset_params(str(file)))
    with pytest.raises(UserError, match="has no evaluation set `tuning`"):
        small.evaluation("tuning")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("seed: 3", "sead: 3", "unknown key `sead`"),
        ("kind: beir", "kind: bier", "bier"),
        ("qrels: [train]", "qrels: [train], min_scores: 2", "min_scores"),
        ("test: 5, tuning", "test: 0, tuning", "splits.test"),
        ("{pairs: 5, passages: 8}", "{pairs: 6, passages: 8}", "splits.validation is 5"),
        ("{pairs: 5, passages: 6}", "{pairs: 5, passages: 4}", "4 negatives a pair cannot"),
        ("    test: {", "    train: {", "the training split cannot be an evaluation split"),
        ("    test: {", "    tset: {", "tset"),
    ],
)
def test_a_broken_file_is_refused_before_anything_is_read(
    file: Path, old: str, new: str, message: str
) -> None:
    assert old in FILE
    file.write_text(FILE.replace(old, new, 1))
    with pytest.raises(UserError) as caught:
        load_dataset_params(str(file))
    assert message in str(caught.value)
    assert str(file) in str(caught.value)


def test_a_dataset_is_found_from_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_dataset_file("apidocs").name == "apidocs.yaml"
    assert load_dataset_params("apidocs").name == "apidocs"


def test_a_dataset_in_the_working_folder_is_found(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "params/datasets/mine.yaml"
    own.parent.mkdir(parents=True)
    own.write_text(FILE)
    (tmp_path / "deeper").mkdir()
    monkeypatch.chdir(tmp_path / "deeper")
    assert find_dataset_file("mine") == own


def test_a_name_that_is_not_there_has_its_nearest() -> None:
    with pytest.raises(UserError, match="there is no dataset 'apidoc'") as caught:
        find_dataset_file("apidoc")
    assert caught.value.remedy == "did you mean `apidocs`?"


def test_a_shipped_dataset_file_states_every_default() -> None:
    stated = load_dataset_params("apidocs").model_dump(exclude_unset=True)
    for part in ("duplicates", "splits", "evaluation"):
        every = set(DatasetParams.model_fields[part].annotation.model_fields)
        assert set(stated[part]) == every - {"official"}  # a collection of one's own has none
    assert module.load_dataset_params("apidocs").expected.digest
