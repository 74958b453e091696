"""Rows of judged pairs in files of one's own: CSV, TSV, JSONL or Parquet, with columns of any name."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from repro.data.collection import Records
from repro.data.sources.files import File, table
from repro.data.sources.rows import as_score, as_text, jsonl, parquet
from repro.data.sources.source import SourceParams, titled
from repro.data.text import clean
from repro.params import Params

RULES = 1  # raise it when the reading rules below change on purpose
SUFFIXES = (".csv", ".tsv", ".jsonl", ".parquet")  # the first three gzipped as well


class Columns(Params):
    """Which column of the file holds what; one that is not named is not read."""

    query: str = "query"
    passage: str = "passage"
    query_id: str | None = None  # without: a digest of the text, so that equal texts are one query
    passage_id: str | None = None
    title: str | None = None  # stands before the passage, on a line of its own
    group: str | None = None  # what the passage belongs to: whole groups can be held out
    score: str | None = None  # a number: how relevant the passage is
    negative: str | None = None  # a text, or a list of texts, that do not answer the query

    @model_validator(mode="after")
    def _distinct(self) -> Columns:
        if len(set(self.named.values())) < len(self.named):
            raise ValueError("a column is named twice\n  remedy: name each column once")
        return self

    @property
    def named(self) -> dict[str, str]:
        """What is read -> the column that holds it."""
        return {what: name for what, name in self if name is not None}


def _known_encoding(name: str) -> str:
    odd = bytes(range(256)) + b"+2AA- \\ud800"  # what must become whole text, whatever it is
    try:
        fits = "\n".encode(name) == b"\n"
        odd.decode(name, "replace").encode()
    except (LookupError, TypeError, ValueError):
        fits = False
    if not fits:
        raise ValueError(
            "no encoding that files are read in\n  remedy: utf-8, cp1252, latin-1, gb18030 or another "
            "in which a line end is one byte"
        )
    return name


Encoding = Annotated[str, AfterValidator(_known_encoding)]
Paths = Annotated[
    list[Path],
    Field(min_length=1),
    BeforeValidator(lambda given: given if isinstance(given, list) else [given]),
]


class PairsParams(SourceParams):
    """One row a pair.  The suffix of a file says what it is."""

    kind: Literal["pairs"]
    files: Paths  # one, or several of the same columns
    columns: Columns = Columns()
    min_score: float = 1  # with columns.score: a pair of this score or more is relevant
    encoding: Encoding = "utf-8"  # of CSV and TSV
    delimiter: str = Field(default="", max_length=1)  # "": a comma in .csv, a tab in .tsv
    quoted: bool = True  # false: a quotation mark in CSV or TSV is text like any other

    @field_validator("delimiter")
    @classmethod
    def _no_mark(cls, delimiter: str) -> str:
        if delimiter in ("\n", "\r", "\0", '"'):
            raise ValueError("this cannot part cells\n  remedy: a comma, a semicolon, a tab, |")
        return delimiter

    @field_validator("files")
    @classmethod
    def _known_suffix(cls, files: list[Path]) -> list[Path]:
        for path in files:
            if _suffix(path) not in SUFFIXES:
                raise ValueError(
                    f"{path.name} is of no kind that is read\n  remedy: {', '.join(SUFFIXES)} "
                    "(.gz after the first three); from Excel, save as CSV UTF-8"
                )
        return files

    def fingerprint(self) -> dict[str, Any]:
        """The digest of each file, in their order."""
        return {"files": [File.at(path).digest() for path in self.files], "rules": RULES}

    def read(self) -> Records:
        """Queries, passages and judgements, in order of their ids.

        An id's first text counts.  A row without a query, or with a score under `min_score`, leaves
        its passage in the corpus; one without a passage is dropped.
        """
        dropped: Counter[str] = Counter()
        repaired: Counter[str] = Counter()
        queries: dict[str, str] = {}
        passages: dict[str, tuple[str, str]] = {}
        judgements: list[tuple[str, str]] = []
        negatives: dict[tuple[str, str], None] = {}  # query id, text
        for place, row in self._rows(repaired):
            text = titled(row.get("title", ""), row["passage"])
            passage = self._id(row, "passage", text)
            query = self._id(row, "query", row["query"])
            if passage is None:
                dropped["row without a passage"] += 1
                continue
            if passages.setdefault(passage, (text, row.get("group", "")))[0] != text:
                repaired["row whose passage id had another text before: the first counts"] += 1
            if query is None:
                dropped["row without a query (its passage stays)"] += 1
                continue
            if queries.setdefault(query, row["query"]) != row["query"]:
                repaired["row whose query id had another text before: the first counts"] += 1
            negatives |= {(query, text): None for text in row.get("negative", [])}
            if "score" not in row or as_score(row["score"], place) >= self.min_score:
                judgements.append((query, passage))
            else:
                dropped[f"judgement with a score under {self.min_score:g}"] += 1
        known = _add_negatives([text for _, text in negatives], passages)
        return Records(
            negatives=[(query, known[content_id(text)]) for query, text in negatives],
            queries=queries.items(),
            passages=((name, text, group) for name, (text, group) in passages.items()),
            judgements=judgements,
            dropped=dropped,
            repaired=repaired,
            by_id=True,
        )

    def _id(self, row: dict[str, Any], what: str, text: str) -> str | None:
        """The given id, else one made of the text; None where there is neither."""
        if f"{what}_id" in row:
            return str(row[f"{what}_id"])
        return content_id(text) if text.strip() else None

    def _rows(self, repaired: Counter[str]) -> Iterator[tuple[str, dict[str, Any]]]:
        """Place, and texts by what they are, of each row of all files; of negatives a list."""
        named = self.columns.named
        for path in self.files:
            file = File.at(path)
            for number, row in self._cells(path, file, list(named.values()), repaired):
                place = f"{file.place}:{number}"
                yield (
                    place,
                    {
                        what: (_several if what == "negative" else as_text)(row[name], name, place)
                        for what, name in named.items()
                    },
                )

    def _cells(
        self, path: Path, file: File, columns: list[str], repaired: Counter[str]
    ) -> Iterator[tuple[int, dict[str, Any]]]:
        suffix = _suffix(path)
        if suffix == ".parquet":
            return parquet(file, columns)
        if suffix == ".jsonl":
            return jsonl(file, columns, repaired)
        delimiter = self.delimiter or ("," if suffix == ".csv" else "\t")
        how = {"encoding": self.encoding, "delimiter": delimiter, "quoted": self.quoted}
        return table(file, columns, repaired, **how)


def _add_negatives(texts: list[str], passages: dict[str, tuple[str, str]]) -> dict[str, str]:
    """Content id -> id of the passage; texts that are no passage yet become one."""
    known = {content_id(text): name for name, (text, _) in passages.items()} if texts else {}
    for text in texts:
        name = known.setdefault(content_id(text), content_id(text))
        passages.setdefault(name, (text, ""))
    return known


def content_id(text: str) -> str:
    """The id of a text that has none: twenty hex digits of the sha256 of it, cleaned."""
    return hashlib.sha256(clean(text, Counter()).encode()).hexdigest()[:20]


def _suffix(path: Path) -> str:
    inner = Path(path.stem).suffix.lower() if path.suffix == ".gz" else path.suffix.lower()
    return inner if path.suffix != ".gz" or inner != ".parquet" else path.suffix


def _several(value: Any, column: str, place: str) -> list[str]:
    """A cell of negatives as texts: a list, a JSON list in a text, or one text; empty ones go."""
    if isinstance(value, str) and value.startswith("["):
        with contextlib.suppress(ValueError, RecursionError):
            value = json.loads(value)
    values = value if isinstance(value, list) else [value]
    return [text for text in (as_text(each, column, place) for each in values) if text.strip()]
