"""Rows of pairs in CSV, TSV, JSONL and Parquet, damaged or of odd types: as a simple reader reads them."""

from __future__ import annotations

import csv
import datetime
import decimal
import gzip
import io
import json
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fuzz.damage import VALUES, changed, damaged, recipes
from fuzz.harness import REFUSED, Fuzz, attempt
from fuzz.right import assembled, lines, objects, rows, sampled
from repro.data.sources.pairs import Columns, PairsParams, content_id
from repro.data.text import clean
from repro.document import Document
from repro.params import validate

CSV = (
    b"query,passage,qid,score\none,first text,q1,1\n"
    b'"two, ""x""","second\nline",q2,0\nthree,caf\xc3\xa9,3,2.5\n'
)
TSV = b'query\tpassage\tqid\tscore\none\tfirst "text\tq1\t1\r\ntwo\tsecond\tq2\t0\n'
JSONL = b"""\
{"query": "one", "passage": "first caf\\u00e9", "qid": "q1", "score": 1, "negative": ["no", "never"]}
{"query": "two", "passage": "second", "qid": 2, "score": 0.5, "negative": "[\\"x\\"]"}
{"query": "three", "passage": null, "qid": null, "score": 2, "negative": null}
"""
COLUMNS = {"query": "query", "passage": "passage", "query_id": "qid", "score": "score"}


def _source(path: Path, **more: Any) -> PairsParams:
    columns = Columns(**COLUMNS, **({"negative": "negative"} if path.suffix == ".jsonl" else {}))
    return PairsParams(kind="pairs", files=[path], columns=columns, **more)


def _csv_rows(data: bytes, delimiter: str, quoted: bool) -> list[dict[str, Any]]:
    text = io.StringIO("\n".join(lines(data)) if not quoted else _decoded(data), newline="")
    how = csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
    found = [row for row in csv.reader(text, delimiter=delimiter, quoting=how) if row]
    names = [name.strip() for name in found[0]]
    return [dict(zip(names, row, strict=True)) for row in found[1:]]


def _decoded(data: bytes) -> str:
    return data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace").replace("\r\n", "\n")


READ: dict[str, tuple[bytes, Callable[[bytes], list[dict[str, Any]]], dict[str, Any]]] = {
    "x.csv": (CSV, lambda data: _csv_rows(data, ",", True), {}),
    "x.tsv": (TSV, lambda data: _csv_rows(data, "\t", False), {"quoted": False}),
    "x.jsonl": (JSONL, objects, {}),
}


@pytest.mark.parametrize("name", READ)
def test_rows_of_text(name: str, fuzz: Fuzz) -> None:
    path = fuzz.folder / name
    base, simply, more = READ[name]

    def check(data: bytes) -> bool:
        path.write_bytes(data)
        found = attempt(lambda: rows(_source(path, **more).read()), path)
        if found is not REFUSED and sampled(data):
            _holds(assembled(found, fuzz.folder), simply(data))
        return found is not REFUSED

    fuzz(damaged([base]), check, share=0.25)


def _holds(found: Any, table: list[dict[str, Any]]) -> None:
    """Asserts that texts are those of the rows, and pairs those with a score of 1 or more."""
    texts, judged = set(), set()
    for row in table:
        passage, name = (_text(row.get(key)) for key in ("passage", "qid"))
        if not passage.strip():
            continue
        texts.add(_clean(passage))
        if float(_text(row["score"])) >= 1 and name:
            judged.add((name, content_id(passage)))
        negatives = row.get("negative")
        if isinstance(negatives, str) and negatives.startswith("["):
            continue
        texts |= {_clean(_text(each)) for each in negatives or [] if isinstance(negatives, list)}
        texts |= {_clean(negatives)} if isinstance(negatives, str) else set()
    assert set(found.passages) <= texts - {""} | {"x"} | set(found.passages) & set(_listed(table))
    pairs = {(found.query_ids[q], found.passage_ids[p]) for q, p in found.pairs.tolist()}
    assert pairs <= judged


def _listed(table: list[dict[str, Any]]) -> list[str]:
    """The texts of lists that stand in a text."""
    out: list[str] = []
    for row in table:
        value = row.get("negative")
        if isinstance(value, str) and value.startswith("["):
            try:
                out += [_clean(_text(each)) for each in json.loads(value)]
            except (ValueError, RecursionError):
                out.append(_clean(value))
    return out


def _text(value: Any) -> str:
    if value is None or value != value:
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _clean(text: str) -> str:
    return clean(text, Counter())


def test_gzipped_rows(fuzz: Fuzz) -> None:
    path = fuzz.folder / "x.csv.gz"

    def check(data: bytes) -> bool:
        path.write_bytes(data)
        found = attempt(lambda: list(_source(path).read().judgements), path)
        return found is not REFUSED

    fuzz(damaged([gzip.compress(CSV)]), check, share=0.1)


def test_how_a_file_is_read(fuzz: Fuzz) -> None:
    path = fuzz.folder / "x.csv"
    path.write_bytes(CSV)
    base = {
        "kind": "pairs",
        "files": [str(path)],
        "columns": COLUMNS,
        "delimiter": ",",
        "encoding": "cp1252",
        "quoted": True,
        "min_score": 1.5,
    }
    names = [
        "utf-8",
        "utf-16",
        "latin-1",
        "gb18030",
        "utf-7",
        "unicode_escape",
        "raw_unicode_escape",
        "idna",
        "punycode",
        "undefined",
        "rot13",
        "hex",
        "zlib",
        "base64",
        "utf-8-sig",
        "cp037",
        "shift_jis",
        "iso2022_jp",
        "hz",
        "mbcs",
        "\t",
        "\n",
        "\r",
        '"',
        "\0",
        " ",
        "::",
        "é",
        "query",
        "qid",
        "passage",
        "😀",
        str(path),
    ]

    def check(data: Any) -> bool:
        source = attempt(lambda: validate(Document(path, data, {}), PairsParams), path)
        if source is REFUSED:
            return False
        return attempt(lambda: rows(source.read())) is not REFUSED

    fuzz(changed([base], [*VALUES, *names, *names]), check, share=0.1)


# Cells of every kind that Parquet has; the first of each is what a table may hold.
TYPES: list[tuple[pa.DataType, list[Any]]] = [
    (pa.string(), ["one", "", "caf\u00e9", None, "7"]),
    (pa.large_string(), ["two", None]),
    (pa.int64(), [1, 0, -5, 2**62, None]),
    (pa.uint64(), [2**64 - 1]),
    (pa.float64(), [1.0, float("nan"), float("inf"), 1e300, 2.5]),
    (pa.float16(), [1.0]),
    (pa.bool_(), [True, False, None]),
    (pa.decimal128(20, 3), [decimal.Decimal("1.500")]),
    (pa.timestamp("ns"), [1, 2**62, -(2**62)]),
    (pa.timestamp("s"), [0, 2**40, -(2**40)]),
    (pa.timestamp("us", tz="Nowhere/City"), [0]),
    (pa.date32(), [datetime.date(2020, 1, 1)]),
    (pa.date64(), [2**50]),
    (pa.time64("ns"), [1, 86_399_999_999_999]),
    (pa.duration("s"), [1, 2**50]),
    (pa.binary(), [b"\xff\x00", b"x"]),
    (pa.list_(pa.string()), [["a", None], [], None]),
    (pa.list_(pa.list_(pa.int32())), [[[1]]]),
    (pa.struct([("x", pa.int32())]), [{"x": 1}]),
    (pa.map_(pa.string(), pa.int32()), [[("a", 1)]]),
    (pa.null(), [None]),
    (pa.dictionary(pa.int32(), pa.string()), ["one", "two"]),
]


def test_parquet_of_odd_types(fuzz: Fuzz) -> None:
    path = fuzz.folder / "x.parquet"

    def check(recipe: bytes) -> bool:
        choose = random.Random(recipe)
        names = choose.sample([*COLUMNS.values(), "other"], choose.choice([4, 4, 4, 5, 3]))
        if choose.random() < 0.1:
            names.append(names[0])
        arrays, n = [], choose.randrange(4)
        for _ in names:
            kind, cells = choose.choice(TYPES[:5] if choose.random() < 0.8 else TYPES)
            arrays.append(_array(kind, [choose.choice(cells) for _ in range(n)], choose))
        pq.write_table(pa.Table.from_arrays(arrays, names), path)
        found = attempt(lambda: rows(_source(path).read()), path)
        return found is not REFUSED

    fuzz(recipes(), check, share=0.1)


def _array(kind: pa.DataType, cells: list[Any], choose: random.Random) -> pa.Array:
    if pa.types.is_dictionary(kind):
        return pa.array(cells).dictionary_encode()
    if pa.types.is_string(kind) and choose.random() < 0.1:  # bytes that are no UTF-8
        data = pa.array([b"\xff\xfe" for _ in cells], pa.binary())
        return pa.Array.from_buffers(pa.string(), len(cells), data.buffers())
    return pa.array(cells, kind)


def test_damaged_parquet(fuzz: Fuzz) -> None:
    path = fuzz.folder / "x.parquet"
    bases = []
    for compression in ("none", "snappy", "zstd"):
        columns = {
            "query": ["one", "two"],
            "passage": ["first", "second"],
            "qid": [1, 2],
            "score": [1.0, 0.5],
        }
        target = io.BytesIO()
        pq.write_table(pa.table(columns), target, compression=compression)
        bases.append(target.getvalue())

    def check(data: bytes) -> bool:
        path.write_bytes(data)
        return attempt(lambda: rows(_source(path).read()), path) is not REFUSED

    fuzz(damaged(bases), check, share=0.1)
