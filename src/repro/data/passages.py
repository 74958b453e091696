"""Passages as they are read: written to disk one by one, and their ids found again in little memory.

An id is known by 64 bits of its digest; where two digests agree the ids themselves are compared, so
that nothing is left to chance.  In memory are about 50 bytes a passage while they are read (offsets
of ids and texts, group, digest, order), whatever the length of ids and texts.
"""

from __future__ import annotations

import array
import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from repro.data import same
from repro.data.column import Coded, Column, Spool

SORTED = 1 << 18  # ids sorted at once
BLOCK = 256  # ids of each sorted run that are held while the runs are merged


@dataclass(frozen=True)
class Passages:
    """What was read and kept.

    `digest` uint64 [n], rising, of the ids, and `row` int64 [n]: where each of them stands.
    """

    ids: Column
    texts: Column
    groups: Coded
    digest: np.ndarray
    row: np.ndarray

    def __len__(self) -> int:
        return len(self.ids)

    def places(self, wanted: Iterable[str]) -> dict[str, int]:
        """The index of each wanted id that is there."""
        names = list(dict.fromkeys(wanted))
        keys = same.digests(names, len(names))
        first = np.searchsorted(self.digest, keys).tolist()
        last = np.searchsorted(self.digest, keys, side="right").tolist()
        found = {}
        for name, start, end in zip(names, first, last, strict=True):
            for row in self.row[start:end].tolist():
                if self.ids[row] == name:
                    found[name] = row
        return found

    def in_order(self, key: Callable[[str], tuple[str, ...]]) -> Passages:
        """The passages in order of `key(id)`: parts are sorted, then merged from the disk."""
        if all(one <= other for one, other in pairwise(map(key, self.ids))):
            return self  # as the large collections are
        runs = [
            self._sorted(start, min(start + SORTED, len(self)), key)
            for start in range(0, len(self), SORTED)
        ]
        merged = heapq.merge(*(self._keyed(run, key) for run in runs))
        order = np.fromiter((row for _, row in merged), np.int64, len(self))
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        columns = self.ids.at(order), self.texts.at(order), self.groups.at(order)
        return Passages(*columns, self.digest, place[self.row])

    def _sorted(self, start: int, end: int, key: Callable[[str], tuple[str, ...]]) -> np.ndarray:
        keys = [key(identifier) for identifier in self.ids[start:end]]
        return start + np.array(sorted(range(len(keys)), key=keys.__getitem__), np.int64)

    def _keyed(
        self, run: np.ndarray, key: Callable[[str], tuple[str, ...]]
    ) -> Iterator[tuple[tuple[str, ...], int]]:
        for start in range(0, len(run), BLOCK):
            rows = run[start : start + BLOCK].tolist()
            yield from [(key(self.ids[row]), row) for row in rows]


class PassageReader:
    """Takes passages one by one; the first with an id that has a text is kept."""

    def __init__(self, folder: Path | None) -> None:
        self.ids, self.texts = Spool(folder), Spool(folder)
        self.digest, self.group = array.array("Q"), array.array("i")
        self.names: dict[str, int] = {}
        self.nameless = 0

    def add(self, identifier: str, text: str, group: str) -> None:
        """Take a passage; `text` is clean."""
        if not identifier:
            self.nameless += 1
            return
        self.ids.add(identifier)
        self.texts.add(text)
        self.digest.append(same.digest(identifier))
        self.group.append(self.names.setdefault(group, len(self.names)))

    def finish(self, dropped: Counter[str]) -> Passages:
        """What is kept; the others are counted in `dropped`, by reason."""
        ids, texts = self.ids.column(), self.texts.column()
        digest = np.frombuffer(self.digest, np.uint64)
        groups = Coded(list(self.names), np.frombuffer(self.group, np.int32))
        order = np.argsort(digest, kind="stable")
        keep = texts.lengths() > 0
        again = 0
        for rows in same.repeats(digest, order, ids.__getitem__):
            full = [place for place, row in enumerate(rows) if keep[row]]
            if (
                full
            ):  # what comes before the first with a text is empty, what comes after repeats it
                keep[rows[full[0] + 1 :]] = False
                again += len(rows) - full[0] - 1
        dropped["passage without an id"] += self.nameless
        dropped["passage with a repeated id"] += again
        dropped["passage with an empty text"] += int((~keep).sum()) - again
        order = order[keep[order]]
        row = (np.cumsum(keep) - 1)[order]
        return Passages(ids.keep(keep), texts.keep(keep), groups.keep(keep), digest[order], row)
