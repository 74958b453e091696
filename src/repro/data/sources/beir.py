"""BEIR layout: corpus.jsonl, queries.jsonl, qrels/*.tsv, each plain or gzipped; a folder or a zip."""

from __future__ import annotations

import functools
import io
import stat
import struct
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Any, Literal, cast

from pydantic import Field, field_validator

from repro.data.collection import Records
from repro.data.sources.files import DAMAGE, File
from repro.data.sources.rows import as_grade
from repro.data.sources.source import SourceParams, titled
from repro.errors import UserError, nearest

RULES = 2  # raise it when the reading rules below change on purpose; 2: in order of the ids


class BeirParams(SourceParams):
    """Where the folder is, and which judgements count."""

    kind: Literal["beir"]
    folder: Path  # or a zip of it, which is read in place
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

    def parts(self) -> list[str]:
        """The files of judgements."""
        return self.qrels

    def fingerprint(self) -> dict[str, Any]:
        """The digest of each file that is read."""
        files = {PurePosixPath(file.place).name: file.digest() for file in self._files()}
        return {"files": files, "rules": RULES}

    def read(self) -> Records:
        """Passages, queries and judgements, in order of their ids."""
        corpus, queries, *judgements = self._files()
        dropped: Counter[str] = Counter()
        repaired: Counter[str] = Counter()
        return Records(
            queries=((row["_id"], row["text"]) for row in _rows(queries, repaired)),
            passages=((row["_id"], self._text(row), "") for row in _rows(corpus, repaired)),
            judgements=(
                (*pair, part)
                for part, file in zip(self.qrels, judgements, strict=True)
                for pair in self._judgements(file, dropped, repaired)
            ),
            dropped=dropped,
            repaired=repaired,
            by_id=True,
        )

    def _files(self) -> list[File]:
        names = ["corpus.jsonl", "queries.jsonl", *(f"qrels/{name}.tsv" for name in self.qrels)]
        if self.folder.is_file():
            return _zipped(self.folder, names)
        if not self.folder.is_dir():
            raise UserError(
                "there is no such folder",
                where=str(self.folder),
                remedy="name the folder (or its zip) that holds corpus.jsonl, queries.jsonl and qrels/",
            )
        return [_find(self.folder, name) for name in names]

    def _text(self, row: dict[str, str]) -> str:
        return titled(row.get("title", "") if self.title else "", row["text"])

    def _judgements(
        self, file: File, dropped: Counter[str], repaired: Counter[str]
    ) -> Iterator[tuple[str, str]]:
        for number, line in file.lines(repaired):
            fields = line.split("\t")
            score = as_grade(fields[-1])
            if number == 1 and score is None:
                continue  # the header: query-id, corpus-id, score
            if len(fields) != 3 or score is None:
                raise UserError(
                    f"expected query id, passage id and a whole-number score, found {line[:60]!r}",
                    where=f"{file.place}:{number}",
                    remedy="three columns, separated by tabs",
                )
            if score >= self.min_score:
                yield fields[0], fields[1]
            else:
                dropped[f"judgement with a score under {self.min_score}"] += 1


def _find(folder: Path, name: str) -> File:
    for path in (folder / name, folder / f"{name}.gz"):
        if path.is_file():
            return File.at(path)
    parent = (folder / name).parent
    there = sorted(path.name for path in parent.iterdir()) if parent.is_dir() else []
    raise _missing(name, str(folder), there)


def _zipped(path: Path, names: list[str]) -> list[File]:
    """The members of a zip, at its top or inside its one folder; nothing is unpacked to disk."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = {each.filename: each for each in archive.infolist()}
    except (*DAMAGE, struct.error) as error:
        raise UserError(
            f"this is no zip: {error}", where=str(path), remedy="name a folder, or a zip of it"
        ) from None
    for name, member in members.items():
        outside = name.startswith("/") or ".." in PurePosixPath(name).parts
        if outside or stat.S_ISLNK(member.external_attr >> 16):
            what = "names a place outside itself" if outside else "holds a symbolic link"
            raise UserError(
                f"the zip {what}: {name[:80]!r}",
                where=str(path),
                remedy="do not use it; pack the files of the folder again",
            )
    corpora = [name for name in members if PurePosixPath(name).name.startswith("corpus.jsonl")]
    top = str(PurePosixPath(min(corpora, key=len)).parent) if corpora else "."
    prefix = "" if top == "." else f"{top}/"
    return [_member(path, prefix, name, members) for name in names]


def _member(path: Path, prefix: str, name: str, members: dict[str, zipfile.ZipInfo]) -> File:
    member = next((m for m in (f"{prefix}{name}", f"{prefix}{name}.gz") if m in members), None)
    if member is None:
        raise _missing(name, str(path), [PurePosixPath(each).name for each in members])
    opened = functools.partial(_unzipped, path, member)
    return File(f"{path}/{member}", opened, members[member].compress_size, member[-3:] == ".gz")


def _unzipped(path: Path, member: str) -> IO[bytes]:
    return io.BufferedReader(cast(io.RawIOBase, zipfile.ZipFile(path).open(member)))


def _missing(name: str, where: str, there: list[str]) -> UserError:
    return UserError(
        f"there is no {name}, nor {name}.gz",
        where=where,
        remedy=nearest(PurePosixPath(name).name, there) if there else f"add {name}",
    )


def _rows(file: File, repaired: Counter[str]) -> Iterator[dict[str, str]]:
    """Each line's object, its values as texts; a missing text is empty."""
    for number, row in file.objects(repaired, ["_id", "text"]):
        cells = {key: row.get(key) for key in ("_id", "title", "text")}
        for key, value in cells.items():
            if isinstance(value, list | dict):
                raise UserError(
                    f"`{key}` is a {type(value).__name__}, a text or a number is wanted",
                    where=f"{file.place}:{number}",
                    remedy="write one text for each key",
                )
        yield {key: "" if value is None else str(value) for key, value in cells.items()}
