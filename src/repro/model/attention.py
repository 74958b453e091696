"""Self-attention within each text of a chunk, on a CPU, with its gradient by hand.

All heads of a block are one batched product, faster than torch's attention where weights are
dropped.  Each intermediate of all blocks stands in one buffer, so that nothing is joined.
Source: Vaswani et al. 2017 (arXiv 1706.03762), section 3.2.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from repro.model.chunk import Chunk
from repro.model.dropout import Dropout

LOW = -1e30  # the score of a padded token; finite, so that no precision makes a NaN of it

# Queries, keys and values by head, weights, the same dropped out, and by what they were multiplied.
Saved = tuple[Tensor, Tensor, Tensor, Tensor | None]


class Attention:
    """The blocks of a chunk as attention sees them: t tokens of h heads of d numbers each.

    "By head" means [k, t * h, d], the rows in the order block, text, head, token of k parts;
    "by token" means [t, k * h * d], as linear layers see it.
    """

    def __init__(self, chunk: Chunk, n_heads: int, dtype: torch.dtype) -> None:
        self.blocks, self.n_heads = chunk.blocks, n_heads
        self.low = masks(chunk, dtype)
        if n_heads == 1:
            return
        rows, ends = np.arange(chunk.ids.numel() * n_heads), np.cumsum(self._rows())[:-1]
        by_head = np.concatenate([
            part.reshape(n, length, n_heads).swapaxes(1, 2).ravel()
            for (n, length), part in zip(chunk.blocks, np.split(rows, ends), strict=True)
        ])  # fmt: skip
        token, head = np.divmod(by_head, n_heads)
        three = (3 * token + np.arange(3)[:, None]) * n_heads + head
        self.order = {1: _both_ways(by_head), 3: _both_ways(three.ravel())}

    def forward(self, joint: Tensor, drop: Dropout, rate: float) -> tuple[Tensor, Saved]:
        """The mixed values, float [t, h * d], and what `backward` wants to see again.

        joint: float [t, 3 * h * d], the queries, keys and values of each token.
        """
        heads = self._by_head(joint, 3)
        _, n_rows, width = heads.shape
        weights = joint.new_empty(sum(n * length**2 for n, length in self.blocks) * self.n_heads)
        for (query, key, _), scores, low in zip(
            self._heads(heads), self._squares(weights), self.low, strict=True
        ):
            keys = key.transpose(1, 2)
            torch.baddbmm(scores, query, keys, beta=0, alpha=width**-0.5, out=scores)
            if low is not None:
                scores.view(len(low), self.n_heads, *scores.shape[1:]).add_(low)
            torch.softmax(scores, dim=-1, out=scores)
        scale = drop.scale(weights, rate)
        kept = weights if scale is None else weights * scale
        mixed = joint.new_empty(1, n_rows, width)
        for (_, _, value), part, (out,) in zip(
            self._heads(heads), self._squares(kept), self._heads(mixed), strict=True
        ):
            torch.bmm(part, value, out=out)
        return self._by_token(mixed), (heads, weights, kept, scale)

    def backward(self, gradient: Tensor, saved: Saved) -> Tensor:
        """The gradient at `joint`, from that at the mixed values."""
        heads, weights, kept, scale = saved
        found, scores = heads.new_empty(heads.shape), torch.empty_like(weights)
        factor = heads.shape[2] ** -0.5
        for (at_mixed,), part, (_, _, value), (_, _, at_value), at in zip(
            self._heads(self._by_head(gradient, 1)),
            self._squares(kept),
            self._heads(heads),
            self._heads(found),
            self._squares(scores),
            strict=True,
        ):
            torch.bmm(part.transpose(1, 2), at_mixed, out=at_value)
            torch.bmm(at_mixed, value.transpose(1, 2), out=at)
        if scale is not None:
            scores.mul_(scale)
        for at, part, (query, key, _), (at_query, at_key, _) in zip(
            self._squares(scores),
            self._squares(weights),
            self._heads(heads),
            self._heads(found),
            strict=True,
        ):
            torch._softmax_backward_data(at, part, -1, at.dtype, grad_input=at)
            torch.baddbmm(at_query, at, key, beta=0, alpha=factor, out=at_query)
            torch.baddbmm(at_key, at.transpose(1, 2), query, beta=0, alpha=factor, out=at_key)
        return self._by_token(found)

    def _by_head(self, by_token: Tensor, k: int) -> Tensor:
        width = by_token.shape[1] // (k * self.n_heads)
        if self.n_heads == 1:
            return by_token.view(-1, k, width).transpose(0, 1)
        rows = by_token.view(-1, width).index_select(0, self.order[k][0])
        return rows.view(k, -1, width)

    def _by_token(self, by_head: Tensor) -> Tensor:
        k, n_rows, width = by_head.shape
        if self.n_heads == 1:
            return by_head.transpose(0, 1).reshape(n_rows, k * width)
        rows = by_head.view(-1, width).index_select(0, self.order[k][1])
        return rows.view(n_rows // self.n_heads, -1)

    def _rows(self) -> list[int]:
        return [n * length * self.n_heads for n, length in self.blocks]

    def _heads(self, by_head: Tensor) -> list[list[Tensor]]:
        """Of each block the k parts, each [texts * h, length, d]."""
        return [
            [one.view(n * self.n_heads, length, -1) for one in part.unbind(0)]
            for (n, length), part in zip(
                self.blocks, by_head.split(self._rows(), dim=1), strict=True
            )
        ]

    def _squares(self, flat: Tensor) -> list[Tensor]:
        """The scores of each block, [texts * h, length, length]."""
        parts = flat.split([n * self.n_heads * length**2 for n, length in self.blocks])
        return [
            part.view(-1, length, length)
            for (_, length), part in zip(self.blocks, parts, strict=True)
        ]


def masks(chunk: Chunk, dtype: torch.dtype) -> list[Tensor | None]:
    """What is added to the scores of each block, [n, 1, 1, length]; None where nothing is padded."""
    low = torch.zeros_like(chunk.share, dtype=dtype).masked_fill_(chunk.share == 0, LOW)
    return [
        part.view(n, 1, 1, length) if padded else None
        for (n, length), part, padded in zip(
            chunk.blocks, chunk.split(low), chunk.padded, strict=True
        )
    ]


def _both_ways(order: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
    """An order of rows and the one that undoes it, int64 each."""
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return torch.from_numpy(order), torch.from_numpy(back)
