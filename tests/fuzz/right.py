"""What must hold of anything that was read: simple second readers, and properties of collections."""

from __future__ import annotations

import json
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from repro.data.collection import Collection, Records, assemble
from repro.data.text import clean


def sampled(data: Any, *, of: int = 4) -> bool:
    """Whether this input is one of the few (one of four) on which what takes long is done as well."""
    return zlib.crc32(data if isinstance(data, bytes) else repr(data).encode()) % of == 0


def assembled(records: Records, folder: Path) -> Collection:
    """The collection of `records`, after what holds of every collection was asserted."""
    found = assemble("fuzz", "en", records, folder)
    for ids, texts in ((found.query_ids, found.queries), (found.passage_ids, found.passages)):
        assert len(ids) == len(texts)
        assert len(set(ids)) == len(ids)
        assert all(ids)
        assert all(text and clean(text, Counter()) == text for text in texts)
    assert len(found.groups) == len(found.passages)
    counts = [len(found.queries), len(found.passages)]
    for links in (found.pairs, found.negatives):
        assert links.dtype == np.int32
        assert ((links >= 0) & (links < counts)).all()
        assert len(set(map(tuple, links.tolist()))) == len(links)
    assert len(found.digest) == 64
    return found


def rows(records: Records) -> Records:
    """`records`, all of them read, of texts alone."""
    queries, passages = list(records.queries), list(records.passages)
    judgements, negatives = list(records.judgements), list(records.negatives)
    for row in (*queries, *passages, *judgements, *negatives):
        assert all(isinstance(text, str) for text in row)
        "".join(row).encode()
    counts = records.dropped, records.repaired
    return Records(queries, passages, judgements, negatives, *counts, by_id=records.by_id)


def lines(data: bytes, encoding: str = "utf-8") -> list[str]:
    """The lines that are not blank, as simply as they can be had."""
    rows = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    texts = [row.decode(encoding, "replace") for row in rows]
    texts = [t[:-1] if t.endswith("\r") and i < len(rows) - 1 else t for i, t in enumerate(texts)]
    return [text for text in texts if text.strip()]


def objects(data: bytes) -> list[dict[str, Any]]:
    """The objects of JSON lines, halves of characters replaced."""
    return [_whole(json.loads(line)) for line in lines(data)]


def _whole(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_whole(each) for each in value]
    return {key: _whole(each) for key, each in value.items()} if isinstance(value, dict) else value
