"""Collections of the library ir_datasets, by id; it downloads, checks and reads them.

An optional package: `pip install ir_datasets`.  Its files lie in ~/.ir_datasets (IR_DATASETS_HOME).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from repro.data.collection import Records
from repro.data.sources.source import SourceParams, titled
from repro.errors import UserError, nearest
from repro.hub import file_sha256

RULES = 1  # raise it when the reading rules below change on purpose


class IrDatasetsParams(SourceParams):
    """Which ids, and which judgements count."""

    kind: Literal["ir_datasets"]
    ids: dict[str, str] = Field(min_length=1)  # by part: train: msmarco-passage/train/judged
    min_score: int = Field(default=1, ge=-100, le=100)  # this grade or more is relevant

    def parts(self) -> list[str]:
        """The names given to the ids."""
        return list(self.ids)

    def fingerprint(self) -> dict[str, Any]:
        """Version of the library, and the sha256 of each file that an id is made of, where it tells."""
        files = {}
        for name in self.ids.values():
            opened = _load(name)
            for what in ("docs", "queries", "qrels"):
                path = _path(opened, f"{what}_path")
                if path is not None:
                    files[f"{name}:{what}"] = file_sha256(path)
        return {"version": version("ir_datasets"), "files": files, "rules": RULES}

    def read(self) -> Records:
        """The passages of the first id, queries and judgements of all; in order of their ids."""
        opened = {part: _load(name) for part, name in self.ids.items()}
        first = next(iter(opened.values()))
        dropped: Counter[str] = Counter()
        return Records(
            queries=_queries(list(opened.values())),
            passages=((doc.doc_id, _text(doc), "") for doc in _checked(first.docs_iter())),
            judgements=self._judgements(opened, dropped),
            dropped=dropped,
            by_id=True,
        )

    def _judgements(
        self, opened: dict[str, Any], dropped: Counter[str]
    ) -> Iterator[tuple[str, str, str]]:
        for part, dataset in opened.items():
            for qrel in _checked(dataset.qrels_iter()):
                if qrel.relevance >= self.min_score:
                    yield qrel.query_id, qrel.doc_id, part
                else:
                    dropped[f"judgement with a score under {self.min_score}"] += 1


def _load(name: str) -> Any:
    if find_spec("ir_datasets") is None:
        raise UserError(
            "the package ir_datasets is not installed",
            remedy="pip install ir_datasets (or name another source of the same data)",
        )
    import ir_datasets

    try:
        opened = ir_datasets.load(name)
    except KeyError:
        raise UserError(
            f"ir_datasets has no `{name}`", remedy=nearest(name, list(ir_datasets.registry))
        ) from None
    for what in ("docs", "queries", "qrels"):
        if not opened.has(what):
            raise UserError(
                f"`{name}` of ir_datasets has no {what}",
                remedy="name an id that has documents, queries and judgements, such as "
                "msmarco-passage/dev/small",
            )
    return opened


def _queries(opened: list[Any]) -> Iterator[tuple[str, str]]:
    """Each query once: ids may share a list of queries."""
    seen: dict[str, str] = {}
    for dataset in opened:
        for query in _checked(dataset.queries_iter()):
            text = query.default_text() or ""
            if seen.get(query.query_id) != text:  # an id with two texts is counted as repeated
                seen.setdefault(query.query_id, text)
                yield query.query_id, text


def _text(doc: Any) -> str:
    """Title and text as in the other sources; else what the library takes for the text."""
    if hasattr(doc, "title") and hasattr(doc, "text"):
        return titled(doc.title or "", doc.text or "")
    return doc.default_text() or ""


def _path(opened: Any, what: str) -> Path | None:
    """The file that the library reads, downloaded if it must be; None where it is not one file."""
    try:
        found = getattr(opened, what)()
    except (AttributeError, NotImplementedError):
        return None
    except (OSError, RuntimeError) as error:
        raise _unread(error) from None
    path = Path(str(found))
    return path if path.is_file() else None


def _checked(rows: Iterator[Any]) -> Iterator[Any]:
    """`rows`; what the library raises on the way becomes a `UserError`."""
    try:
        yield from rows
    except (OSError, RuntimeError, ValueError) as error:
        raise _unread(error) from None


def _unread(error: Exception) -> UserError:
    reason = (str(error).strip() or type(error).__name__).splitlines()[0][:160]
    return UserError(
        f"ir_datasets cannot read this: {reason}",
        remedy="is the network there?  Its files can be put into IR_DATASETS_HOME by hand",
    )
