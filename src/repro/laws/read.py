"""Read a user's table: CSV, TSV, JSONL or Parquet, plain or gzipped, with or without a BOM."""

from __future__ import annotations

import csv
import difflib
import gzip
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from repro.errors import UserError

_READERS: dict[str, Callable[[Path], pd.DataFrame]] = {
    ".csv": lambda path: pd.read_csv(path, encoding="utf-8-sig", skipinitialspace=True),
    ".tsv": lambda path: pd.read_csv(path, sep="\t", encoding="utf-8-sig"),
    ".jsonl": lambda path: pd.read_json(path, lines=True),
    ".parquet": pd.read_parquet,
}


def read(path: Path) -> pd.DataFrame:
    """The table in the file at `path`; raises `UserError` where there is none."""
    if not path.exists():
        beside = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
        near = difflib.get_close_matches(path.name, beside, n=1)
        remedy = f"did you mean {path.parent / near[0]}?" if near else "check the path"
        raise UserError("there is no such file", where=str(path), remedy=remedy)
    if path.is_dir():
        raise UserError("this is a directory, not a table", where=str(path), remedy="name a file")
    suffix = Path(path.name.removesuffix(".gz")).suffix.lower()
    if suffix not in _READERS:
        raise UserError(
            f"tables of kind {suffix or 'without a suffix'!r} are not read",
            where=str(path),
            remedy=f"give one of {', '.join(_READERS)} (or with .gz)",
        )
    try:
        if suffix in (".csv", ".tsv"):
            _check_header(path, suffix)
        frame = _READERS[suffix](path)
    except UserError:
        raise
    except Exception as error:  # pandas and what unpacks for it raise nearly anything
        what = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise UserError(
            f"this cannot be read as {suffix[1:]}: {what}",
            where=str(path),
            remedy="open it and check its first lines",
        ) from None
    if frame.empty:
        raise UserError("the table has no rows", where=str(path), remedy="give one run a row")
    if suffix in (".csv", ".tsv") and not frame.index.equals(pd.RangeIndex(len(frame))):
        raise UserError(
            "the rows have more fields than the header names",
            where=str(path),
            remedy="give every column a name; write 1000, not 1,000",
        )
    frame.columns = [str(name).strip() for name in frame.columns]
    _check_names([str(name) for name in frame.columns], path)
    return frame


def _check_header(path: Path, suffix: str) -> None:
    """The names as they stand: pandas renames the second of two equal ones."""
    separator, other = (",", ";") if suffix == ".csv" else ("\t", ",")
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
        rows = csv.reader(file, delimiter=separator, skipinitialspace=True)
        names = [name.strip() for name in next((row for row in rows if any(row)), []) if name]
    if len(names) == 1 and other in names[0]:
        words = {";": "semicolons", ",": "commas"}
        raise UserError(
            f"this looks separated by {words[other]}, not by {'commas' if other == ';' else 'tabs'}",
            where=str(path),
            remedy="save it with commas, and with points in decimals"
            if other == ";"
            else "call it .csv",
        )
    _check_names(names, path)


def _check_names(names: list[str], path: Path) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UserError(
            f"two columns are called {twice[0]!r}", where=str(path), remedy="rename one of them"
        )
