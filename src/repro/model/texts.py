"""Texts for an encoder: token ids cut into padded chunks, sorted by length so that padding is rare."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from repro.data.tokens import TokenTable
from repro.model.pretrained import Pretrained
from repro.params import Params


class TextParams(Params):
    """How much of a text an encoder sees, special tokens included, and how much at once."""

    query_tokens: Annotated[int, Field(ge=3, le=32_768)] = 32
    passage_tokens: Annotated[int, Field(ge=3, le=32_768)] = 180
    chunk_tokens: Annotated[int, Field(ge=64, le=10_000_000)] = 1024  # padded, embedded at once


@dataclass(frozen=True)
class Chunk:
    """Texts that are embedded together."""

    rows: NDArray[np.int64]  # [n], the row of each text in the caller's order
    ids: Tensor  # int64 [n, t]
    mask: Tensor  # int64 [n, t], 1 where there is a token
    lengths: NDArray[np.int64]  # [n], tokens of each text, special ones included


class Texts:
    """The token table of a collection, as one encoder sees it."""

    def __init__(self, table: TokenTable, source: Pretrained, params: TextParams) -> None:
        self.table, self.source, self.params = table, source, params

    def chunks(self, queries: NDArray[np.integer], passages: NDArray[np.integer]) -> list[Chunk]:
        """Chunks over these queries (rows 0 to b - 1) and passages (rows from b), shortest first.

        A chunk holds at most `chunk_tokens` padded tokens, or one text.
        """
        lengths = np.concatenate([self.query_lengths(queries), self.passage_lengths(passages)])
        order = np.argsort(lengths, kind="stable")
        found, start = [], 0
        for end in range(1, len(order) + 1):
            full = (
                end < len(order)
                and lengths[order[end]] * (end + 1 - start) > self.params.chunk_tokens
            )
            if full or end == len(order):
                rows = order[start:end]
                found.append(self._chunk(rows, lengths[rows], queries, passages))
                start = end
        return found

    def query_lengths(self, queries: NDArray[np.integer]) -> NDArray[np.int64]:
        """Tokens of each query as the encoder sees it, int64 [n], special ones included."""
        return self.table.queries.lengths(queries, self.params.query_tokens)

    def passage_lengths(self, passages: NDArray[np.integer]) -> NDArray[np.int64]:
        """Tokens of each passage as the encoder sees it, int64 [n], special ones included."""
        return self.table.passages.lengths(passages, self.params.passage_tokens)

    def _chunk(
        self,
        rows: NDArray[np.int64],
        lengths: NDArray[np.int64],
        queries: NDArray[np.integer],
        passages: NDArray[np.integer],
    ) -> Chunk:
        """The texts at `rows`, padded to the longest; lengths: theirs, int64 [n]."""
        width = int(lengths.max())
        ids = np.full((len(rows), width), self.source.pad_id, np.int64)
        mask = np.zeros((len(rows), width), np.int64)
        is_query = rows < len(queries)
        special = (self.source.cls_id, self.source.sep_id, self.source.pad_id)
        own_queries, own_passages = (
            queries[rows[is_query]],
            passages[rows[~is_query] - len(queries)],
        )
        for tokens, chosen, indices, limit in (
            (self.table.queries, is_query, own_queries, self.params.query_tokens),
            (self.table.passages, ~is_query, own_passages, self.params.passage_tokens),
        ):
            if len(indices):
                part, real = tokens.batch(indices, limit, *special)
                ids[chosen, : part.shape[1]], mask[chosen, : part.shape[1]] = part, real
        return Chunk(rows, torch.from_numpy(ids), torch.from_numpy(mask), lengths)
