"""Rows of a table in a file: Parquet, JSONL, TSV or CSV, the latter three plain or gzipped; texts all.

Every value is a text: numbers lose nothing (an id 7 in one table is the id "7" in another), nothing
stands for empty.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from repro.data.sources.files import File, has_columns, table
from repro.errors import UserError

SUFFIXES = (".parquet", ".jsonl", ".json", ".ndjson", ".tsv", ".csv")
_GRADE = re.compile(r"[+-]?[0-9]{1,18}")
BATCH = 10_000  # rows of a Parquet file in memory at once


def suffix_of(name: str) -> str:
    """What a file is, by its name without .gz; "" where it is of no kind that is read."""
    inner = Path(name.removesuffix(".gz")).suffix.lower()
    return inner if inner in SUFFIXES and not name.endswith(".parquet.gz") else ""


def rows(
    path: Path, columns: Sequence[str], dropped: Counter[str], repaired: Counter[str]
) -> Iterator[tuple[str, list[str]]]:
    """Place (file:row) and the texts of `columns` of each row of the file at `path`.

    In TSV a quotation mark is text like any other; a row with too few cells is dropped, in one with too
    many the last cell takes the rest; both are counted.  In JSONL a key that is not there is empty, but
    the first row is to have all.  Raises `UserError` where a column is missing or the file is no table.
    """
    kind, file = suffix_of(path.name), File.at(path)
    if kind == ".parquet":
        found = parquet(file, columns)
    elif kind == ".tsv":
        found = _tsv(file, columns, dropped, repaired)
    elif kind == ".csv":
        found = table(file, columns, repaired, encoding="utf-8", delimiter=",", quoted=True)
    elif kind:
        found = jsonl(file, columns, repaired)
    else:
        raise UserError(
            "this file is of no kind that is read",
            where=str(path),
            remedy=f"{', '.join(SUFFIXES)} (.gz after all but the first)",
        )
    for number, row in found:
        place = f"{path}:{number}"
        yield place, [as_text(row[name], name, place) for name in columns]


def as_text(value: Any, column: str, place: str) -> str:
    """A cell as text: null and NaN are empty, a whole number has no decimals."""
    if value is None or value != value:
        return ""
    if isinstance(value, list | dict | bytes):
        raise UserError(
            f"the column `{column}` holds a {type(value).__name__}, a text or a number is wanted",
            where=place,
            remedy="name another column, or write one row a pair",
        )
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def as_score(text: str, place: str) -> float:
    """The score in a cell; refused where it is no finite number."""
    try:
        score = float(text)
    except ValueError:
        score = math.nan
    if not math.isfinite(score):
        raise UserError(
            f"the score is {text[:40]!r}", where=place, remedy="write a number in each row"
        )
    return score


def as_grade(text: str) -> int | None:
    """The whole number in a cell; None where it is none, or none that a grade can be."""
    return int(text) if _GRADE.fullmatch(text.strip()) else None


def jsonl(
    file: File, columns: Sequence[str], repaired: Counter[str]
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a JSONL file; the first has all columns, in others one may be missing: empty."""
    first = True
    for number, row in file.objects(repaired, columns):
        if first:
            has_columns(f"{file.place}:{number}", list(row), columns)
            first = False
        yield number, {name: row.get(name) for name in columns}


def parquet(file: File, columns: Sequence[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Number and cells of each row of a Parquet file, a few at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(file.place) as opened:
            has_columns(file.place, opened.schema_arrow.names, columns)
            number = 0
            for batch in opened.iter_batches(BATCH, columns=list(columns), use_threads=False):
                for row in batch.to_pylist():
                    number += 1
                    yield number, row
    except UserError:
        raise
    except (pa.ArrowException, ArithmeticError, OSError, ValueError) as error:
        what = (str(error) or type(error).__name__).splitlines()[0]
        raise UserError(
            f"this Parquet file cannot be read: {what}",
            where=file.place,
            remedy="copy, download or write it again",
        ) from None


def _tsv(
    file: File, columns: Sequence[str], dropped: Counter[str], repaired: Counter[str]
) -> Iterator[tuple[int, dict[str, Any]]]:
    lines = file.lines(repaired)
    _, header = next(lines, (0, ""))
    names = header.split("\t")
    where = has_columns(file.place, names, columns)
    for number, line in lines:
        cells = line.split("\t", len(names) - 1)
        if len(cells) < len(names):
            dropped["row with too few columns"] += 1
            continue
        if "\t" in cells[-1]:
            repaired["row with tabs in its last column"] += 1
        yield number, {name: cells[place] for name, place in where.items()}
