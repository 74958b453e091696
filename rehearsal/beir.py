"""BEIR collections: as folders, as the two repositories of the hub, and as one that mteb keeps."""

from __future__ import annotations

from pathlib import Path

from rehearsal import files
from rehearsal.content import Content
from rehearsal.msmarco import relevant

HEADER = ("query-id", "corpus-id", "score")
SPLITS = {"train": "train", "dev": "validation", "test": "test"}  # as the judgements are called


def folder(target: Path, content: Content, *, gz: bool = False) -> None:
    """The layout of the BEIR archives; gz: as the hub once kept it."""
    end = ".gz" if gz else ""
    files.jsonl(target / f"corpus.jsonl{end}", _corpus(content))
    files.jsonl(target / f"queries.jsonl{end}", _queries(content))
    for split in content.queries:
        rows = [(*pair, 1) for pair in relevant(content, split)]
        files.tsv(target / "qrels" / f"{split}.tsv", rows, header=HEADER, ends="\r\n")


def repositories(organisation: Path, name: str, content: Content) -> None:
    """`BeIR/<name>` (Parquet; configs corpus and queries) and `BeIR/<name>-qrels` (TSV)."""
    files.parquet(organisation / name / "corpus" / "corpus", _corpus(content))
    files.parquet(organisation / name / "queries" / "queries", _queries(content))
    configs = {part: {part: f"{part}/{part}-*"} for part in ("corpus", "queries")}
    files.card(organisation / name, configs)
    found = {}
    for split in content.queries:
        rows = [(*pair, 1) for pair in relevant(content, split)]
        file = f"{SPLITS[split]}.tsv"
        files.tsv(organisation / f"{name}-qrels" / file, rows, header=HEADER)
        found[SPLITS[split]] = file
    files.card(organisation / f"{name}-qrels", {"default": found})


def nano(target: Path, content: Content) -> None:
    """`zeta-alpha-ai/Nano...`: Parquet; configs corpus, queries and qrels, each with a split train."""
    corpus = [{"_id": key, "text": text} for key, _, text in content.passages]
    qrels = [{"query-id": q, "corpus-id": p} for q, p in relevant(content, "test")]
    parts = {"corpus": corpus, "queries": _queries(content), "qrels": qrels}
    for part, rows in parts.items():
        files.parquet(target / part / "train", rows)
    files.card(target, {part: {"train": f"{part}/train-*"} for part in parts})


def _corpus(content: Content) -> list[dict[str, str]]:
    return [{"_id": key, "title": title, "text": text} for key, title, text in content.passages]


def _queries(content: Content) -> list[dict[str, str]]:
    every = [query for queries in content.queries.values() for query in queries]
    return [{"_id": key, "text": text} for key, text in every]
