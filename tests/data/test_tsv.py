"""Pins how tables of ids are read: MS MARCO's files, T2Ranking's with headers, TREC's qrels."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from repro.data.collection import Collection, assemble
from repro.data.sources.tsv import TsvParams
from repro.errors import UserError

CORPUS = '0\tThe first.\n1\tA tab\tinside, and a "quote.\n2\tunjudged\n'
QUERIES = "1\tone?\n2\ttwo?\n3\tnever judged\n"  # ids that passages have too
TREC = "1\t0\t0\t1\n2\t0\t1\t3\n1\t0\t2\t0\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "collection.tsv").write_text(CORPUS)
    (tmp_path / "queries.tsv").write_text(QUERIES)
    (tmp_path / "qrels.tsv").write_text(TREC)
    return tmp_path


def read(folder: Path, **more: Any) -> Collection:
    files = {
        "corpus": folder / "collection.tsv",
        "queries": folder / "queries.tsv",
        "qrels": folder / "qrels.tsv",
    }
    params = TsvParams.model_validate({"kind": "tsv", **files, **more})
    assert params.fingerprint()["files"].keys() == files.keys()
    return assemble("tsv", "en", params.read())


def test_the_files_of_ms_marco_are_read(folder: Path) -> None:
    collection = read(folder)
    assert collection.passages == ["The first.", 'A tab\tinside, and a "quote.', "unjudged"]
    assert collection.queries == ["one?", "two?"]
    np.testing.assert_array_equal(collection.pairs, [[0, 0], [1, 1]])
    assert collection.dropped == {
        "judgement with a score under 1": 1,
        "query without a judgement": 1,
    }
    assert read(folder, min_score=2).queries == ["two?"]


@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("collection.tsv", "pid\tpassage"),
        ("collection.tsv", "_id\ttext"),
        ("queries.tsv", "qid\tquery"),
        ("qrels.tsv", "qid\t-\tpid\trel"),
        ("qrels.tsv", "query-id\titer\tcorpus-id\tscore"),
    ],
)
def test_a_header_makes_no_difference(folder: Path, name: str, header: str) -> None:
    plain = read(folder)
    path = folder / name
    path.write_text(f"{header}\n{path.read_text()}")
    assert read(folder).digest == plain.digest


@pytest.mark.parametrize(
    "qrels",
    [
        "1 0 0 1\n2 0 1 3\n1 0 2 0\n",  # TREC with spaces
        "1\t0\t1\n2\t1\t3\n1\t2\t0\n",  # three columns
        "1\t0\n2\t1\n",  # two: all relevant
        "qid\tpid\n1\t0\n2\t1\n",  # as T2Ranking has them for retrieval
    ],
)
def test_judgements_of_two_to_four_columns(folder: Path, qrels: str) -> None:
    plain = read(folder)
    (folder / "qrels.tsv").write_text(qrels)
    assert read(folder).digest == plain.digest


def test_several_files_and_gzip(folder: Path) -> None:
    plain = read(folder)
    lines = TREC.splitlines(keepends=True)
    parts = [folder / "a.tsv", folder / "b.tsv.gz"]
    parts[0].write_text(lines[2] + lines[1])
    parts[1].write_bytes(gzip.compress(lines[0].encode()))
    assert read(folder, qrels=parts).digest == plain.digest  # in whatever order


def test_a_file_of_judgements_is_a_part(folder: Path) -> None:
    (folder / "dev.tsv").write_text("2\t2\n1\t0\n")
    files = [folder / "qrels.tsv", folder / "dev.tsv"]
    collection = read(folder, qrels=files)
    assert collection.pairs.tolist() == [[0, 0], [1, 1], [1, 2]]
    assert collection.part is not None
    found = [collection.parts[i] for i in collection.part]
    assert found == ["qrels.tsv", "qrels.tsv", "dev.tsv"], "a pair in two is of the first"


def test_a_stated_header_skips_the_first_line(folder: Path) -> None:
    path = folder / "queries.tsv"
    path.write_text(f"Nummer\tFrage\n{QUERIES}")
    assert read(folder).dropped["query without a judgement"] == 2  # taken for a query
    for name in ("collection.tsv", "qrels.tsv"):
        (folder / name).write_text(f"any\tany\n{(folder / name).read_text()}")
    assert read(folder, header=True).dropped["query without a judgement"] == 1


@pytest.mark.parametrize(
    ("name", "line", "message"),
    [
        ("queries.tsv", "4 no tab", "expected an id, a tab and a text"),
        ("qrels.tsv", "1\t0\t0\thigh", "whole-number grade"),
        ("qrels.tsv", "1\t0\t0\t0.5", "whole-number grade"),
        ("qrels.tsv", "1", "whole-number grade"),
        ("qrels.tsv", "1\t0\t0\t1\t1", "whole-number grade"),
    ],
)
def test_a_bad_line_is_refused_with_its_place(
    folder: Path, name: str, line: str, message: str
) -> None:
    with (folder / name).open("a") as file:
        file.write(f"{line}\n")
    with pytest.raises(UserError, match=message) as caught:
        read(folder)
    assert caught.value.where == f"{folder / name}:4"
