"""A collection: queries, passages and the judged pairs between them, cleaned by one stated rule."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from repro.data.text import clean


@dataclass(frozen=True)
class Collection:
    """Texts and judgements; a query or passage is known by its index in these lists.

    `pairs` is int32 [n_pairs, 2]: query index, passage index.  `groups` names for each passage
    what it belongs to (a cloud service, a package), "" where unknown.  `dropped` and `repaired`
    count what the reading did, by reason.  `digest` is the sha256 of the content alone (ids, texts,
    groups, pairs), whatever file it came from.
    """

    name: str
    language: str
    query_ids: list[str]
    queries: list[str]
    passage_ids: list[str]
    passages: list[str]
    pairs: np.ndarray
    groups: list[str]
    dropped: dict[str, int] = field(default_factory=dict)
    repaired: dict[str, int] = field(default_factory=dict)
    digest: str = ""

    @property
    def counts(self) -> dict[str, int]:
        """How many queries, passages and pairs there are."""
        return {
            "queries": len(self.queries),
            "passages": len(self.passages),
            "pairs": len(self.pairs),
        }

    def keep(self, passage: np.ndarray, pair: np.ndarray, dropped: dict[str, int]) -> Collection:
        """The part with `passage` (bool [n_passages]) and `pair` (bool [n_pairs]) true.

        Pairs of passages that go, and queries without a pair, go too; `dropped` is added to the
        counts.
        """
        kept = self.pairs[pair & passage[self.pairs[:, 1]]]
        query = np.zeros(len(self.queries), bool)
        query[kept[:, 0]] = True
        new_query, new_passage = np.cumsum(query) - 1, np.cumsum(passage) - 1
        pairs = np.stack([new_query[kept[:, 0]], new_passage[kept[:, 1]]], axis=1).astype(np.int32)
        return seal(
            replace(
                self,
                query_ids=_take(self.query_ids, query),
                queries=_take(self.queries, query),
                passage_ids=_take(self.passage_ids, passage),
                passages=_take(self.passages, passage),
                groups=_take(self.groups, passage),
                pairs=pairs,
                dropped={**self.dropped, **dropped},
            )
        )

    def save(self, folder: Path) -> None:
        """Write queries, passages and pairs as Parquet and the rest as JSON."""
        folder.mkdir(parents=True, exist_ok=True)
        tables = {
            "queries": {"id": self.query_ids, "text": self.queries},
            "passages": {"id": self.passage_ids, "text": self.passages, "group": self.groups},
        }
        for name, columns in tables.items():
            texts = {key: pa.array(column, pa.large_string()) for key, column in columns.items()}
            pq.write_table(pa.table(texts), folder / f"{name}.parquet", compression="zstd")
        pairs = {"query": pa.array(self.pairs[:, 0]), "passage": pa.array(self.pairs[:, 1])}
        pq.write_table(pa.table(pairs), folder / "pairs.parquet", compression="zstd")
        about = {key: getattr(self, key) for key in _ABOUT} | self.counts
        text = json.dumps(about, indent=1, ensure_ascii=False) + "\n"
        (folder / "collection.json").write_text(text, encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> Collection:
        """The collection that `save` wrote."""
        about = json.loads((folder / "collection.json").read_text(encoding="utf-8"))
        queries, passages, pairs = (
            pq.read_table(folder / f"{name}.parquet", use_threads=False)
            for name in ("queries", "passages", "pairs")
        )
        return cls(
            query_ids=queries["id"].to_pylist(),
            queries=queries["text"].to_pylist(),
            passage_ids=passages["id"].to_pylist(),
            passages=passages["text"].to_pylist(),
            groups=passages["group"].to_pylist(),
            pairs=np.stack([pairs["query"].to_numpy(), pairs["passage"].to_numpy()], axis=1),
            **{key: about[key] for key in _ABOUT},
        )


_ABOUT = ("name", "language", "dropped", "repaired", "digest")


@dataclass
class Records:
    """What a source read, not yet cleaned: rows in the order in which they stand there."""

    queries: Iterable[tuple[str, str]]  # id, text
    passages: Iterable[tuple[str, str, str]]  # id, text, group
    judgements: Iterable[tuple[str, str]]  # query id, passage id: the pairs judged relevant
    dropped: Counter[str] = field(default_factory=Counter)
    repaired: Counter[str] = field(default_factory=Counter)


def assemble(name: str, language: str, records: Records) -> Collection:
    """The collection of `records`: cleaned, without empty texts, repeated ids or unjudged queries.

    Passages without a judgement stay (they are the corpus).  Everything left out is counted.
    """
    dropped, repaired = records.dropped, records.repaired
    passages: dict[str, tuple[str, str]] = {}
    for identifier, text, group in records.passages:
        _add(passages, "passage", identifier, (clean(text, repaired), group), dropped)
    queries: dict[str, tuple[str, str]] = {}
    for identifier, text in records.queries:
        _add(queries, "query", identifier, (clean(text, repaired), ""), dropped)
    query_index = {identifier: index for index, identifier in enumerate(queries)}
    passage_index = {identifier: index for index, identifier in enumerate(passages)}
    pairs: dict[tuple[int, int], None] = {}
    for query, passage in records.judgements:
        if query not in query_index:
            dropped["judgement of a missing or dropped query"] += 1
        elif passage not in passage_index:
            dropped["judgement of a missing or dropped passage"] += 1
        elif (query_index[query], passage_index[passage]) in pairs:
            dropped["repeated judgement"] += 1
        else:
            pairs[query_index[query], passage_index[passage]] = None
    whole = Collection(
        name=name,
        language=language,
        query_ids=list(queries),
        queries=[text for text, _ in queries.values()],
        passage_ids=list(passages),
        passages=[text for text, _ in passages.values()],
        groups=[group for _, group in passages.values()],
        pairs=np.array(list(pairs), np.int32).reshape(-1, 2),
        repaired=dict(sorted(repaired.items())),
    )
    unjudged = len(queries) - len(np.unique(whole.pairs[:, 0]))
    counts = dict(sorted((dropped + Counter({"query without a judgement": unjudged})).items()))
    return whole.keep(np.ones(len(passages), bool), np.ones(len(pairs), bool), counts)


def seal(collection: Collection) -> Collection:
    """`collection` with the digest of its content."""
    total = hashlib.sha256()
    columns = ("query_ids", "queries", "passage_ids", "passages", "groups")
    for column in columns:
        values: Sequence[str] = getattr(collection, column)
        total.update(f"{column}\x1f{len(values)}\x1e".encode())
        for value in values:
            data = value.encode()
            total.update(len(data).to_bytes(8, "little") + data)
    total.update(np.ascontiguousarray(collection.pairs, dtype="<i4").tobytes())
    return replace(collection, digest=total.hexdigest())


def _add(
    rows: dict[str, tuple[str, str]],
    what: str,
    identifier: str,
    row: tuple[str, str],
    dropped: Counter[str],
) -> None:
    if not identifier:
        dropped[f"{what} without an id"] += 1
    elif identifier in rows:
        dropped[f"{what} with a repeated id"] += 1
    elif not row[0]:
        dropped[f"{what} with an empty text"] += 1
    else:
        rows[identifier] = row


def _take(values: list[str], keep: np.ndarray) -> list[str]:
    return [value for value, kept in zip(values, keep, strict=True) if kept]
