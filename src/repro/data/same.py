"""Which of many texts are the same, in 16 bytes each: by 64 bits of a digest, then by themselves."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterable, Iterator

import numpy as np


def digest(text: str) -> int:
    """64 bits that stand for `text`; two texts in 18 quintillion share theirs by chance."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def digests(texts: Iterable[str], count: int) -> np.ndarray:
    """uint64 [count]: the digest of each of `texts`."""
    return np.fromiter(map(digest, texts), np.uint64, count)


def repeats(
    digest: np.ndarray, order: np.ndarray, value: Callable[[int], Hashable]
) -> Iterator[list[int]]:
    """The rows, rising, of each value that comes more than once.

    `digest` uint64 [n], `order` its stable argsort.  Where digests agree, `value(row)` decides.
    """
    same = digest[order[1:]] == digest[order[:-1]]
    edge = np.diff(np.concatenate([[0], same.astype(np.int8), [0]]))
    starts, ends = np.flatnonzero(edge == 1).tolist(), np.flatnonzero(edge == -1).tolist()
    for start, end in zip(starts, ends, strict=True):
        by_value: dict[Hashable, list[int]] = {}
        for row in order[start : end + 1].tolist():
            by_value.setdefault(value(row), []).append(row)
        yield from (rows for rows in by_value.values() if len(rows) > 1)


def firsts(digest: np.ndarray, value: Callable[[int], Hashable]) -> np.ndarray:
    """int64 [n]: for each row the first one of the same value."""
    first = np.arange(len(digest))
    for rows in repeats(digest, np.argsort(digest, kind="stable"), value):
        first[rows] = rows[0]
    return first


def firsts_among(first: np.ndarray, among: np.ndarray) -> np.ndarray:
    """int64 [n]: for each row in `among` (bool [n]) the first one there of the same value, else itself.

    first: what `firsts` gives.
    """
    index = np.flatnonzero(among)
    head = np.full(len(first), len(first))
    np.minimum.at(head, first[index], index)
    return np.where(among, head[first], np.arange(len(first)))
