"""Self-attention within each text of a chunk, on a CPU, with its gradient by hand.

All heads of a block are one batched product.  Every intermediate of a layer stands in one buffer
for all blocks, so that nothing is cut or joined; the gradient needs no copy of the whole a block.
Source: Vaswani et al. 2017 (arXiv 1706.03762), section 3.2.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from repro.model.chunk import Chunk
from repro.model.dropout import Dropout

LOW = -1e30  # the score of a padded token; finite, so that no precision makes a NaN of it


class Attention:
    """The blocks of a chunk as attention sees them: t tokens of h heads of d numbers each.

    "By head" means rows of d numbers in the order block, text, head, token; "by token" the order of
    the chunk's tokens, in each the heads one after another.
    """

    def __init__(self, chunk: Chunk, n_heads: int, dtype: torch.dtype) -> None:
        self.blocks, self.n_heads = chunk.blocks, n_heads
        if n_heads > 1:
            rows, ends = np.arange(chunk.ids.numel() * n_heads), np.cumsum(self._rows)[:-1]
            by_head = np.concatenate([
                part.reshape(n, length, n_heads).swapaxes(1, 2).ravel()
                for (n, length), part in zip(chunk.blocks, np.split(rows, ends), strict=True)
            ])  # fmt: skip
            token, head = np.divmod(by_head, n_heads)
            three = token * 3 * n_heads + head + n_heads * np.arange(3)[:, None]  # q, k, v
            self.by_head, self.by_token = _both_ways(by_head)
            self.three_by_head, self.three_by_token = _both_ways(three.ravel())
        low = torch.where(chunk.share == 0, LOW, 0.0).to(dtype)
        self.low = [
            part.view(n, 1, 1, length) if padded else None
            for (n, length), part, padded in zip(
                chunk.blocks, chunk.split(low), chunk.padded, strict=True
            )
        ]

    def forward(
        self, joint: Tensor, drop: Dropout, rate: float
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """The mixed values, float [t, h * d], and what `backward` wants to see again.

        joint: float [t, 3 * h * d], the queries, keys and values of each token.
        """
        n_tokens, width = len(joint), joint.shape[1] // (3 * self.n_heads)
        heads = self._three_by_head(joint, width)
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
        mixed = joint.new_empty(1, n_tokens * self.n_heads, width)
        for (_, _, value), part, (out,) in zip(
            self._heads(heads), self._squares(kept), self._heads(mixed), strict=True
        ):
            torch.bmm(part, value, out=out)
        if self.n_heads > 1:
            mixed = mixed[0].index_select(0, self.by_token)
        return mixed.view(n_tokens, -1), (heads, weights, kept, scale)

    def backward(self, gradient: Tensor, saved: tuple[Tensor, ...]) -> Tensor:
        """The gradient at `joint`, from that at the mixed values."""
        heads, weights, kept, scale = saved
        width = heads.shape[2]
        factor = width**-0.5
        out = torch.empty(heads.shape, dtype=heads.dtype)
        at_mixed = gradient.view(1, -1, width)
        if self.n_heads > 1:
            at_mixed = at_mixed.index_select(1, self.by_head)
        scratch = torch.empty_like(weights)
        scales = self.low if scale is None else self._squares(scale)
        for (query, key, value), (to_query, to_key, to_value), (mixed,), soft, part, at, times in zip(
            self._heads(heads),
            self._heads(out),
            self._heads(at_mixed),
            self._squares(weights),
            self._squares(kept),
            self._squares(scratch),
            scales,
            strict=True,
        ):
            torch.bmm(part.transpose(1, 2), mixed, out=to_value)
            torch.bmm(mixed, value.transpose(1, 2), out=at)
            if scale is not None:
                at.mul_(times)
            torch._softmax_backward_data(at, soft, -1, at.dtype, grad_input=at)
            torch.baddbmm(to_query, at, key, beta=0, alpha=factor, out=to_query)
            torch.baddbmm(to_key, at.transpose(1, 2), query, beta=0, alpha=factor, out=to_key)
        if self.n_heads > 1:
            out = out.view(-1, width).index_select(0, self.three_by_token)
        else:
            out = out.transpose(0, 1)
        return out.reshape(len(gradient), -1)

    def _three_by_head(self, joint: Tensor, width: int) -> Tensor:
        """Queries, keys and values, float [3, t * h, d], in rows by head."""
        if self.n_heads == 1:
            return joint.view(-1, 3, width).transpose(0, 1)
        return joint.view(-1, width).index_select(0, self.three_by_head).view(3, -1, width)

    @property
    def _rows(self) -> list[int]:
        return [n * length * self.n_heads for n, length in self.blocks]

    def _heads(self, by_head: Tensor) -> list[list[Tensor]]:
        """Of each block the k parts, each [texts * h, length, d], of a tensor [k, t * h, d]."""
        parts = by_head.split(self._rows, dim=1)
        return [
            [one.view(n * self.n_heads, length, -1) for one in part.unbind(0)]
            for (n, length), part in zip(self.blocks, parts, strict=True)
        ]

    def _squares(self, flat: Tensor) -> list[Tensor]:
        """The weights of each block, [texts * h, length, length]."""
        parts = flat.split([n * self.n_heads * length**2 for n, length in self.blocks])
        return [
            part.view(-1, length, length)
            for (_, length), part in zip(self.blocks, parts, strict=True)
        ]


def _both_ways(order: np.ndarray) -> tuple[Tensor, Tensor]:
    """An order of rows and the one that undoes it, int64 each."""
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return torch.from_numpy(order), torch.from_numpy(back)
