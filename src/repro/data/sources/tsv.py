"""Tables of ids: MS MARCO's and T2Ranking's own files, with or without a header.

`corpus` and `queries` are lines of an id, a tab and the text; `qrels` are TREC's four columns (query,
iteration, passage, grade), three (query, passage, grade) or two (query, passage).  A first line is a
header where it starts with a name such as pid or qid.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from typing import Any, Literal

from repro.data.collection import Records
from repro.data.sources.files import File
from repro.data.sources.pairs import Encoding, Paths
from repro.data.sources.rows import as_grade
from repro.data.sources.source import SourceParams
from repro.errors import UserError

RULES = 1  # raise it when the reading rules below change on purpose
HEADERS = {
    "id", "_id", "pid", "qid", "did", "docid", "doc_id", "doc-id", "doc_no", "docno", "corpus-id",
    "corpus_id", "passage_id", "passage-id", "passageid", "query_id", "query-id", "queryid", "query",
}  # fmt: skip


class TsvParams(SourceParams):
    """Where the files are, and which judgements count."""

    kind: Literal["tsv"]
    corpus: Paths
    queries: Paths
    qrels: Paths
    min_score: int = (
        1  # a judgement of this grade or more is relevant; two columns are all relevant
    )
    header: bool | None = None  # of all files; unset: told by the first line
    encoding: Encoding = "utf-8"

    def parts(self) -> list[str]:
        """The names of the files of judgements."""
        return [path.name for path in self.qrels]

    def fingerprint(self) -> dict[str, Any]:
        """The digest of each file that is read."""
        files = {
            name: [File.at(path).digest() for path in paths] for name, paths in self.paths().items()
        }
        return {"files": files, "rules": RULES}

    def read(self) -> Records:
        """Passages, queries and judgements, in order of their ids."""
        dropped: Counter[str] = Counter()
        repaired: Counter[str] = Counter()
        corpus, queries, qrels = (
            [File.at(path) for path in paths] for paths in (self.corpus, self.queries, self.qrels)
        )
        return Records(
            queries=(row for file in queries for row in self._texts(file, repaired)),
            passages=((*row, "") for file in corpus for row in self._texts(file, repaired)),
            judgements=(
                (*pair, part)
                for part, file in zip(self.parts(), qrels, strict=True)
                for pair in self._judgements(file, dropped, repaired)
            ),
            dropped=dropped,
            repaired=repaired,
            by_id=True,
        )

    def _texts(self, file: File, repaired: Counter[str]) -> Iterator[tuple[str, str]]:
        for number, line in self._body(file, repaired):
            name, tab, text = line.partition("\t")
            if not tab:
                raise UserError(
                    f"expected an id, a tab and a text, found {line[:60]!r}",
                    where=f"{file.place}:{number}",
                    remedy="two columns, separated by a tab",
                )
            yield name, text

    def _judgements(
        self, file: File, dropped: Counter[str], repaired: Counter[str]
    ) -> Iterator[tuple[str, str]]:
        for number, line in self._body(file, repaired):
            fields = line.split("\t") if "\t" in line else line.split()
            graded = len(fields) > 2
            grade = as_grade(fields[-1]) if graded else self.min_score
            if not 2 <= len(fields) <= 4 or grade is None:
                raise UserError(
                    "expected query, passage, and a whole-number grade if any (TREC: query, "
                    f"iteration, passage, grade), found {line[:60]!r}",
                    where=f"{file.place}:{number}",
                    remedy="two to four columns, separated by tabs; `header: true` skips first lines",
                )
            if grade >= self.min_score:
                yield fields[0], fields[2 if len(fields) == 4 else 1]
            else:
                dropped[f"judgement with a score under {self.min_score}"] += 1

    def _body(self, file: File, repaired: Counter[str]) -> Iterator[tuple[int, str]]:
        """The lines below the header."""
        lines = file.lines(repaired, self.encoding)
        for number, line in itertools.islice(lines, 1):
            header = self.header
            if header is None:
                header = line.split(maxsplit=1)[0].strip('"').casefold() in HEADERS
            if not header:
                yield number, line
        yield from lines
