"""Dataset repositories of the hub: passages, queries and judgements, each a table in one of them.

Files are downloaded whole into the hub's cache, once, and read from there as a stream; with
HF_HUB_OFFLINE from the cache alone, with REPRO_HUB_MIRROR from a local copy (`repro.hub`).  `folder`
in place of `repo` is one repository that lies on this machine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from repro.data.collection import Records
from repro.data.sources.card import files_of, matching
from repro.data.sources.rows import as_score, rows
from repro.data.sources.source import SourceParams, titled
from repro.errors import UserError, nearest
from repro.hub import Repository, file_sha256, open_folder, open_local, open_repository
from repro.params import Params

RULES = 1  # raise it when the reading rules below change on purpose


class Table(Params):
    """Where a table is: a config and split of a repository, or files of it by name."""

    repo: str | None = None  # where it is another one than the source's
    revision: str | None = None
    config: str | None = None
    split: str | None = None
    files: list[str] = []  # in place of config and split; `*` stands for anything in a folder

    @model_validator(mode="after")
    def _one_way(self) -> Table:
        if bool(self.files) == bool(self.split) or (self.files and self.config):
            raise ValueError(
                "name a split (and config), or files\n  remedy: config: corpus, split: corpus"
            )
        if self.revision and not self.repo:
            raise ValueError(
                "a revision of which repository?\n  remedy: add repo, or put it beside source.repo"
            )
        return self


class PassageTable(Table):
    """Its columns."""

    id: str = "_id"
    text: str = "text"
    title: str | None = None  # stands before the text, on a line of its own


class QueryTable(Table):
    """Its columns."""

    id: str = "_id"
    text: str = "text"
    part: str | None = None  # its ids are those of this part alone: another part may use them again


class JudgementTable(Table):
    """Its columns."""

    query: str = "query-id"
    passage: str = "corpus-id"
    score: str | None = None  # without: every pair of the table is relevant


class HubParams(SourceParams):
    """Which tables, and which judgements count."""

    kind: Literal["hub"]
    repo: str | None = None  # org/name
    folder: Path | None = None  # in its place: a repository on this machine
    revision: str | None = None  # a commit is best: branches and tags move
    passages: PassageTable
    queries: list[QueryTable] = Field(min_length=1)  # one behind the other
    judgements: dict[str, JudgementTable] = Field(min_length=1)  # by part: train, dev, ...
    min_score: float = Field(default=1, ge=-100, le=100)  # this score or more is relevant

    @model_validator(mode="after")
    def _known_parts(self) -> HubParams:
        for table in self.queries:
            if table.part is not None and table.part not in self.judgements:
                raise ValueError(
                    f"queries: there are no judgements of the part {table.part!r}\n"
                    f"  remedy: {nearest(table.part, self.parts())}"
                )
        return self

    @model_validator(mode="after")
    def _repo_or_folder(self) -> HubParams:
        elsewhere = [table for table in self._tables() if table.repo]
        if self.folder and (self.repo or elsewhere):
            raise ValueError(
                "a folder is one repository, and needs no other\n  remedy: leave `repo` out, or lay "
                "several out under REPRO_HUB_MIRROR"
            )
        if not self.folder and not self.repo and len(elsewhere) < len(self._tables()):
            raise ValueError("no repository is named\n  remedy: repo: org/name")
        return self

    def here(self) -> bool:
        """Whether each file that is read lies in a folder, in the mirror or in the hub's cache."""
        if self.folder:
            return True
        opened = {(n, at): open_local(n, at or None, "dataset") for n, at in self._keys()}
        return all(
            found is not None and all(path.is_file() for _, path in self._files(table, found))
            for table in self._tables()
            for found in [opened[_key(table, self)]]
        )

    def parts(self) -> list[str]:
        """The names of the tables of judgements."""
        return list(self.judgements)

    def fingerprint(self) -> dict[str, Any]:
        """The sha256 of each file that is read, wherever it came from; it is downloaded first."""
        files = {
            f"{name}/{file}" if name else file: file_sha256(path)
            for table in self._tables()
            for name, file, path in self._found(table)
        }
        return {"files": files, "rules": RULES}

    def origin(self) -> dict[str, str]:
        """The commit of each repository that is read, as the hub gave it; "" for a local copy."""
        return {opened.name: opened.commit for opened in self._repositories.values()}

    def read(self) -> Records:
        """Passages, queries and judgements, in order of their ids."""
        dropped: Counter[str] = Counter()
        repaired: Counter[str] = Counter()
        return Records(
            queries=self._queries(dropped, repaired),
            passages=self._passages(dropped, repaired),
            judgements=(
                (*pair, part)
                for part, table in self.judgements.items()
                for pair in self._judgements(part, table, dropped, repaired)
            ),
            dropped=dropped,
            repaired=repaired,
            by_id=True,
        )

    def _queries(self, dropped: Counter[str], repaired: Counter[str]) -> Iterator[tuple[str, str]]:
        seen: dict[str, str] = {}
        for table in self.queries:
            for place, (name, text) in self._rows(table, [table.id, table.text], dropped, repaired):
                own = f"{table.part}/{name}" if table.part and name else name
                if len(self.queries) > 1 and seen.setdefault(own, text) != text:
                    raise UserError(
                        f"the query {own!r} has another text in an earlier table",
                        where=place,
                        remedy="where each part has ids of its own, give each table its `part:`",
                    )
                yield own, text

    def _passages(
        self, dropped: Counter[str], repaired: Counter[str]
    ) -> Iterator[tuple[str, str, str]]:
        table = self.passages
        columns = [table.id, table.text, *([table.title] if table.title else [])]
        for _, (name, text, *title) in self._rows(table, columns, dropped, repaired):
            yield name, titled("".join(title), text), ""

    def _judgements(
        self, part: str, table: JudgementTable, dropped: Counter[str], repaired: Counter[str]
    ) -> Iterator[tuple[str, str]]:
        prefix = f"{part}/" if part in {each.part for each in self.queries} else ""
        columns = [table.query, table.passage, *([table.score] if table.score else [])]
        for place, (query, passage, *score) in self._rows(table, columns, dropped, repaired):
            if not score or as_score(score[0], place) >= self.min_score:
                yield f"{prefix}{query}", passage
            else:
                dropped[f"judgement with a score under {self.min_score:g}"] += 1

    def _rows(
        self, table: Table, columns: list[str], dropped: Counter[str], repaired: Counter[str]
    ) -> Iterator[tuple[str, list[str]]]:
        for _, _, path in self._found(table):
            yield from rows(path, columns, dropped, repaired)

    def _found(self, table: Table) -> Iterator[tuple[str, str, Path]]:
        """Repository, name and place of each file of a table."""
        opened = self._repositories[_key(table, self)]
        for name, path in self._files(table, opened):
            yield "" if self.folder else opened.name, name, path

    def _files(self, table: Table, opened: Repository) -> Iterator[tuple[str, Path]]:
        """Name and place of each file of a table in a repository."""
        if table.split:
            names = files_of(opened, table.config, table.split)
        else:
            names = [name for pattern in table.files for name in matching(opened, pattern)]
        yield from zip(names, opened.fetch(names), strict=True)

    @cached_property
    def _repositories(self) -> dict[tuple[str, str], Repository]:
        """The repositories of all tables, each opened once: all are of one commit."""
        if self.folder:
            return {key: open_folder(self.folder) for key in self._keys()}
        return {(n, at): open_repository(n, at or None, "dataset") for n, at in self._keys()}

    def _keys(self) -> list[tuple[str, str]]:
        """Name and revision of each repository, once."""
        return list(dict.fromkeys(_key(table, self) for table in self._tables()))

    def _tables(self) -> list[Table]:
        return [self.passages, *self.queries, *self.judgements.values()]


def _key(table: Table, source: HubParams) -> tuple[str, str]:
    """Name and revision of the repository of a table."""
    if table.repo:
        return table.repo, table.revision or ""
    return source.repo or "", source.revision or ""
