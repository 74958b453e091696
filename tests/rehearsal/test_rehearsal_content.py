"""The made-up collections and their layouts.

Pins that the same bytes come every time, that every oddity that is promised is there and is what it is
called, that all layouts of MS MARCO hold the same, and that each is laid out as the card of its
repository (or its own files) says.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from ruamel.yaml import YAML

from rehearsal import beir, msmarco, t2ranking
from rehearsal.content import ODDITIES, Content, Plan, make, mojibake
from rehearsal.make import Counts

EN = Plan("en", 300, {"train": 120, "dev": 40, "test": 8}, titles=True, shared=10, irrelevant=2)
ZH = Plan("zh", 400, {"train": 60, "dev": 20, "test": 5}, positives=3, varying=True, irrelevant=2)


@pytest.fixture(scope="module")
def english() -> Content:
    return make(EN, 1, "english")


@pytest.fixture(scope="module")
def chinese() -> Content:
    return make(ZH, 1, "chinese")


def digests(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }


def lay_out(folder: Path, plan: Plan, name: str) -> Path:
    content = make(plan, 1, name)
    msmarco.mteb(folder / "mteb", content)
    msmarco.sentence_transformers(folder / "corpus", content)
    msmarco.triplets(folder / "bm25", content)
    msmarco.tevatron(folder / "new", content)
    msmarco.raw(folder / "raw", content)
    beir.folder(folder / "beir", content)
    beir.folder(folder / "gz", content, gz=True)
    beir.repositories(folder / "BeIR", "nq", content)
    beir.nano(folder / "nano", content)
    t2ranking.repository(folder / "t2", content)
    return folder


def test_the_same_bytes_come_every_time(tmp_path: Path) -> None:
    first = digests(lay_out(tmp_path / "a", EN, "x"))
    assert first == digests(lay_out(tmp_path / "b", EN, "x"))
    other = digests(lay_out(tmp_path / "c", EN, "y"))
    assert first["mteb/corpus.jsonl"] != other["mteb/corpus.jsonl"]
    assert len(first) > 40


def test_every_oddity_is_there(english: Content, chinese: Content) -> None:
    assert {**english.oddities, **chinese.oddities}.keys() >= set(ODDITIES)
    assert all(english.oddities[name] > 0 for name in ODDITIES)


def test_the_oddities_are_what_they_are_called(english: Content) -> None:
    texts = Counter(text for _, _, text in english.passages)
    assert texts[""] == english.oddities["empty"] + english.oddities["empty_judged"] - 1
    assert sum(not text.strip() for text in texts) == 2  # "" and spaces
    assert sum(n > 1 and bool(text) for text, n in texts.items()) == 3
    assert any(mojibake("\u2019") in text for text in texts)
    passages = {key for key, _, _ in english.passages}
    queries = [query for split in english.queries.values() for query in split]
    judged = [pair for split in english.judgements.values() for pair in split]
    asked = {key for key, _ in queries}
    assert any(passage not in passages for _, passage, _ in judged)
    assert any(query not in asked for query, _, _ in judged)
    assert len(set(judged)) < len(judged)
    assert passages & asked
    assert {grade for _, _, grade in judged} == {0, 1, 2, 3}
    relevant = {(q, p) for q, p, grade in judged if grade > 1}
    assert max(Counter(passage for _, passage in relevant).values()) > 1
    assert max(Counter(query for query, _ in relevant).values()) > 1
    assert len({text for _, text in queries}) < len(queries)


def test_a_query_has_a_rare_word_of_its_passage(english: Content) -> None:
    words = {key: set(re.findall("[a-z]+", text.lower())) for key, _, text in english.passages}
    spread = Counter(word for found in words.values() for word in found)
    queries = dict(english.queries["dev"])
    best = [(q, p) for q, p, grade in english.judgements["dev"] if grade == 3]
    assert len(best) == EN.queries["dev"]
    for query, passage in best:
        shared = set(queries[query].split()) & words[passage]
        assert min(spread[word] for word in shared) <= 3


def test_counts_after_cleaning(english: Content) -> None:
    counts = Counts.of(english, "train")
    assert counts.passages == len(english.passages) - 5  # four empty ones, and one of spaces
    judged = set(msmarco.relevant(english, "train"))
    lost = 4  # of an empty passage, of an empty query, of a missing passage, of a missing query
    assert counts.pairs == len(judged) - lost


def front(folder: Path) -> dict[str, Any]:
    text = (folder / "README.md").read_text(encoding="utf-8")
    return YAML(typ="safe").load(text.split("---")[1])


def rows(folder: Path, config: str, split: str) -> list[dict[str, Any]]:
    """The rows of a config's split, found as the hub's library finds them: by the card's patterns."""
    for each in front(folder)["configs"]:
        if each["config_name"] == config:
            paths = {found["split"]: found["path"] for found in each["data_files"]}
            files = sorted(folder.glob(paths[split]))
            assert files
            return [row for file in files for row in read(file)]
    raise AssertionError(f"no config {config}")


def read(file: Path) -> list[dict[str, Any]]:
    if file.suffix == ".parquet":
        return pq.read_table(file).to_pylist()
    data = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    if ".jsonl" in file.name:
        return [json.loads(line) for line in data.decode().split("\n") if line]
    lines = [line.split("\t") for line in data.decode().splitlines()]
    return [dict(zip(lines[0], line, strict=True)) for line in lines[1:]]


def test_the_layouts_of_ms_marco_hold_the_same(english: Content, tmp_path: Path) -> None:
    folder = lay_out(tmp_path, EN, "english")
    passages = [(key, text) for key, _, text in english.passages]
    mteb = rows(folder / "mteb", "corpus", "corpus")
    assert [(row["_id"], row["text"]) for row in mteb] == passages
    assert set(mteb[0]) == {"_id", "title", "text"}
    corpus = rows(folder / "corpus", "passage", "train")
    assert [(row["pid"], row["text"]) for row in corpus] == passages
    raw = (folder / "raw" / "collection.tsv").read_text(encoding="utf-8").split("\n")[:-1]
    assert [tuple(line.split("\t")) for line in raw] == passages
    pairs = msmarco.relevant(english, "train")
    judged = rows(folder / "mteb", "default", "train")
    assert [(row["query-id"], row["corpus-id"]) for row in judged] == pairs
    assert {row["score"] for row in judged} == {1.0}
    lines = (folder / "raw" / "qrels.train.tsv").read_text().splitlines()
    assert [tuple(line.split("\t")) for line in lines] == [(q, "0", p, "1") for q, p in pairs]
    new = rows(folder / "new", "default", "train")
    assert {(row["query_id"], row["positive_id"]) for row in new} < set(pairs)
    assert set(rows(folder / "bm25", "triplet", "train")[0]) == {"query", "positive", "negative"}
    assert {row["score"] for row in rows(folder / "mteb", "default", "test")} == {
        0.0,
        1.0,
        2.0,
        3.0,
    }


def test_line_ends_and_marks_stand_where_they_are_promised(tmp_path: Path) -> None:
    folder = lay_out(tmp_path, EN, "english")
    assert (folder / "raw" / "queries.train.tsv").read_bytes().startswith(b"\xef\xbb\xbf")
    assert b"\r\n" in (folder / "raw" / "queries.dev.small.tsv").read_bytes()
    assert (folder / "t2" / "data" / "collection.tsv").read_bytes().startswith(b"\xef\xbb\xbfpid\t")
    with pytest.raises(UnicodeDecodeError):
        (folder / "t2" / "data" / "collection.tsv").read_text(encoding="utf-8")
    assert b"\r\n" in (folder / "beir" / "qrels" / "train.tsv").read_bytes()


def test_beir_as_repositories_and_as_folders(english: Content, tmp_path: Path) -> None:
    folder = lay_out(tmp_path, EN, "english")
    corpus = rows(folder / "BeIR" / "nq", "corpus", "corpus")
    assert (
        corpus == read(folder / "beir" / "corpus.jsonl") == read(folder / "gz" / "corpus.jsonl.gz")
    )
    assert (folder / "BeIR" / "nq" / "corpus" / "corpus-00000-of-00001.parquet").is_file()
    found = rows(folder / "BeIR" / "nq-qrels", "default", "validation")
    assert list(found[0]) == ["query-id", "corpus-id", "score"]
    assert [(r["query-id"], r["corpus-id"]) for r in found] == msmarco.relevant(english, "dev")
    assert set(rows(folder / "nano", "qrels", "train")[0]) == {"query-id", "corpus-id"}


def test_t2ranking_has_headers_and_four_grades(chinese: Content, tmp_path: Path) -> None:
    t2ranking.repository(tmp_path, chinese)
    data = tmp_path / "data"
    heads = {
        path.name: path.read_bytes().split(b"\n")[0].strip(b"\xef\xbb\xbf\r").decode()
        for path in data.iterdir()
    }
    assert heads["collection.tsv"] == "pid\ttext"
    assert heads["queries.train.tsv"] == heads["queries.test.tsv"] == "qid\ttext"
    assert heads["qrels.train.tsv"] == "qid\t-\tpid\trel"
    assert heads["qrels.retrieval.train.tsv"] == "qid\tpid"
    assert heads["train.mined.tsv"] == "qid\tpid\tindex\tscore"
    graded = read(data / "qrels.train.tsv")
    assert {row["rel"] for row in graded} == {"0", "1", "2", "3"}
    picked = read(data / "qrels.retrieval.train.tsv")
    assert [(r["qid"], r["pid"]) for r in graded if int(r["rel"]) > 1] == [
        (r["qid"], r["pid"]) for r in picked
    ]
    assert not (data / "qrels.test.tsv").exists()
    assert (tmp_path / "T2Ranking.py").is_file()
    assert chinese.passages[0][2][0] > "\u4e00"
