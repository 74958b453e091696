"""Texts for an encoder: the ids of queries and passages, in chunks, sorted by length."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from repro.data.tokens import TokenTable, ranges
from repro.model.chunk import Chunk, parts
from repro.model.pretrained import Pretrained
from repro.params import Params, switch


class TextParams(Params):
    """How much of a text an encoder sees, special tokens included, and how much at once."""

    query_tokens: Annotated[int, Field(ge=3, le=32_768)] = 32
    passage_tokens: Annotated[int, Field(ge=3, le=32_768)] = 180
    # Of a query in training alone (SIGIR'24's code: 25); none: as everywhere.
    train_query_tokens: Annotated[int, Field(ge=3, le=32_768)] | None = switch(None)
    chunk_tokens: Annotated[int, Field(ge=64, le=10_000_000)] = 8192  # embedded at once


class Texts:
    """The token table of a collection, as one encoder sees it."""

    def __init__(self, table: TokenTable, source: Pretrained, params: TextParams) -> None:
        self.table, self.source, self.params = table, source, params

    def in_training(self) -> Texts:
        """The same texts, cut as training cuts them."""
        tokens = self.params.train_query_tokens or self.params.query_tokens
        return Texts(
            self.table, self.source, self.params.model_copy(update={"query_tokens": tokens})
        )

    def chunks(self, queries: NDArray[np.integer], passages: NDArray[np.integer]) -> list[Chunk]:
        """Chunks over these queries (rows 0 to b - 1) and passages (rows from b), shortest first.

        A chunk holds at most `chunk_tokens` tokens, padding included, or one text.
        """
        special = self.source.cls_id, self.source.sep_id
        lengths = np.concatenate([self.query_lengths(queries), self.passage_lengths(passages)])
        ids = np.concatenate([
            self.table.queries.flat(queries, self.params.query_tokens, *special),
            self.table.passages.flat(passages, self.params.passage_tokens, *special),
        ])  # fmt: skip
        starts = np.cumsum(lengths) - lengths
        order = np.argsort(lengths, kind="stable")
        found = []
        for part in parts(lengths[order], self.params.chunk_tokens):
            rows = order[part]
            tokens = ids[ranges(starts[rows], lengths[rows])]
            found.append(
                Chunk.of(rows, tokens, lengths[rows], self.source.pad_id, self.source.width)
            )
        return found

    def query_lengths(self, queries: NDArray[np.integer]) -> NDArray[np.int64]:
        """Tokens of each query as the encoder sees it, int64 [n], special ones included."""
        return self.table.queries.lengths(queries, self.params.query_tokens)

    def passage_lengths(self, passages: NDArray[np.integer]) -> NDArray[np.int64]:
        """Tokens of each passage as the encoder sees it, int64 [n], special ones included."""
        return self.table.passages.lengths(passages, self.params.passage_tokens)
