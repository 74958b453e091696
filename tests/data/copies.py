"""Local copies of hub repositories, small but laid out like the ones that the dataset files name.

They hold the oddities seen in the wild: mojibake, empty passages, ids of queries and passages that
collide, judged ids that are nowhere, CRLF, a byte order mark, four grades, several queries on one
passage, ids that are numbers in one table and texts in another.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import tiny

MOJIBAKE = "the client\u00e2\u20ac\u2122s vel dor"
Rows = Sequence[Mapping[str, Any]]


class Content:
    """`n` training pairs and `n_test` of another part, over some more passages.

    Ids are running numbers from 0, for queries and passages alike.  Passage 1 is empty though judged,
    passage 2 is mojibake, and the last passages are judged by nobody.  Queries 3 and 4 share passage 3.
    """

    def __init__(self, n: int = 260, n_test: int = 60, unjudged: int = 160) -> None:
        texts = tiny.pair_texts(n + n_test + unjudged)
        self.passages = [passage for _, passage in texts]
        self.passages[1], self.passages[2] = "", MOJIBAKE
        self.queries = {
            "train": [(i, texts[i][0]) for i in range(n)],
            "test": [(i, texts[i][0]) for i in range(n, n + n_test)],
        }
        self.relevant = {
            part: [(i, i) for i, _ in queries] for part, queries in self.queries.items()
        }
        self.relevant["train"][4] = (4, 3)
        self.absent = [(0, 10**6), (10**6, 0)]  # judged, but no such passage, no such query


def jsonl(path: Path, rows: Rows) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    data = text.encode()
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)


def parquet(path: Path, rows: Rows) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist([dict(row) for row in rows]), path)


def tsv(path: Path, header: str, rows: Sequence[Sequence[Any]], end: str = "\n") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [header.replace(",", "\t"), *("\t".join(map(str, row)) for row in rows)]
    path.write_bytes("".join(line + end for line in lines).encode())


def card(folder: Path, configs: Mapping[str, Mapping[str, str]]) -> None:
    """README.md with `configs:`: config -> split -> path."""
    text = "---\nlicense: other\nconfigs:\n"
    for name, splits in configs.items():
        text += f"- config_name: {name}\n  data_files:\n"
        text += "".join(f"  - split: {split}\n    path: {path}\n" for split, path in splits.items())
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "README.md").write_text(f"{text}---\n# A copy\n", encoding="utf-8")


def mteb(folder: Path, content: Content, parts: Mapping[str, str]) -> None:
    """The layout of mteb/msmarco: JSONL, ids as texts, judgements with scores as floats.

    parts: the name of a split there -> train or test of `content`.
    """
    corpus = [{"_id": str(i), "title": "", "text": text} for i, text in enumerate(content.passages)]
    every = [{"_id": str(i), "text": text} for part in content.queries.values() for i, text in part]
    jsonl(folder / "corpus.jsonl", corpus)
    jsonl(folder / "queries.jsonl", every)
    for split, part in parts.items():
        pairs = [*content.relevant[part], *content.absent]
        rows = [{"query-id": str(q), "corpus-id": str(p), "score": 1.0} for q, p in pairs]
        rows.append({"query-id": str(pairs[0][0]), "corpus-id": "9", "score": 0.0})
        jsonl(folder / f"qrels/{split}.jsonl", rows)
    card(
        folder,
        {
            "default": {split: f"qrels/{split}.jsonl" for split in parts},
            "corpus": {"corpus": "corpus.jsonl"},
            "queries": {"queries": "queries.jsonl"},
        },
    )


def beir_folder(folder: Path, content: Content) -> None:
    """The layout of the BEIR archives."""
    mteb(folder, content, {})
    for part, pairs in content.relevant.items():
        rows = [(*pair, 1) for pair in [*pairs, *content.absent]]
        tsv(folder / f"qrels/{part}.tsv", "query-id,corpus-id,score", rows)


def t2ranking(folder: Path, content: Content) -> None:
    """The layout of THUIR/T2Ranking: TSV with a header, a loading script that must not be run."""
    data = folder / "data"
    tsv(data / "collection.tsv", "pid,text", list(enumerate(content.passages)))
    collection = (data / "collection.tsv").read_bytes()
    (data / "collection.tsv").write_bytes(b"\xef\xbb\xbf" + collection)
    for split, part, end in (("train", "train", "\n"), ("dev", "test", "\r\n")):
        tsv(data / f"queries.{split}.tsv", "qid,text", content.queries[part], end)
        pairs = [*content.relevant[part], *content.absent]
        tsv(data / f"qrels.retrieval.{split}.tsv", "qid,pid", pairs, end)
        graded = [(q, 0, p, 2 + i % 2) for i, (q, p) in enumerate(pairs)]
        graded += [(pairs[0][0], 0, 7, 0), (pairs[0][0], 0, 8, 1)]
        tsv(data / f"qrels.{split}.tsv", "qid,-,pid,rel", graded, end)
    (folder / "T2Ranking.py").write_text("raise SystemExit('a loading script was run')\n")
    (folder / "README.md").write_text("---\nlicense: apache-2.0\n---\n")


def beir(mirror: Path, name: str, content: Content) -> None:
    """BeIR/<name> in Parquet, converted on its own branch, and BeIR/<name>-qrels in TSV."""
    corpus = [{"_id": str(i), "title": "", "text": t} for i, t in enumerate(content.passages)]
    every = [{"_id": str(i), "text": t} for part in content.queries.values() for i, t in part]
    converted = mirror / f"BeIR/{name}@refs/convert/parquet"
    half = len(corpus) // 2
    parquet(converted / "corpus/corpus/0000.parquet", corpus[:half])
    parquet(converted / "corpus/corpus/0001.parquet", corpus[half:])
    parquet(converted / "queries/queries/0000.parquet", every)
    qrels = mirror / f"BeIR/{name}-qrels"
    for split, part in (("train", "train"), ("test", "test")):
        rows = [(*pair, 1) for pair in content.relevant[part]]
        tsv(qrels / f"{split}.tsv", "query-id,corpus-id,score", rows)
    card(qrels, {"default": {split: f"{split}.tsv" for split in ("train", "test")}})


def sentence_transformers(folder: Path, content: Content) -> None:
    """The layout of sentence-transformers/msmarco-corpus: Parquet, ids as numbers, no text for nothing."""
    passages = [{"pid": i, "text": text or None} for i, text in enumerate(content.passages)]
    queries = [{"qid": i, "text": text} for part in content.queries.values() for i, text in part]
    parquet(folder / "passage/train-00000-of-00002.parquet", passages[:100])
    parquet(folder / "passage/train-00001-of-00002.parquet", passages[100:])
    parquet(folder / "query/train-00000-of-00001.parquet", queries)
    card(folder, {name: {"train": f"{name}/train-*"} for name in ("passage", "query")})
