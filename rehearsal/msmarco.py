"""MS MARCO passage in the layouts in which it is found; all hold the same passages, queries and pairs.

Source of the layouts: the cards of the repositories named here, and the files of the track itself.
"""

from __future__ import annotations

from pathlib import Path

from rehearsal import files
from rehearsal.content import Content

DEV, TEST = "dev", "test"  # of the queries: dev.small, and the graded ones of TREC


def relevant(content: Content, split: str) -> list[tuple[str, str]]:
    """Query and passage of each judgement that says relevant."""
    return [(query, passage) for query, passage, grade in content.judgements[split] if grade > 1]


def mteb(folder: Path, content: Content, *, title: bool = True) -> None:
    """`mteb/msmarco`: JSON lines and a card; configs default (judgements), corpus, queries."""
    rows = [
        {"_id": identifier, **({"title": name} if title else {}), "text": text}
        for identifier, name, text in content.passages
    ]
    files.jsonl(folder / "corpus.jsonl", rows)
    every = [query for queries in content.queries.values() for query in queries]
    files.jsonl(folder / "queries.jsonl", [{"_id": key, "text": text} for key, text in every])
    for split in content.queries:
        graded = split == TEST
        judged = content.judgements[split] if graded else relevant(content, split)
        found = [
            {"query-id": q, "corpus-id": p, "score": float(grade[0]) if grade else 1.0}
            for q, p, *grade in judged
        ]
        files.jsonl(folder / "qrels" / f"{split}.jsonl", found)
    files.card(
        folder,
        {
            "default": {split: f"qrels/{split}.jsonl" for split in content.queries},
            "corpus": {"corpus": "corpus.jsonl"},
            "queries": {"queries": "queries.jsonl"},
        },
    )


def sentence_transformers(folder: Path, content: Content) -> None:
    """`sentence-transformers/msmarco-corpus`: Parquet; configs passage (pid, text), query (qid, text)."""
    passages = [{"pid": key, "text": text} for key, _, text in content.passages]
    every = [query for queries in content.queries.values() for query in queries]
    files.parquet(folder / "passage" / "train", passages, shards=4)
    files.parquet(folder / "query" / "train", [{"qid": key, "text": text} for key, text in every])
    configs = {name: {"train": f"{name}/train-*"} for name in ("passage", "query")}
    files.card(folder, configs)


def tevatron(folder: Path, content: Content) -> None:
    """`Tevatron/msmarco-passage-new`: Parquet; query_id, query, positive_id, one row a query."""
    for split, shards in (("train", 2), (DEV, 1)):
        text = dict(content.queries[split])
        pairs = [(query, passage) for query, passage in relevant(content, split) if query in text]
        first = dict(reversed(pairs))
        rows = [{"query_id": q, "query": text[q], "positive_id": first[q]} for q in first]
        files.parquet(folder / "data" / split, rows[::-1], shards=shards)
    files.card(folder, {"default": {split: f"data/{split}-*" for split in ("train", DEV)}})


def triplets(folder: Path, content: Content) -> None:
    """`sentence-transformers/msmarco-bm25`: Parquet; triplets of texts, and of ids."""
    passage = {key: text for key, _, text in content.passages}
    text = dict(content.queries["train"])
    keys = list(passage)
    rows, ids = [], []
    for at, (query, positive) in enumerate(relevant(content, "train")):
        if query in text and positive in passage:
            negative = keys[at * 7919 % len(keys)]
            ids.append({"query": query, "positive": positive, "negative": negative})
            rows.append(
                {
                    "query": text[query],
                    "positive": passage[positive],
                    "negative": passage[negative],
                }
            )
    files.parquet(folder / "triplet" / "train", rows)
    files.parquet(folder / "triplet-ids" / "train", ids)
    configs = {name: {"train": f"{name}/train-*"} for name in ("triplet", "triplet-ids")}
    files.card(folder, configs, default="triplet")


def raw(folder: Path, content: Content) -> None:
    """The track's own files: no header, one passage or query a line; the dev queries with CRLF."""
    files.tsv(folder / "collection.tsv", ((key, text) for key, _, text in content.passages))
    files.tsv(folder / "queries.train.tsv", content.queries["train"], mark=True)
    files.tsv(folder / "queries.dev.small.tsv", content.queries[DEV], ends="\r\n")
    for split, name in (("train", "qrels.train.tsv"), (DEV, "qrels.dev.small.tsv")):
        pairs = relevant(content, split)
        files.tsv(folder / name, ((query, 0, passage, 1) for query, passage in pairs))
    graded = ((q, "Q0", p, grade) for q, p, grade in content.judgements[TEST])
    files.tsv(folder / "2019qrels-pass.txt", graded)
    files.tsv(folder / "msmarco-test2019-queries.tsv.gz", content.queries[TEST])
