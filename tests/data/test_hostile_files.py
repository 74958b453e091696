"""Pins that files made to break a reader, or broken in rare ways, are read right or refused by name."""

from __future__ import annotations

import gzip
import json
import stat
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

from repro.data.collection import Collection, assemble
from repro.data.sources import files
from repro.data.sources.beir import BeirParams
from repro.data.sources.pairs import PairsParams
from repro.data.sources.tsv import TsvParams
from repro.errors import UserError
from tiny import write_beir


def beir(folder: Path) -> Collection:
    return assemble("x", "en", BeirParams(kind="beir", folder=folder, qrels=["train"]).read())


def pairs(path: Path, **more: Any) -> Collection:
    return assemble("x", "en", PairsParams(kind="pairs", files=[path], **more).read())


def put(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("score", ["\u00b2", "+-1", "9" * 5000, "1_0", "\u0663", "1.0", ""])
def test_a_score_that_is_no_whole_number_is_refused(score: str, tmp_path: Path) -> None:
    folder = write_beir(tmp_path, 5)
    put(folder / "qrels/train.tsv", f"query-id\tcorpus-id\tscore\nq1\tp1\t1\nq2\tp2\t{score}\n")
    with pytest.raises(UserError, match=r"train\.tsv:3: expected query id"):
        beir(folder)


@pytest.mark.parametrize("key", ["_id", "text", "title"])
@pytest.mark.parametrize("value", [["a"], {"a": 1}])
def test_a_list_is_no_text(key: str, value: object, tmp_path: Path) -> None:
    folder = write_beir(tmp_path, 5)
    put(folder / "corpus.jsonl", json.dumps({"_id": "p1", "text": "x", key: value}) + "\n")
    with pytest.raises(UserError, match=rf"corpus\.jsonl:1: `{key}` is a (list|dict)"):
        beir(folder)


def test_half_a_character_is_replaced_in_ids_and_texts_alike(tmp_path: Path) -> None:
    folder = write_beir(tmp_path, 5)
    put(folder / "corpus.jsonl", '{"_id": "p\\ud800", "text": "x \\uDC00 \\ud83d\\ude00"}\n')
    put(folder / "qrels/train.tsv", "q1\tp\ufffd\t1\n")
    found = beir(folder)
    assert list(found.passage_ids) == ["p\ufffd"]
    assert list(found.passages) == ["x \ufffd \U0001f600"]
    assert found.repaired["broken encoding"] == 2
    assert len(found.pairs) == 1


def zipped(folder: Path, kind: int = zipfile.ZIP_DEFLATED) -> Path:
    path = folder.with_suffix(".zip")
    with zipfile.ZipFile(path, "w", kind) as archive:
        for file in sorted(folder.rglob("*.*")):
            archive.write(file, file.relative_to(folder.parent))
    return path


@pytest.mark.parametrize("kind", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_zip_with_damaged_content_is_refused(kind: int, tmp_path: Path) -> None:
    path = zipped(write_beir(tmp_path / "x", 40), kind)
    data = bytearray(path.read_bytes())
    data[80:120] = b"\xff" * 40
    path.write_bytes(data)
    with pytest.raises(UserError, match=r"x\.zip.*\n  remedy: "):
        beir(path)


@pytest.mark.parametrize("name", ["../corpus.jsonl", "/corpus.jsonl", "a/../../corpus.jsonl"])
def test_a_zip_that_leads_outside_is_refused(name: str, tmp_path: Path) -> None:
    path = zipped(write_beir(tmp_path / "x", 5))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(name, "{}")
    with pytest.raises(UserError, match="names a place outside itself"):
        beir(path)


def test_a_symbolic_link_in_a_zip_is_refused(tmp_path: Path) -> None:
    path = zipped(write_beir(tmp_path / "x", 5))
    link = zipfile.ZipInfo("x/passwd")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(UserError, match="holds a symbolic link: 'x/passwd'"):
        beir(path)


@pytest.mark.parametrize("packed", ["gz", "zip", "gz in a zip"])
def test_a_bomb_is_refused_before_it_fills_the_disk(
    packed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "FREE_BYTES", 2**18)
    folder = write_beir(tmp_path / "x", 5)
    text = b'{"_id": "p1", "text": "again"}\n' * 2**16
    (folder / "corpus.jsonl").write_bytes(text)
    if packed.startswith("gz"):
        (folder / "corpus.jsonl").unlink()
        (folder / "corpus.jsonl.gz").write_bytes(gzip.compress(text))
    path = zipped(folder) if packed.endswith("zip") else folder
    with pytest.raises(UserError, match=r"corpus\.jsonl.*unpacks to more than 200 times its size"):
        beir(path)


def test_a_quotation_mark_that_never_ends_does_not_fill_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MOST_BYTES", 2**12)
    path = put(tmp_path / "x.csv", 'query,passage\nq,"p\n' + "q,p\n" * 2**12)
    with pytest.raises(UserError, match=r"x\.csv:\d+: this is no row of a table: field larger"):
        pairs(path)


@pytest.mark.parametrize(
    "name", ["idna", "punycode", "utf-7", "unicode_escape", "raw_unicode_escape", "hex", "a\0b", ""]
)
def test_encodings_that_are_none_of_text_are_refused(name: str) -> None:
    with pytest.raises(ValidationError, match=r"no encoding that files are read in|NUL"):
        PairsParams.model_validate({"kind": "pairs", "files": "x.csv", "encoding": name})


@pytest.mark.parametrize("delimiter", ["\n", "\r", "\0", '"'])
def test_delimiters_that_part_nothing_are_refused(delimiter: str) -> None:
    with pytest.raises(ValidationError, match=r"this cannot part cells|NUL"):
        PairsParams.model_validate({"kind": "pairs", "files": "x.csv", "delimiter": delimiter})


ODD = {
    "bytes that are no UTF-8": pa.Array.from_buffers(
        pa.string(), 1, pa.array([b"\xff\xfe"], pa.binary()).buffers()
    ),
    "a date after all calendars": pa.array([2**50], pa.timestamp("s")),
    "a date before them": pa.array([-(2**50)], pa.timestamp("ms")),
    "a span": pa.array([2**50], pa.duration("s")),
    "bytes": pa.array([b"x"], pa.binary()),
    "a list": pa.array([["x"]]),
    "a mapping": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int32())),
}


@pytest.mark.parametrize("what", ODD)
def test_cells_of_parquet_that_are_no_text_are_refused(what: str, tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"query": ["one"], "passage": ODD[what]}), path)
    with pytest.raises(UserError, match=r"x\.parquet.*\n  remedy: "):
        pairs(path)


def test_negatives_nested_too_deep_for_json_are_one_text(tmp_path: Path) -> None:
    row = {"query": "one", "passage": "two", "wrong": "[" * 5000}
    path = put(tmp_path / "x.jsonl", json.dumps(row) + "\n")
    found = pairs(path, columns={"negative": "wrong"})
    assert "[" * 5000 in list(found.passages)


@pytest.mark.parametrize("before", ["", "\n", " \n\t\n"])
def test_a_header_may_stand_below_blank_lines(before: str, tmp_path: Path) -> None:
    names = {
        "corpus": "pid\ttext\np1\tone\n",
        "queries": "qid\ttext\nq1\ttwo\n",
        "qrels": "q1\tp1\n",
    }
    paths = {name: [put(tmp_path / f"{name}.tsv", before + text)] for name, text in names.items()}
    found = assemble("x", "en", TsvParams(kind="tsv", **paths).read())
    assert (list(found.passage_ids), found.query_ids) == (["p1"], ["q1"])
