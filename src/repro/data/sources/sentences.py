"""Pairs cut out of documentation: an entry's first sentence asks for the rest of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from pydantic import Field

from repro.data.collection import Records
from repro.data.sources.source import SourceParams
from repro.data.text import words


class SentenceParams(SourceParams):
    """Which entries of a documentation count."""

    min_query_words: int = Field(default=5, ge=1, le=100)
    min_passage_words: int = Field(default=20, ge=1, le=1000)

    def records(
        self, entries: Iterable[tuple[str, str, str, str]], dropped: Counter[str]
    ) -> Records:
        """The pairs of `entries`: group, name within it, first sentence and the rest.

        dropped: what was left out so far, and why; what is left out here is added.
        """
        rows: list[tuple[str, str, str, str]] = []
        for group, name, query, passage in entries:
            if not passage:
                dropped["entry of a single sentence"] += 1
            elif len(words(query)) < self.min_query_words:
                dropped[f"entry with a first sentence under {self.min_query_words} words"] += 1
            elif len(words(passage)) < self.min_passage_words:
                dropped[f"entry with a rest under {self.min_passage_words} words"] += 1
            else:
                rows.append((f"{group}/{name}", query, passage, group))
        return Records(
            queries=((identifier, query) for identifier, query, _, _ in rows),
            passages=((identifier, passage, group) for identifier, _, passage, group in rows),
            judgements=((identifier, identifier) for identifier, *_ in rows),
            dropped=dropped,
        )
