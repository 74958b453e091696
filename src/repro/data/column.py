"""Columns: texts that lie on disk and are used like a list, so that a corpus needs no memory.

    <name>_bytes.npy      uint8: the texts in UTF-8, one after another
    <name>_offsets.npy    int64 [n + 1]: where each begins, and the end

Texts are read when they are asked for (not mapped: what is mapped and was touched counts as
resident).  In memory are at most 8 bytes a text, and 8 more where some rows of a file are left out.
"""

from __future__ import annotations

import array
import operator
import os
import tempfile
import weakref
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, overload

import numpy as np

from repro.data import arrays

BLOCK = 1024  # texts read at once where all are read


class Texts(Sequence[str]):
    """What columns have in common: a list's behaviour, from `__len__`, `_one` and `_run`."""

    @abstractmethod
    def _one(self, index: int) -> str: ...

    @abstractmethod
    def _run(self, start: int, end: int) -> list[str]: ...

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            start, end, step = index.indices(len(self))
            if step == 1:
                return self._run(start, max(start, end))
            return [self._one(each) for each in range(start, end, step)]
        place = operator.index(index)
        if not -len(self) <= place < len(self):
            raise IndexError(f"text {place} of {len(self)}")
        return self._one(place % len(self))

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), BLOCK):
            yield from self._run(start, min(start + BLOCK, len(self)))

    def lengths(self) -> np.ndarray:
        """int64 [n]: bytes of each text."""
        return np.fromiter((len(text.encode()) for text in self), np.int64, len(self))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self):,} texts>"


class Column(Texts):
    """Texts in a file; `rows` (int64) are those that count and their order, where not all do."""

    def __init__(self, file: _File, offsets: np.ndarray, rows: np.ndarray | None = None) -> None:
        self.file, self.offsets, self.rows = file, offsets, rows

    @classmethod
    def load(cls, folder: Path, name: str) -> Column:
        """The column that `save` wrote."""
        path = folder / f"{name}_bytes.npy"
        with path.open("rb") as file:
            arrays.header(file)
            start = file.tell()
        descriptor = os.open(path, os.O_RDONLY)
        offsets = np.asarray(arrays.load(folder, f"{name}_offsets", mapped=True))
        return cls(_File(descriptor, start), offsets)

    def keep(self, mask: np.ndarray) -> Column:
        """The texts at which `mask` (bool [n]) is true."""
        return self if mask.all() else self.at(np.flatnonzero(mask))

    def at(self, rows: np.ndarray) -> Column:
        """The texts at these indices (int64)."""
        return Column(self.file, self.offsets, rows if self.rows is None else self.rows[rows])

    def lengths(self) -> np.ndarray:
        """int64 [n]: bytes of each text, without reading them."""
        all_of_them = np.diff(self.offsets)
        return all_of_them if self.rows is None else all_of_them[self.rows]

    def __len__(self) -> int:
        return len(self.offsets) - 1 if self.rows is None else len(self.rows)

    def _one(self, index: int) -> str:
        row = index if self.rows is None else int(self.rows[index])
        start, end = int(self.offsets[row]), int(self.offsets[row + 1])
        return self.file.read(start, end).decode()

    def _run(self, start: int, end: int) -> list[str]:
        if start == end:
            return []
        if self.rows is not None:
            rows = self.rows[start:end]
            if not (np.diff(rows) == 1).all():  # not one after another
                return [self._one(index) for index in range(start, end)]
            start, end = int(rows[0]), int(rows[-1]) + 1
        bounds = self.offsets[start : end + 1].tolist()
        data, zero = self.file.read(bounds[0], bounds[-1]), bounds[0]
        return [data[one - zero : other - zero].decode() for one, other in pairwise(bounds)]


class Coded(Texts):
    """Texts of which few differ: `names` in any order, and `codes` int32 [n] into them."""

    def __init__(self, names: list[str], codes: np.ndarray) -> None:
        self.names, self.codes = names, codes

    def keep(self, mask: np.ndarray) -> Coded:
        """The texts at which `mask` (bool [n]) is true."""
        return self if mask.all() else self.at(np.flatnonzero(mask))

    def at(self, rows: np.ndarray) -> Coded:
        """The texts at these indices (int64)."""
        return Coded(self.names, self.codes[rows])

    def __len__(self) -> int:
        return len(self.codes)

    def _one(self, index: int) -> str:
        return self.names[self.codes[index]]

    def _run(self, start: int, end: int) -> list[str]:
        return [self.names[code] for code in self.codes[start:end].tolist()]


class Joined(Texts):
    """The texts of one sequence, then those of another; neither is copied."""

    def __init__(self, one: Sequence[str], other: Sequence[str]) -> None:
        self.one, self.other = one, other

    def lengths(self) -> np.ndarray:
        """int64 [n]: bytes of each text."""
        return np.concatenate([lengths(self.one), lengths(self.other)])

    def __len__(self) -> int:
        return len(self.one) + len(self.other)

    def _one(self, index: int) -> str:
        n = len(self.one)
        return self.one[index] if index < n else self.other[index - n]

    def _run(self, start: int, end: int) -> list[str]:
        n = len(self.one)
        before = self.one[min(start, n) : min(end, n)]
        return [*before, *self.other[max(start - n, 0) : max(end - n, 0)]]


class Spool:
    """Takes texts one by one into a file without a name, that goes with the last who reads it.

    folder: where the file lies (it may be as large as the corpus); None: where temporary files do.
    """

    def __init__(self, folder: Path | None) -> None:
        self.file = tempfile.TemporaryFile(dir=folder, buffering=arrays.BLOCK)  # noqa: SIM115
        self.offsets = array.array("q", [0])

    def add(self, text: str) -> None:
        """Append `text`."""
        data = text.encode()
        self.file.write(data)
        self.offsets.append(self.offsets[-1] + len(data))

    def column(self) -> Column:
        """All that was added; nothing more can be."""
        self.file.flush()
        descriptor = os.dup(self.file.fileno())
        self.file.close()
        return Column(_File(descriptor, 0), np.frombuffer(self.offsets, np.int64))


def save(folder: Path, name: str, texts: Sequence[str]) -> None:
    """Write `texts` as a column."""
    with (
        arrays.Writer(folder, f"{name}_bytes", np.uint8) as content,
        arrays.Writer(folder, f"{name}_offsets", np.int64) as offsets,
    ):
        offsets.add([0])
        for start in range(0, len(texts), BLOCK):
            data = [text.encode() for text in texts[start : start + BLOCK]]
            offsets.add(content.size + np.cumsum([len(each) for each in data]))
            content.add(np.frombuffer(b"".join(data), np.uint8))


def take(texts: Sequence[str], mask: np.ndarray) -> Sequence[str]:
    """The texts at which `mask` (bool [n]) is true: a column of a column, a list of a list."""
    if isinstance(texts, Column | Coded):
        return texts.keep(mask)
    return [text for text, kept in zip(texts, mask, strict=True) if kept]


def lengths(texts: Sequence[str]) -> np.ndarray:
    """int64 [n]: bytes of each text in UTF-8."""
    if isinstance(texts, Texts):
        return texts.lengths()
    return np.fromiter((len(text.encode()) for text in texts), np.int64, len(texts))


def coded(texts: Sequence[str]) -> tuple[list[str], np.ndarray]:
    """(names, codes): the different texts in alphabetical order, and int64 [n] into them."""
    if not isinstance(texts, Coded):
        number: dict[str, int] = {}
        codes = np.fromiter((number.setdefault(each, len(number)) for each in texts), np.int64)
        texts = Coded(list(number), codes)
    used = np.unique(texts.codes)
    order = sorted(used.tolist(), key=texts.names.__getitem__)
    place = np.zeros(len(texts.names), np.int64)
    place[order] = np.arange(len(order))
    return [texts.names[each] for each in order], place[texts.codes]


class _File:
    """An open file that is closed when nobody holds it any more; `start`: where the data begin."""

    def __init__(self, descriptor: int, start: int) -> None:
        self.descriptor, self.start = descriptor, start
        self._close: Any = weakref.finalize(self, os.close, descriptor)

    def read(self, start: int, end: int) -> bytes:
        """The bytes from `start` to `end` of the data."""
        if not 0 <= start <= end <= os.fstat(self.descriptor).st_size:
            raise OSError(f"a text file has no bytes {start} to {end}: it was cut off or changed")
        data = os.pread(self.descriptor, end - start, self.start + start)
        while len(data) < end - start:
            more = os.pread(
                self.descriptor, end - start - len(data), self.start + start + len(data)
            )
            if not more:
                raise OSError(f"a text file ends before byte {end}: it was cut off")
            data += more
        return data
