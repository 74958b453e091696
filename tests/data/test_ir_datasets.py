"""Pins the source ir_datasets on a small collection that is registered with the library here."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from repro.data.collection import assemble
from repro.data.sources.ir_datasets import IrDatasetsParams
from repro.errors import UserError

library = pytest.importorskip("ir_datasets", reason="the package ir_datasets is not installed")


@pytest.fixture
def ids(tmp_path: Path) -> dict[str, str]:
    """Two parts of one collection, with queries of their own (one stands in both)."""
    os.environ.setdefault("IR_DATASETS_HOME", str(tmp_path / "home"))
    docs = tmp_path / "docs.tsv"
    docs.write_text("d1\tfirst text\nd2\tsecond text\nd3\tthird text\nd4\t\n")
    found = {}
    for part, queries, qrels in (
        ("train", "q1\tone?\nq2\ttwo?\n", "q1 0 d1 1\nq1 0 d2 3\nq2 0 d3 0\nq2 0 d4 2\n"),
        ("dev", "q1\tone?\nq3\tthree?\n", "q3 0 d3 2\nq3 0 d9 1\n"),
    ):
        (tmp_path / f"queries.{part}.tsv").write_text(queries)
        (tmp_path / f"{part}.qrels").write_text(qrels)
        name = f"{tmp_path.name}/{part}"
        library.registry.register(
            name,
            library.create_dataset(
                str(docs), str(tmp_path / f"queries.{part}.tsv"), str(tmp_path / f"{part}.qrels")
            ),
        )
        found[part] = name
    return found


def params(ids: dict[str, str], **more: object) -> IrDatasetsParams:
    return IrDatasetsParams.model_validate({"kind": "ir_datasets", "ids": ids, **more})


def test_ids_are_the_parts_of_one_collection(ids: dict[str, str]) -> None:
    collection = assemble("ir", "en", params(ids).read())
    assert collection.query_ids == ["q1", "q3"]
    assert collection.passages == ["first text", "second text", "third text"]
    assert collection.pairs.tolist() == [[0, 0], [0, 1], [1, 2]]
    assert [collection.parts[i] for i in collection.part] == ["train", "train", "dev"]
    assert collection.dropped == {
        "judgement of a missing or dropped passage": 2,
        "judgement with a score under 1": 1,
        "passage with an empty text": 1,
        "query without a judgement": 1,
    }


def test_a_grade_is_a_threshold(ids: dict[str, str]) -> None:
    assert len(assemble("ir", "en", params(ids, min_score=3).read()).pairs) == 1


def test_the_fingerprint_follows_the_files(ids: dict[str, str], tmp_path: Path) -> None:
    before = params(ids).fingerprint()
    assert before == params(ids).fingerprint()
    with (tmp_path / "dev.qrels").open("a") as file:
        file.write("q3 0 d2 1\n")
    after = params(ids).fingerprint()
    changed = {name for name in before["files"] if before["files"][name] != after["files"][name]}
    assert changed == {f"{ids['dev']}:qrels"}


def test_an_id_that_is_not_there_has_its_nearest() -> None:
    with pytest.raises(UserError, match="ir_datasets has no `msmarco-passage/dev/smal`") as caught:
        params({"dev": "msmarco-passage/dev/smal"}).fingerprint()
    assert caught.value.remedy == "did you mean `msmarco-passage/dev/small`?"


def test_an_id_without_judgements_is_refused() -> None:
    with pytest.raises(UserError, match="`msmarco-passage` of ir_datasets has no queries"):
        params({"all": "msmarco-passage"}).fingerprint()


def test_a_file_that_is_gone_is_refused(ids: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "dev.qrels").unlink()
    with pytest.raises(UserError, match="ir_datasets cannot read this"):
        assemble("ir", "en", params(ids).read())


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, ids: dict[str, str]) -> None:
    import repro.data.sources.ir_datasets as module

    monkeypatch.setattr(module, "find_spec", lambda name: None)
    with pytest.raises(UserError, match="the package ir_datasets is not installed"):
        list(params(ids).read().passages)
