"""Files of lines and of rows, plain, gzipped or inside a zip: read as a stream, damage counted.

A byte order mark goes, CRLF becomes LF, bytes that are not of the encoding become U+FFFD; each is
counted.  A file that cannot be read at all is refused by name.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import lzma
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from repro.errors import UserError, nearest

MOST_BYTES = 2**26  # of a line: more is no text, or one that would fill the memory
MOST_RATIO = (
    200  # of unpacked to packed bytes, past the first `FREE_BYTES`: text packs 3 to 10 times
)
FREE_BYTES = 2**26
DAMAGE = (
    EOFError,
    OSError,
    RuntimeError,
    ValueError,
    lzma.LZMAError,
    zipfile.BadZipFile,
    zlib.error,
)
_MARKS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16", b"PK": "a zip (or Excel) file"}


@dataclass(frozen=True)
class File:
    """A file that is read: `place` names it in messages, `opened` opens its bytes."""

    place: str
    opened: Callable[[], IO[bytes]]
    size: int  # bytes as they are stored, packed ones too
    gzipped: bool = False

    @classmethod
    def at(cls, path: Path) -> File:
        """The file at `path`; gzipped where its name ends in .gz."""
        if not path.is_file():
            there = sorted(each.name for each in path.parent.glob("*")) if path.parent else []
            raise UserError(
                "there is no such file",
                where=str(path),
                remedy=nearest(path.name, there) if there else "check the path",
            )
        return cls(str(path), lambda: path.open("rb"), path.stat().st_size, path.suffix == ".gz")

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """Its bytes, unpacked; damage on the way is a `UserError`."""
        try:
            with self.opened() as raw:
                if self.gzipped:
                    with gzip.open(raw, "rb") as unpacked:
                        yield unpacked  # type: ignore[misc]
                else:
                    yield raw
        except UserError:
            raise
        except DAMAGE as error:
            raise UserError(
                f"the file cannot be read: {str(error) or type(error).__name__}",
                where=self.place,
                remedy="it is cut off, damaged or locked: copy it again",
            ) from None

    def digest(self) -> str:
        """sha256 of its bytes as they are stored, in hex."""
        with self.opened() as raw:
            return hashlib.file_digest(raw, "sha256").hexdigest()  # type: ignore[arg-type]

    def decoded(self, repaired: Counter[str], encoding: str = "utf-8") -> Iterator[tuple[int, str]]:
        """Number (from 1) and text of each line, ending in LF where the file had a line end."""
        most = FREE_BYTES + MOST_RATIO * self.size
        with self.open() as file:
            for number, data in enumerate(iter(lambda: file.readline(MOST_BYTES), b""), start=1):
                most -= len(data)
                if most < 0:
                    raise UserError(
                        f"the file unpacks to more than {MOST_RATIO} times its size, as no text does",
                        where=self.place,
                        remedy="do not use it; pack the text again",
                    )
                if number == 1:
                    data = self._start(data, repaired)
                if len(data) == MOST_BYTES and not data.endswith(b"\n"):
                    raise UserError(
                        f"a line is longer than {MOST_BYTES:,} bytes",
                        where=f"{self.place}:{number}",
                        remedy="one row a line; is this a text file?",
                    )
                try:
                    line = data.decode(encoding)
                except UnicodeDecodeError:
                    repaired[f"line that is not {encoding.upper()}"] += 1
                    line = data.decode(encoding, errors="replace")
                if line.endswith("\r\n"):
                    repaired["file line ending in CRLF"] += 1
                    line = line[:-2] + "\n"
                yield number, line

    def lines(self, repaired: Counter[str], encoding: str = "utf-8") -> Iterator[tuple[int, str]]:
        """Number (from 1) and text of each line that is not blank, without its end."""
        for number, line in self.decoded(repaired, encoding):
            if line.strip():
                yield number, line.rstrip("\n")

    def objects(
        self, repaired: Counter[str], keys: Sequence[str]
    ) -> Iterator[tuple[int, dict[str, Any]]]:
        """Number and JSON object of each line that is not blank; it is to have the first of `keys`."""
        for number, line in self.lines(repaired):
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise UserError(
                    f"this is not JSON: {error}",
                    where=f"{self.place}:{number}",
                    remedy="one JSON object a line",
                ) from None
            if not isinstance(row, dict) or keys[0] not in row:
                wanted = " and ".join(f"`{key}`" for key in keys)
                raise UserError(
                    f"expected an object with {wanted}, found {line[:60]!r}",
                    where=f"{self.place}:{number}",
                    remedy="one JSON object a line, each with these keys",
                )
            yield number, _whole(row, repaired) if "\\ud" in line.lower() else row

    def cells(
        self, repaired: Counter[str], encoding: str, delimiter: str, *, quoted: bool
    ) -> Iterator[tuple[int, list[str]]]:
        """Number of the last line, and cells, of each row of a table that is not blank."""
        csv.field_size_limit(MOST_BYTES)  # a passage may be longer than 131,072
        lines = (line for _, line in self.decoded(repaired, encoding))
        reader = csv.reader(
            lines,
            delimiter=delimiter,
            quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE,
            strict=True,
        )
        while True:
            try:
                cells = next(reader, None)
            except csv.Error as error:
                raise UserError(
                    f"this is no row of a table: {error}",
                    where=f"{self.place}:{reader.line_num}",
                    remedy='a cell with a quotation mark is written "like ""this"""; '
                    "`quoted: false` takes such marks as text",
                ) from None
            if cells is None:
                return
            if cells:
                yield reader.line_num, cells

    def _start(self, data: bytes, repaired: Counter[str]) -> bytes:
        """The first line without its byte order mark; refused where it is no line of text."""
        if data.startswith(b"\xef\xbb\xbf"):
            repaired["byte order mark of a file"] += 1
            return data[3:]
        for mark, what in _MARKS.items():
            if data.startswith(mark):
                raise UserError(
                    f"this is {what}, not lines of text",
                    where=self.place,
                    remedy="save it as UTF-8 text (in Excel: CSV UTF-8)",
                )
        return data


def _whole(value: Any, repaired: Counter[str]) -> Any:
    """A JSON value in whose texts what was escaped as half a character is U+FFFD."""
    if isinstance(value, str):
        text = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        repaired["broken encoding"] += text != value
        return text
    if isinstance(value, dict):
        return {_whole(key, repaired): _whole(each, repaired) for key, each in value.items()}
    return [_whole(each, repaired) for each in value] if isinstance(value, list) else value


def table(
    file: File, columns: Sequence[str], repaired: Counter[str], **how: Any
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line number and the cells of `columns` of each row below the header; see `File.cells`."""
    rows = file.cells(repaired, **how)
    _, header = next(rows, (0, []))
    names = [name.strip() for name in header]
    where = has_columns(file.place, names, columns)
    for number, cells in rows:
        if len(cells) != len(names):
            raise UserError(
                f"a row has {len(cells)} cells, the header has {len(names)}",
                where=f"{file.place}:{number}",
                remedy="a cell that holds the delimiter or a line end stands in quotation marks",
            )
        yield number, {name: cells[place] for name, place in where.items()}


def has_columns(place: str, there: Sequence[str], wanted: Sequence[str]) -> dict[str, int]:
    """Where each of the `wanted` columns stands; refused where one is missing or stands twice."""
    if not any(there):
        raise UserError(
            "the file is empty",
            where=place,
            remedy="a header with the names of columns comes first",
        )
    for name in wanted:
        if there.count(name) != 1:
            found = "twice" if name in there else "not"
            raise UserError(
                f"the column `{name}` is {found} there; the columns are "
                + ", ".join(f"`{_printable(each):.40}`" for each in there[:20]),
                where=place,
                remedy=f"{nearest(name, list(there))}  (source.columns names them; a table of "
                "another delimiter needs `delimiter:`)",
            )
    return {name: there.index(name) for name in wanted}


def _printable(text: str) -> str:
    return "".join(each if each.isprintable() else "\ufffd" for each in text)
