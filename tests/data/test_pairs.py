"""Pins how rows of pairs are read: columns, ids, scores, damage; and that bad rows are named."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

from repro.data.collection import Collection, assemble
from repro.data.sources.pairs import PairsParams, content_id
from repro.errors import UserError

ROWS = "question;answer;head;points\none?;first, text;Title;2\ntwo?;first, text;Title;1\n"


def params(path: Path, columns: dict[str, str] | None = None, **more: Any) -> PairsParams:
    return PairsParams.model_validate(
        {"kind": "pairs", "files": path, "columns": columns or {}, **more}
    )


def read(path: Path, columns: dict[str, str] | None = None, **more: Any) -> Collection:
    return assemble("mine", "en", params(path, columns, **more).read())


def written(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_columns_of_any_name_are_read(tmp_path: Path) -> None:
    path = written(tmp_path / "pairs.csv", ROWS)
    columns = {"query": "question", "passage": "answer", "title": "head", "score": "points"}
    collection = read(path, columns, delimiter=";")
    assert sorted(collection.queries) == ["one?", "two?"]
    assert collection.passages == ["Title\nfirst, text"]
    assert collection.passage_ids == [content_id("Title\nfirst, text")]
    assert len(collection.pairs) == 2  # several queries on one passage
    high = read(path, columns, delimiter=";", min_score=2)
    assert high.queries == ["one?"]
    assert high.passages == collection.passages
    assert high.dropped["judgement with a score under 2"] == 1


def test_without_ids_equal_texts_are_one_query_and_one_passage(tmp_path: Path) -> None:
    path = written(tmp_path / "p.csv", "query,passage\na,x\na,y\nb,x\na,x\n a ,x\n")
    collection = read(path)
    assert collection.counts == {"queries": 2, "passages": 2, "pairs": 3}
    assert collection.dropped == {"repeated judgement": 2}


def test_with_ids_the_first_text_of_an_id_counts(tmp_path: Path) -> None:
    text = "q,query,p,passage\n10,a,P2,x\n9,b,P2,other\n9,c,P1,y\n"
    path = written(tmp_path / "p.csv", text)
    collection = read(path, {"query_id": "q", "passage_id": "p"})
    assert collection.query_ids == ["9", "10"]  # in order of the ids, numbers by value
    assert collection.queries == ["b", "a"]
    assert collection.passages == ["y", "x"]
    np.testing.assert_array_equal(collection.pairs, [[0, 0], [0, 1], [1, 1]])
    assert collection.repaired == {
        "row whose passage id had another text before: the first counts": 1,
        "row whose query id had another text before: the first counts": 1,
    }


def test_a_row_without_a_query_leaves_its_passage_in_the_corpus(tmp_path: Path) -> None:
    path = written(tmp_path / "p.csv", "query,passage\na,x\n,y\nb,\n")
    collection = read(path)
    assert sorted(collection.passages) == ["x", "y"]
    assert collection.queries == ["a"]
    assert collection.dropped == {
        "row without a passage": 1,
        "row without a query (its passage stays)": 1,
    }


def test_quotes_line_ends_and_long_cells(tmp_path: Path) -> None:
    long = "word " * 60_000  # longer than the csv module takes by itself
    text = f'query,passage\n"a ""b"", c","two\r\nlines"\nd,{long}\n'
    collection = read(written(tmp_path / "p.csv", text))
    assert set(collection.queries) == {'a "b", c', "d"}
    assert set(collection.passages) == {"two\nlines", long.strip()}
    raw = written(tmp_path / "raw.tsv", 'query\tpassage\n"so" he said\tx "y\n')
    with pytest.raises(UserError, match="no row of a table") as caught:
        read(raw)
    assert "quoted: false" in caught.value.remedy
    assert read(raw, quoted=False).queries == ['"so" he said']


def test_marks_and_line_ends_are_repaired_and_counted(tmp_path: Path) -> None:
    plain = read(written(tmp_path / "p.csv", "query,passage\na,x\n"))
    odd = read(written(tmp_path / "odd.csv", b"\xef\xbb\xbfquery,passage\r\na,x\r\n"))
    assert odd.digest == plain.digest
    assert odd.repaired == {"byte order mark of a file": 1, "file line ending in CRLF": 2}


def test_other_encodings_are_counted_or_read_as_what_they_are(tmp_path: Path) -> None:
    path = written(tmp_path / "p.csv", "query,passage\ncafé,thé\n".encode("latin-1"))
    guessed = read(path)
    assert guessed.queries == ["caf\ufffd"]
    assert guessed.repaired == {"line that is not UTF-8": 1}
    told = read(path, encoding="latin-1")
    assert (told.queries, told.passages, told.repaired) == (["café"], ["thé"], {})
    chinese = written(tmp_path / "zh.csv", "query,passage\n问题,回答\n".encode("gb18030"))
    assert read(chinese, encoding="gb18030").queries == ["问题"]
    with pytest.raises(ValidationError, match="no encoding that files are read in"):
        params(path, encoding="utf-16")
    wide = written(tmp_path / "wide.csv", "query,passage\na,x\n".encode("utf-16"))
    with pytest.raises(UserError, match="this is UTF-16"):
        read(wide)


def test_jsonl_and_parquet_take_numbers_and_nothing(tmp_path: Path) -> None:
    rows = [{"n": 1, "query": "a", "passage": "x"}, {"n": 2, "query": None, "passage": "y"}]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    jsonl = read(written(tmp_path / "p.jsonl", lines), {"query_id": "n"})
    gzipped = read(
        written(tmp_path / "q.jsonl.gz", gzip.compress(lines.encode())), {"query_id": "n"}
    )
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "p.parquet")
    parquet = read(tmp_path / "p.parquet", {"query_id": "n"})
    assert jsonl.query_ids == ["1"]
    assert jsonl.dropped == {
        "judgement of a missing or dropped query": 1,
        "query with an empty text": 1,
    }
    assert jsonl.digest == gzipped.digest == parquet.digest


def test_several_files_are_one_table(tmp_path: Path) -> None:
    one = written(tmp_path / "1.csv", "query,passage\na,x\n")
    two = written(tmp_path / "2.tsv", "passage\tquery\ny\tb\n")
    collection = assemble("mine", "en", params(one).model_copy(update={"files": [one, two]}).read())
    assert sorted(collection.queries) == ["a", "b"]


BAD: dict[str, tuple[str, bytes, str, str]] = {
    "a column that is not there": (
        "p.csv", b"question,passage\na,x\n", "the column `query` is not there", "question"),
    "a column that stands twice": (
        "p.csv", b"query,passage,query\na,x,b\n", "the column `query` is twice there", ""),
    "an empty file": ("p.csv", b"", "the file is empty", ""),
    "another delimiter": ("p.csv", b"query;passage\na;x\n", "`query;passage`", "delimiter"),
    "a short row": ("p.csv", b"query,passage\na,x\nb\n", "a row has 1 cells", "quotation marks"),
    "no JSON": ("p.jsonl", b"query,passage\n", "this is not JSON", "one JSON object a line"),
    "no object": ("p.jsonl", b"[1]\n", "expected an object with `query`", ""),
    "no such key": ("p.jsonl", b'{"query": "a"}\n', "the column `passage` is not there", ""),
    "a list for a text": (
        "p.jsonl", b'{"query": "a", "passage": ["x"]}\n', "holds a list", "one row a pair"),
    "no Parquet": ("p.parquet", b"query,passage\n", "this Parquet file cannot be read", ""),
    "no gzip": ("p.csv.gz", b"query,passage\na,x\n", "the file cannot be read", "copy it again"),
    "cut gzip": ("p.csv.gz", gzip.compress(b"query,passage\na,x\n" * 99)[:-9], "cannot be read", ""),
    "an Excel file": ("p.csv", b"PK\x03\x04rest\n", "Excel", "CSV UTF-8"),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_what_cannot_be_read_is_refused_with_its_place(what: str, tmp_path: Path) -> None:
    name, data, message, remedy = BAD[what]
    with pytest.raises(UserError) as caught:
        read(written(tmp_path / name, data))
    assert message in str(caught.value)
    assert remedy in caught.value.remedy
    assert str(tmp_path / name) in caught.value.where


@pytest.mark.parametrize("score", ["", "high", "nan", "inf"])
def test_a_score_that_is_no_number_is_refused_with_its_row(score: str, tmp_path: Path) -> None:
    path = written(tmp_path / "p.csv", f"query,passage,s\na,x,1\nb,y,{score}\n")
    with pytest.raises(UserError, match="the score is") as caught:
        read(path, {"score": "s"})
    assert caught.value.where == f"{path}:3"


def test_a_missing_file_has_its_nearest_name(tmp_path: Path) -> None:
    written(tmp_path / "pairs.csv", "query,passage\n")
    with pytest.raises(UserError, match="there is no such file") as caught:
        params(tmp_path / "pair.csv").fingerprint()
    assert "pairs.csv" in caught.value.remedy


@pytest.mark.parametrize("name", ["pairs.xlsx", "pairs", "pairs.parquet.gz", "pairs.json"])
def test_a_file_of_another_kind_is_refused(name: str) -> None:
    with pytest.raises(ValidationError, match="of no kind that is read"):
        params(Path(name))


def test_a_column_named_twice_is_refused() -> None:
    with pytest.raises(ValidationError, match="a column is named twice"):
        params(Path("p.csv"), {"query": "passage"})


def test_negatives_are_passages_that_are_judged_by_nobody(tmp_path: Path) -> None:
    rows = [
        {"query": "a", "passage": "x", "not": ["y", "z", "x", ""]},
        {"query": "b", "passage": "y", "not": "w"},
        {"query": "b", "passage": "y", "not": '["w", "v"]'},
        {"query": "c", "passage": "z", "not": None},
    ]
    path = written(tmp_path / "p.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    collection = read(path, {"negative": "not"})
    found = {
        (collection.queries[query], collection.passages[passage])
        for query, passage in collection.negatives.tolist()
    }
    assert found == {("a", "y"), ("a", "z"), ("b", "w"), ("b", "v")}
    assert collection.counts == {"queries": 3, "passages": 5, "pairs": 3}
    assert collection.dropped["negative that is judged relevant"] == 1
    plain = read(path)
    assert plain.digest != collection.digest
    assert len(plain.negatives) == 0
    collection.save(tmp_path / "saved")
    loaded = Collection.load(tmp_path / "saved")
    np.testing.assert_array_equal(loaded.negatives, collection.negatives)
    plain.save(tmp_path / "plain")
    assert not (tmp_path / "plain/negatives.parquet").exists()
    assert Collection.load(tmp_path / "plain").negatives.shape == (0, 2)


def test_negatives_are_found_among_passages_that_have_ids(tmp_path: Path) -> None:
    path = written(tmp_path / "p.csv", "query,pid,passage,no\na,1,x,y\nb,2,y,\n")
    collection = read(path, {"passage_id": "pid", "negative": "no"})
    assert collection.passage_ids == ["1", "2"]
    assert len(collection.negatives) == 1


def test_a_negative_goes_with_its_passage(tmp_path: Path) -> None:
    path = written(tmp_path / "p.csv", "query,passage,no\na,x,u\nb,y,v\n")
    collection = read(path, {"negative": "no"})
    passage = np.array([text != "u" for text in collection.passages])
    kept = collection.keep(passage, np.ones(2, bool), {})
    assert kept.dropped["negative of a dropped query or passage"] == 1
    [[query, other]] = kept.negatives.tolist()
    assert (kept.queries[query], kept.passages[other]) == ("b", "v")
