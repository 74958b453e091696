"""Pins how a BEIR folder is read, and that damage is counted, repaired or refused with its line."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from repro.data.collection import Collection, assemble
from repro.data.sources.beir import BeirParams
from repro.errors import UserError

CORPUS = [
    {"_id": "d1", "title": "Title", "text": "first text"},
    {"_id": "d2", "title": "", "text": "second text"},
    {"_id": "d3", "text": "third text"},
]
QUERIES = [{"_id": "q1", "text": "one?"}, {"_id": "q2", "text": "two?"}]
QRELS = "query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td2\t2\nq2\td3\t0\nq2\td1\t1\n"


def lines(rows: list[dict[str, str]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "qrels").mkdir()
    (tmp_path / "corpus.jsonl").write_bytes(lines(CORPUS))
    (tmp_path / "queries.jsonl").write_bytes(lines(QUERIES))
    (tmp_path / "qrels/train.tsv").write_text(QRELS)
    return tmp_path


def params(folder: Path, **more: object) -> BeirParams:
    return BeirParams.model_validate({"kind": "beir", "folder": folder, "qrels": ["train"], **more})


def read(folder: Path, **more: object) -> Collection:
    return assemble("beir", "en", params(folder, **more).read())


def test_a_folder_is_read_as_it_stands(folder: Path) -> None:
    collection = read(folder)
    assert collection.query_ids == ["q1", "q2"]
    assert collection.passages == ["Title\nfirst text", "second text", "third text"]
    np.testing.assert_array_equal(collection.pairs, [[0, 0], [0, 1], [1, 0]])
    assert collection.dropped["judgement with a score under 1"] == 1
    assert read(folder, title=False).passages[0] == "first text"
    assert len(read(folder, min_score=2).pairs) == 1


def test_gzipped_files_give_the_same_collection(folder: Path) -> None:
    plain = read(folder)
    for path in [*folder.glob("*.jsonl"), *folder.glob("qrels/*.tsv")]:
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    assert read(folder).digest == plain.digest


def test_marks_and_line_ends_are_repaired_and_counted(folder: Path) -> None:
    plain = read(folder)
    for path in [*folder.glob("*.jsonl"), *folder.glob("qrels/*.tsv")]:
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    damaged = read(folder)
    assert damaged.digest == plain.digest
    assert damaged.repaired == {"byte order mark of a file": 3, "file line ending in CRLF": 10}


def test_a_file_without_a_header_or_last_line_end_keeps_every_judgement(folder: Path) -> None:
    (folder / "qrels/train.tsv").write_text("q1\td1\t1\n\nq2\td2\t1")
    assert read(folder).counts["pairs"] == 2


def test_ids_that_are_not_there_are_counted(folder: Path) -> None:
    (folder / "qrels/train.tsv").write_text(f"{QRELS}q1\td9\t1\nq9\td1\t1\nq1\td1\t1\n")
    collection = read(folder)
    assert collection.counts["pairs"] == 3
    assert collection.dropped["judgement of a missing or dropped passage"] == 1
    assert collection.dropped["judgement of a missing or dropped query"] == 1
    assert collection.dropped["repeated judgement"] == 1


def test_text_that_is_not_utf8_is_replaced_and_counted(folder: Path) -> None:
    (folder / "queries.jsonl").write_bytes(b'{"_id": "q1", "text": "caf\xe9"}\n')
    collection = read(folder)
    assert collection.queries == ["caf\ufffd"]
    assert collection.repaired == {"line that is not UTF-8": 1}


@pytest.mark.parametrize("name", ["corpus.jsonl", "queries.jsonl", "qrels/train.tsv"])
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(UserError, match=f"there is no {name}, nor {name}.gz"):
        params(folder).fingerprint()


def test_a_misspelt_file_of_judgements_has_its_nearest_name(folder: Path) -> None:
    with pytest.raises(UserError) as caught:
        read(folder, qrels=["trian"])
    assert caught.value.remedy == "did you mean `train.tsv`?"


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no such folder"):
        params(tmp_path / "nowhere").fingerprint()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"_id": "q2", "text": ', "this is not JSON"),
        ('["q2", "two?"]', "expected an object with `_id` and `text`"),
        ('{"id": "q2", "text": "two?"}', "expected an object with `_id` and `text`"),
    ],
)
def test_a_bad_line_is_refused_with_file_and_line(folder: Path, line: str, message: str) -> None:
    path = folder / "queries.jsonl"
    path.write_text(f'{{"_id": "q1", "text": "one?"}}\n\n{line}\n')
    with pytest.raises(UserError, match=message) as caught:
        read(folder)
    assert caught.value.where == f"{path}:3"


@pytest.mark.parametrize("line", ["q1 d1 1", "q1\td1\tgood", "q1\t0\td1\t1", "q1\td1\t0.5"])
def test_a_bad_judgement_is_refused_with_file_and_line(folder: Path, line: str) -> None:
    path = folder / "qrels/train.tsv"
    path.write_text(f"{QRELS}{line}\n")
    with pytest.raises(UserError, match="expected query id, passage id") as caught:
        read(folder)
    assert caught.value.where == f"{path}:6"


def test_the_same_judgements_twice_are_refused() -> None:
    with pytest.raises(ValidationError, match="a name stands twice"):
        params(Path(), qrels=["train", "train"])


def test_the_fingerprint_follows_every_file(folder: Path) -> None:
    before = params(folder).fingerprint()
    with (folder / "corpus.jsonl").open("a") as file:
        file.write('{"_id": "d4", "text": "fourth"}\n')
    after = params(folder).fingerprint()
    assert {n for n in before["files"] if before["files"][n] != after["files"][n]} == {
        "corpus.jsonl"
    }


@pytest.mark.parametrize(
    ("name", "qrels", "counts", "dropped"),
    [
        ("wiki-leads", ["train", "dev", "test"], (8342, 8342, 8342), {}),
        (
            "cmrc2018-zh",
            ["train", "dev", "test"],
            (4218, 1104, 4219),
            {"query with an empty text": 1, "judgement of a missing or dropped query": 2},
        ),
        (
            "cranfield",
            ["test"],
            (225, 1398, 1836),
            {"passage with an empty text": 2, "judgement of a missing or dropped passage": 1},
        ),
    ],
)
def test_the_sample_collections_have_their_counts(
    sample_data: Path,
    name: str,
    qrels: list[str],
    counts: tuple[int, int, int],
    dropped: dict[str, int],
) -> None:
    collection = read(sample_data / name, qrels=qrels)
    assert tuple(collection.counts.values()) == counts
    assert collection.dropped == dropped
