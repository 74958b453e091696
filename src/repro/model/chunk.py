"""Texts packed for an encoder: in blocks of one width each, cut so that little is padded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from repro.data.tokens import ranges

BLOCK_COST = (
    2048  # of a block's calls, in numbers of a token's hidden state: 16 tokens of width 128
)


@dataclass(frozen=True)
class Chunk:
    """Texts that are embedded together, shortest first: n texts in t tokens, padding included."""

    rows: NDArray[np.int64]  # [n], the row of each text in the caller's order
    lengths: NDArray[np.int64]  # [n], tokens of each text, special ones included
    blocks: list[tuple[int, int]]  # texts and width of each block
    padded: list[bool]  # whether a block holds padding
    ids: Tensor  # int64 [t]
    positions: Tensor  # int64 [t], from 0 in each text
    share: Tensor  # float32 [t], one over the length of the token's text; 0: padding

    @classmethod
    def of(
        cls,
        rows: NDArray[np.int64],
        tokens: NDArray[np.integer],
        lengths: NDArray[np.int64],
        pad_id: int,
        width: int,
    ) -> Chunk:
        """The texts `rows`, whose ids stand one after another in `tokens`, of rising length.

        width: of the hidden states.  Wide networks work long on a token, so that they get more
        blocks and less padding.
        """
        blocks = cut(lengths, BLOCK_COST / width)
        counts, widths = np.array(blocks, np.int64).T
        padded_to = np.repeat(widths, counts)
        start = np.cumsum(padded_to) - padded_to
        inside = ranges(start, lengths)
        ids = np.full(int(padded_to.sum()), pad_id, np.int64)
        ids[inside] = tokens
        share = np.zeros(len(ids), np.float32)
        share[inside] = np.repeat(1 / lengths, lengths)
        positions = np.arange(len(ids)) - np.repeat(start, padded_to)
        ends = np.cumsum(counts)
        padded = [bool(lengths[e - n] < w) for e, n, w in zip(ends, counts, widths, strict=True)]
        tensors = (torch.from_numpy(each) for each in (ids, positions, share))
        return cls(rows, lengths, blocks, padded, *tensors)

    def to(self, device: torch.device) -> Chunk:
        """The same chunk on a device."""
        if device == self.ids.device:
            return self
        moved = {name: getattr(self, name).to(device) for name in ("ids", "positions", "share")}
        return replace(self, **moved)

    def split(self, per_token: Tensor) -> Sequence[Tensor]:
        """The part of each block of a tensor [t, ...]."""
        parts: Sequence[Tensor] = per_token.split([n * width for n, width in self.blocks])
        return parts

    def first(self) -> NDArray[np.int64]:
        """The place of each text's first token, int64 [n]."""
        width = np.repeat(*np.array(self.blocks, np.int64).T[::-1])
        return np.cumsum(width) - width


def cut(lengths: NDArray[np.int64], block_tokens: float) -> list[tuple[int, int]]:
    """Blocks (texts, width) over rising lengths whose padding and number cost least together."""
    widths, counts = np.unique(lengths, return_counts=True)
    upto = np.concatenate([[0], np.cumsum(counts)])
    costs = (upto[1:, None] - upto[:-1]) * widths[
        :, None
    ] + block_tokens  # of a block, by end, start
    least, start = np.zeros(len(upto)), np.zeros(len(upto), np.int64)
    for end in range(1, len(upto)):
        cost = least[:end] + costs[end - 1, :end]
        start[end] = best = cost.argmin()
        least[end] = cost[best]
    blocks, end = [], len(upto) - 1
    while end:
        blocks.append((int(upto[end] - upto[start[end]]), int(widths[end - 1])))
        end = start[end]
    return blocks[::-1]


def parts(lengths: NDArray[np.int64], chunk_tokens: int) -> list[slice]:
    """Rising lengths cut so that each part has at most `chunk_tokens`, padded to its longest, or one text."""
    found, start = [], 0
    for end in range(1, len(lengths) + 1):
        if end == len(lengths) or lengths[end] * (end + 1 - start) > chunk_tokens:
            found.append(slice(start, end))
            start = end
    return found
