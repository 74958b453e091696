"""A collection: queries, passages and the judged pairs between them, cleaned by one stated rule."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from repro.data import arrays, column
from repro.data.column import Coded, Column
from repro.data.passages import PassageReader
from repro.data.text import clean


@dataclass(frozen=True)
class Collection:
    """Texts and judgements; a query or passage is known by its index in these sequences.

    Queries lie in memory; passages, their ids and groups on disk (`repro.data.column`), unless a
    small collection was made by hand.  `pairs` is int32 [n_pairs, 2]: query index, passage index.
    `groups` names for each passage what it belongs to (a cloud service, a package), "" where
    unknown.  `dropped` and `repaired` count what the reading did, by reason.  `digest` is the sha256
    of the content alone (ids, texts, groups, pairs, negatives), whatever file it came from.  `part`
    int8 [n_pairs] says in which of `parts` (train, dev, ...) a pair was judged, where the source
    tells; official splits are drawn by it.
    """

    name: str
    language: str
    query_ids: list[str]
    queries: list[str]
    passage_ids: Sequence[str]
    passages: Sequence[str]
    pairs: np.ndarray
    groups: Sequence[str]
    # int32 [n, 2]: query index, and a passage that was found not to answer it (a hard negative).
    negatives: np.ndarray = field(default_factory=lambda: np.empty((0, 2), np.int32))
    dropped: dict[str, int] = field(default_factory=dict)
    repaired: dict[str, int] = field(default_factory=dict)
    digest: str = ""
    part: np.ndarray | None = None
    parts: tuple[str, ...] = ()

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
        stays = pair & passage[self.pairs[:, 1]]
        kept = self.pairs[stays]
        query = np.zeros(len(self.queries), bool)
        query[kept[:, 0]] = True
        new_query, new_passage = np.cumsum(query) - 1, np.cumsum(passage) - 1
        pairs = np.stack([new_query[kept[:, 0]], new_passage[kept[:, 1]]], axis=1).astype(np.int32)
        still = self.negatives[query[self.negatives[:, 0]] & passage[self.negatives[:, 1]]]
        if lost := len(self.negatives) - len(still):
            name = "negative of a dropped query or passage"
            dropped = {**dropped, name: self.dropped.get(name, 0) + lost}
        negatives = np.stack([new_query[still[:, 0]], new_passage[still[:, 1]]], axis=1)
        return seal(
            replace(
                self,
                query_ids=list(column.take(self.query_ids, query)),
                queries=list(column.take(self.queries, query)),
                passage_ids=column.take(self.passage_ids, passage),
                passages=column.take(self.passages, passage),
                groups=column.take(self.groups, passage),
                pairs=pairs,
                negatives=negatives.astype(np.int32),
                part=None if self.part is None else self.part[stays],
                dropped={**self.dropped, **dropped},
            )
        )

    def save(self, folder: Path) -> None:
        """Write passages as columns, queries and pairs as Parquet, and the rest as JSON."""
        folder.mkdir(parents=True, exist_ok=True)
        queries = {"id": self.query_ids, "text": self.queries}
        texts = {key: pa.array(values, pa.large_string()) for key, values in queries.items()}
        pq.write_table(pa.table(texts), folder / "queries.parquet", compression="zstd")
        links = {"pairs": self.pairs} | (
            {"negatives": self.negatives} if self.negatives.size else {}
        )
        for name, rows in links.items():
            ends = {"query": pa.array(rows[:, 0]), "passage": pa.array(rows[:, 1])}
            if name == "pairs" and self.part is not None:
                ends["part"] = pa.array(self.part)
            pq.write_table(pa.table(ends), folder / f"{name}.parquet", compression="zstd")
        column.save(folder, "passage_ids", self.passage_ids)
        column.save(folder, "passages", self.passages)
        names, codes = column.coded(self.groups)
        arrays.save(folder, {"groups": codes.astype(np.int32)})
        about = {key: getattr(self, key) for key in _ABOUT} | self.counts | {"groups": names}
        if self.parts:
            about["parts"] = self.parts
        text = json.dumps(about, indent=1, ensure_ascii=False) + "\n"
        (folder / "collection.json").write_text(text, encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> Collection:
        """The collection that `save` wrote."""
        about = json.loads((folder / "collection.json").read_text(encoding="utf-8"))
        queries = _table(folder, "queries")
        ids, passages, groups = _load_passages(folder, about)
        some = (folder / "negatives.parquet").exists()
        return cls(
            query_ids=queries["id"].to_pylist(),
            queries=queries["text"].to_pylist(),
            pairs=_links(folder, "pairs"),
            part=_part(folder),
            parts=tuple(about.get("parts", ())),
            negatives=_links(folder, "negatives") if some else np.empty((0, 2), np.int32),
            passage_ids=ids,
            passages=passages,
            groups=groups,
            **{key: about[key] for key in _ABOUT},
        )


_ABOUT = ("name", "language", "dropped", "repaired", "digest")


@dataclass
class Records:
    """What a source read, not yet cleaned: rows in the order in which they stand there."""

    queries: Iterable[tuple[str, str]]  # id, text
    passages: Iterable[tuple[str, str, str]]  # id, text, group
    # Query id, passage id, and the part in which they are judged where there are parts: the pairs
    # judged relevant.
    judgements: Iterable[tuple[str, str] | tuple[str, str, str]]
    negatives: Iterable[tuple[str, str]] = ()  # query id, passage id: found not to be relevant
    dropped: Counter[str] = field(default_factory=Counter)
    repaired: Counter[str] = field(default_factory=Counter)
    # In order of the ids, so that equal content is an equal collection whatever file it stood in.
    by_id: bool = False


def assemble(name: str, language: str, records: Records, folder: Path | None = None) -> Collection:
    """The collection of `records`: cleaned, without empty texts, repeated ids or unjudged queries.

    Passages without a judgement stay (they are the corpus).  Everything left out is counted.  They
    go through a nameless file in `folder` (where temporary files lie, if None), not through memory.
    """
    dropped, repaired = records.dropped, records.repaired
    reader = PassageReader(folder)
    for identifier, text, group in records.passages:
        reader.add(identifier, clean(text, repaired), group)
    passages = reader.finish(dropped)
    queries: dict[str, str] = {}
    for identifier, text in records.queries:
        _add(queries, identifier, clean(text, repaired), dropped)
    if records.by_id:
        passages = passages.in_order(_place)
        queries = {identifier: queries[identifier] for identifier in sorted(queries, key=_place)}
    judgements, against = list(records.judgements), list(records.negatives)
    query_index = {identifier: index for index, identifier in enumerate(queries)}
    passage_index = passages.places(row[1] for row in (*judgements, *against))
    pairs: dict[tuple[int, int], str] = {}
    for query, passage, *part in judgements:
        if query not in query_index:
            dropped["judgement of a missing or dropped query"] += 1
        elif passage not in passage_index:
            dropped["judgement of a missing or dropped passage"] += 1
        elif (query_index[query], passage_index[passage]) in pairs:
            dropped["repeated judgement"] += 1
        else:
            pairs[query_index[query], passage_index[passage]] = part[0] if part else ""
    parts = tuple(dict.fromkeys(pairs.values()))
    order = sorted(pairs) if records.by_id else list(pairs)
    negatives = {
        (query_index[query], passage_index[passage]): None
        for query, passage in against
        if query in query_index and passage in passage_index
    }
    if wrong := negatives.keys() & pairs:
        dropped["negative that is judged relevant"] += len(wrong)
    others = sorted(negatives.keys() - pairs)
    whole = Collection(
        name=name,
        language=language,
        query_ids=list(queries),
        queries=list(queries.values()),
        passage_ids=passages.ids,
        passages=passages.texts,
        groups=passages.groups,
        pairs=np.array(order, np.int32).reshape(-1, 2),
        part=np.array([parts.index(pairs[pair]) for pair in order], np.int8)
        if any(parts)
        else None,
        parts=parts if any(parts) else (),
        negatives=np.array(others, np.int32).reshape(-1, 2),
        repaired=dict(sorted(repaired.items())),
    )
    unjudged = len(queries) - len(np.unique(whole.pairs[:, 0]))
    counts = dict(sorted((dropped + Counter({"query without a judgement": unjudged})).items()))
    return whole.keep(np.ones(len(passages), bool), np.ones(len(pairs), bool), counts)


def seal(collection: Collection) -> Collection:
    """`collection` with the digest of its content."""
    total = hashlib.sha256()
    for name in ("query_ids", "queries", "passage_ids", "passages", "groups"):
        values: Sequence[str] = getattr(collection, name)
        total.update(f"{name}\x1f{len(values)}\x1e".encode())
        for value in values:
            data = value.encode()
            total.update(len(data).to_bytes(8, "little") + data)
    total.update(np.ascontiguousarray(collection.pairs, dtype="<i4").tobytes())
    if collection.negatives.size:
        total.update(b"negatives\x1e")
        total.update(np.ascontiguousarray(collection.negatives, dtype="<i4").tobytes())
    return replace(collection, digest=total.hexdigest())


def _add(rows: dict[str, str], identifier: str, text: str, dropped: Counter[str]) -> None:
    if not identifier:
        dropped["query without an id"] += 1
    elif identifier in rows:
        dropped["query with a repeated id"] += 1
    elif not text:
        dropped["query with an empty text"] += 1
    else:
        rows[identifier] = text


def _place(identifier: str) -> tuple[str, str]:
    """The key of an order in which numbers in an id count by value: p2 comes before p10."""
    return _DIGITS.sub(lambda found: found[0].zfill(20), identifier), identifier


_DIGITS = re.compile("[0-9]+")


def _table(folder: Path, name: str) -> pa.Table:
    # not pq.read_table: its dataset reader needs threads, and waits for ever where none can be started
    with pq.ParquetFile(folder / f"{name}.parquet") as file:
        return file.read(use_threads=False)


def _links(folder: Path, name: str) -> np.ndarray:
    table = _table(folder, name)
    return np.stack([table["query"].to_numpy(), table["passage"].to_numpy()], axis=1)


def _part(folder: Path) -> np.ndarray | None:
    table = _table(folder, "pairs")
    return table["part"].to_numpy() if "part" in table.column_names else None


def _load_passages(
    folder: Path, about: dict[str, Any]
) -> tuple[Sequence[str], Sequence[str], Sequence[str]]:
    """Ids, texts and groups."""
    if (folder / "passages.parquet").exists():  # stored before passages were columns: in memory
        table = _table(folder, "passages")
        ids, texts, groups = (table[name].to_pylist() for name in ("id", "text", "group"))
        return ids, texts, groups
    return (
        Column.load(folder, "passage_ids"),
        Column.load(folder, "passages"),
        Coded(about["groups"], arrays.load(folder, "groups")),
    )
