"""A folder in BEIR layout: corpus.jsonl, queries.jsonl, qrels/*.tsv, each plain or gzipped."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator

from repro.data.collection import Records
from repro.data.sources.source import SourceParams
from repro.params import UserError, nearest
from repro.store import file_digest

RULES = 1  # raise it when the reading rules below change on purpose


class BeirParams(SourceParams):
    """Where the folder is, and which judgements count."""

    kind: Literal["beir"]
    folder: Path
    qrels: list[str] = Field(
        ["train", "dev", "test"], min_length=1
    )  # files qrels/<name>.tsv, pooled
    min_score: int = Field(
        default=1, ge=-100, le=100
    )  # a judgement of this score or more is relevant
    title: bool = True  # the passage's text starts with its title, where it has one

    @field_validator("qrels")
    @classmethod
    def _no_repeats(cls, names: list[str]) -> list[str]:
        if len(set(names)) < len(names):
            raise ValueError("a name stands twice\n  remedy: name each file of judgements once")
        return names

    def fingerprint(self) -> dict[str, Any]:
        """The digest of each file that is read."""
        return {"files": {path.name: file_digest(path) for path in self._files()}, "rules": RULES}

    def read(self) -> Records:
        """Passages and queries in the order of their files, judgements in that of `qrels`."""
        corpus, queries, *judgements = self._files()
        dropped: Counter[str] = Counter()
        repaired: Counter[str] = Counter()
        return Records(
            queries=((row["_id"], row["text"]) for row in _rows(queries, repaired)),
            passages=((row["_id"], self._text(row), "") for row in _rows(corpus, repaired)),
            judgements=(
                pair for path in judgements for pair in self._judgements(path, dropped, repaired)
            ),
            dropped=dropped,
            repaired=repaired,
        )

    def _files(self) -> list[Path]:
        if not self.folder.is_dir():
            raise UserError(
                "there is no such folder",
                where=str(self.folder),
                remedy="name the folder that holds corpus.jsonl, queries.jsonl and qrels/",
            )
        names = ["corpus.jsonl", "queries.jsonl", *(f"qrels/{name}.tsv" for name in self.qrels)]
        return [_find(self.folder, name) for name in names]

    def _text(self, row: dict[str, str]) -> str:
        title = row.get("title", "").strip() if self.title else ""
        return f"{title}\n{row['text']}" if title else row["text"]

    def _judgements(
        self, path: Path, dropped: Counter[str], repaired: Counter[str]
    ) -> Iterator[tuple[str, str]]:
        for number, line in _lines(path, repaired):
            fields = line.split("\t")
            if number == 1 and not _is_score(fields[-1]):
                continue  # the header: query-id, corpus-id, score
            if len(fields) != 3 or not _is_score(fields[2]):
                raise UserError(
                    f"expected query id, passage id and a whole-number score, found {line[:60]!r}",
                    where=f"{path}:{number}",
                    remedy="three columns, separated by tabs",
                )
            if int(fields[2]) >= self.min_score:
                yield fields[0], fields[1]
            else:
                dropped[f"judgement with a score under {self.min_score}"] += 1


def _find(folder: Path, name: str) -> Path:
    for path in (folder / name, folder / f"{name}.gz"):
        if path.is_file():
            return path
    parent = (folder / name).parent
    there = sorted(path.name for path in parent.iterdir()) if parent.is_dir() else []
    raise UserError(
        f"there is no {name}, nor {name}.gz",
        where=str(folder),
        remedy=nearest(Path(name).name, there) if there else f"add {name}",
    )


def _rows(path: Path, repaired: Counter[str]) -> Iterator[dict[str, str]]:
    """Each line's object, its values as texts; a missing text is empty."""
    for number, line in _lines(path, repaired):
        try:
            row = json.loads(line)
        except ValueError as error:
            raise UserError(
                f"this is not JSON: {error}",
                where=f"{path}:{number}",
                remedy="one JSON object a line",
            ) from None
        if not isinstance(row, dict) or "_id" not in row:
            raise UserError(
                f"expected an object with `_id` and `text`, found {line[:60]!r}",
                where=f"{path}:{number}",
                remedy="see the BEIR layout",
            )
        texts = {key: "" if value is None else str(value) for key, value in row.items()}
        yield {"text": "", **texts}


def _lines(path: Path, repaired: Counter[str]) -> Iterator[tuple[int, str]]:
    """Number (from 1) and text of each line that is not blank; bad UTF-8 is replaced, counted."""
    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
        for number, data in enumerate(file, start=1):
            if number == 1 and data.startswith(b"\xef\xbb\xbf"):
                repaired["byte order mark of a file"] += 1
                data = data[3:]
            try:
                line = data.decode()
            except UnicodeDecodeError:
                repaired["line that is not UTF-8"] += 1
                line = data.decode(errors="replace")
            if line.endswith("\r\n"):
                repaired["file line ending in CRLF"] += 1
            if line.strip():
                yield number, line.rstrip("\r\n")


def _is_score(text: str) -> bool:
    return text.strip().lstrip("+-").isdigit()
