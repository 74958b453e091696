"""BEIR folders and zips, and tables of ids (MS MARCO, T2Ranking), damaged: as a simple reader reads them."""

from __future__ import annotations

import gzip
import io
import re
import zipfile
from collections import Counter
from pathlib import Path

import pytest

from fuzz.damage import DEEP, damaged
from fuzz.harness import REFUSED, Fuzz, attempt
from fuzz.right import assembled, lines, objects, rows, sampled
from repro.data.collection import Collection
from repro.data.sources.beir import BeirParams
from repro.data.sources.tsv import HEADERS, TsvParams
from repro.data.text import clean

CORPUS = b"""\
{"_id": "p1", "title": "A", "text": "first caf\\u00e9", "metadata": {}}
{"_id": "p2", "title": "", "text": "second"}
{"_id": 3, "text": "third \xe4\xb8\xad", "title": null}
"""
QUERIES = b'{"_id": "q1", "text": "one"}\r\n{"_id": "q2", "text": "two \\ud83d\\ude00"}\n'
QRELS = b"query-id\tcorpus-id\tscore\nq1\tp1\t1\nq1\tp2\t0\nq2\t3\t2\n"
COLLECTION = b"p1\tfirst text\np2\tsecond\ttab\n\np3\tthird \xc3\xa9\r\n"
HEADED = b"pid\ttext\np1\tfirst\np2\tsecond\n"
TREC = b"q1\t0\tp1\t1\nq2\t0\tp2\t0\nq1\t0\tp3\t3\n"
TWO = b"qid\tpid\nq1\tp1\nq1 p2\n"
THREE = b"q1 p1 1\nq1 p2 1\n"


def _layout(folder: Path) -> Path:
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_bytes(CORPUS)
    (folder / "queries.jsonl").write_bytes(QUERIES)
    (folder / "qrels" / "train.tsv").write_bytes(QRELS)
    return folder


@pytest.mark.parametrize("name", ["corpus.jsonl", "queries.jsonl", "qrels/train.tsv"])
def test_beir_files(name: str, fuzz: Fuzz) -> None:
    folder = _layout(fuzz.folder / "beir")
    source = BeirParams(kind="beir", folder=folder, qrels=["train"])
    base = {"corpus.jsonl": CORPUS, "queries.jsonl": QUERIES, "qrels/train.tsv": QRELS}[name]

    def check(data: bytes) -> bool:
        (folder / name).write_bytes(data)
        found = attempt(lambda: rows(source.read()), folder / name)
        if found is REFUSED or not sampled(data):
            return found is not REFUSED
        files = {"corpus.jsonl": CORPUS, "queries.jsonl": QUERIES, "qrels/train.tsv": QRELS}
        _as_beir_says(assembled(found, fuzz.folder), files | {name: data})
        return True

    deep = base[:12] + b"[" * DEEP
    fuzz(damaged([base, base, base, base, base, deep]), check, share=0.3)


def test_beir_archives(fuzz: Fuzz) -> None:
    zipped, packed = fuzz.folder / "beir.zip", fuzz.folder / "beir" / "corpus.jsonl.gz"
    folder = _layout(fuzz.folder / "beir")
    (folder / "corpus.jsonl").unlink()
    bases = [b"g" + gzip.compress(CORPUS)]
    for kind in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        target = io.BytesIO()
        with zipfile.ZipFile(target, "w", kind) as archive:
            archive.writestr("top/corpus.jsonl", CORPUS)
            archive.writestr("top/queries.jsonl", QUERIES)
            archive.writestr("top/qrels/train.tsv", QRELS)
        bases.append(b"z" + target.getvalue())

    def check(data: bytes) -> bool:
        is_zip = data[:1] == b"z"
        path = zipped if is_zip else packed
        path.write_bytes(data[1:])
        source = BeirParams(kind="beir", folder=path if is_zip else folder, qrels=["train"])
        found = attempt(lambda: rows(source.read()), zipped, folder)
        if found is REFUSED:
            return False
        assert not {each.name for each in fuzz.folder.iterdir()} - {"beir.zip", "beir"}
        return True

    fuzz(damaged(bases), check, share=0.1)


def _as_beir_says(found: Collection, files: dict[str, bytes]) -> None:
    """Asserts that texts and pairs are those of a simple reader: the first text of an id, judged pairs."""

    def text(row: dict[str, object], title: bool) -> str:
        parts = [str(row.get("title") or "").strip() if title else "", str(_or(row.get("text")))]
        return _clean("\n".join(part for part in parts if part))

    queries = _first(
        (str(_or(row["_id"])), text(row, False)) for row in objects(files["queries.jsonl"])
    )
    passages = _first(
        (str(_or(row["_id"])), text(row, True)) for row in objects(files["corpus.jsonl"])
    )
    table = [line.split("\t") for line in lines(files["qrels/train.tsv"])]
    if table and not re.fullmatch(r"[+-]?[0-9]{1,18}", table[0][-1].strip()):
        table = table[1:]
    judged = {(row[0], row[1]) for row in table if int(row[2]) >= 1}
    pairs = {(q, p) for q, p in judged if q in queries and p in passages}
    assert dict(zip(found.passage_ids, found.passages, strict=True)) == passages
    assert set(found.query_ids) == {query for query, _ in pairs}
    assert {(found.query_ids[q], found.passage_ids[p]) for q, p in found.pairs.tolist()} == pairs


def test_tables_of_ids(fuzz: Fuzz) -> None:
    paths = {name: fuzz.folder / f"{name}.tsv" for name in ("corpus", "queries", "qrels")}
    kept = {"corpus": COLLECTION, "queries": b"q1\tone\nq2\ttwo\n", "qrels": TREC}
    for name, path in paths.items():
        path.write_bytes(kept[name])
    source = TsvParams(kind="tsv", **{name: [path] for name, path in paths.items()})

    def check(part: str, data: bytes) -> bool:
        paths[part].write_bytes(data)
        found = attempt(lambda: rows(source.read()), paths[part])
        paths[part].write_bytes(kept[part])
        if found is REFUSED or not sampled(data):
            return found is not REFUSED
        _as_tables_say(assembled(found, fuzz.folder), kept | {part: data})
        return True

    texts, qrels = damaged([COLLECTION, HEADED]), damaged([TREC, TWO, THREE])
    fuzz(texts, lambda data: check("corpus", data), share=0.5)
    fuzz(qrels, lambda data: check("qrels", data), share=0.5)


def _as_tables_say(found: Collection, files: dict[str, bytes]) -> None:
    bodies = {name: _below_header(lines(data)) for name, data in files.items()}
    queries, passages = (
        _first(tuple(line.split("\t", 1)) for line in bodies[name])
        for name in ("queries", "corpus")
    )
    judged = set()
    for line in bodies["qrels"]:
        fields = line.split("\t") if "\t" in line else line.split()
        if len(fields) == 2 or int(fields[-1]) >= 1:
            judged.add((fields[0], fields[2 if len(fields) == 4 else 1]))
    pairs = {(q, p) for q, p in judged if q in queries and p in passages}
    assert dict(zip(found.passage_ids, found.passages, strict=True)) == passages
    assert {(found.query_ids[q], found.passage_ids[p]) for q, p in found.pairs.tolist()} == pairs


def _below_header(rows: list[str]) -> list[str]:
    return rows[1:] if rows and rows[0].split()[0].strip('"').casefold() in HEADERS else rows


def _first(rows: object) -> dict[str, str]:
    """id -> its first text that is not empty."""
    kept: dict[str, str] = {}
    for identifier, text in rows:  # type: ignore[attr-defined]
        if identifier and _clean(text):
            kept.setdefault(identifier, _clean(text))
    return kept


def _or(value: object) -> object:
    return "" if value is None else value


def _clean(text: str) -> str:
    return clean(text, Counter())
