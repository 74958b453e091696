"""InfoNCE with sampled negatives, and its gradient through texts embedded in chunks.

The loss of a pair is -log softmax of the positive's score among its candidates (nats).  The same
formula, over one positive and K negatives, is the contrastive entropy (`repro.measure.entropy`).
Source: Fang et al. 2024 (arXiv 2403.18684), section 3; gradient caching: Gao et al. 2021
(arXiv 2101.06983).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from repro import seeds

# Embeds chunk i of a step; called again with the same i it must return the same values.
EmbedChunk = Callable[[int], Tensor]


def infonce(scores: Tensor, positive: Tensor, candidates: Tensor) -> Tensor:
    """The loss of each query, float [b], in nats.

    scores: float [b, u], of each query against each distinct passage of the step.
    positive: int64 [b], the column of each query's own positive.
    candidates: bool [b, u], the negatives of each query (its positive may be left out).
    """
    own = torch.zeros_like(candidates).scatter_(1, positive[:, None], True)
    allowed = scores.masked_fill(~(candidates | own), float("-inf"))
    return torch.logsumexp(allowed, dim=1) - scores.gather(1, positive[:, None])[:, 0]


def backward(
    embed: EmbedChunk,
    n_chunks: int,
    order: Tensor,
    loss: Callable[[Tensor], Tensor],
    *,
    cached: bool,
) -> Tensor:
    """Accumulate the gradients of `loss(embeddings)` into the encoder; returns the loss, detached.

    order: int64 [n], the row of `loss`'s embeddings [n, width] that each row of the concatenated
    chunks becomes.
    cached: embed twice, the second time chunk by chunk with the gradient at the embeddings, so
    that the memory of a step is that of one chunk.  The gradient is the same, dropout included.
    """
    if not cached:
        value = loss(_assemble([embed(i) for i in range(n_chunks)], order))
        value.backward()
        return value.detach()
    with torch.no_grad():
        parts = [embed(i) for i in range(n_chunks)]
    leaf = _assemble(parts, order).requires_grad_()
    value = loss(leaf)
    value.backward()
    assert leaf.grad is not None
    for i, gradient in enumerate(leaf.grad[order].split([len(part) for part in parts])):
        embed(i).backward(gradient)
    return value.detach()


def same_dropout(embed: EmbedChunk, seed: int, device: torch.device) -> EmbedChunk:
    """`embed`, its dropout on chunk i drawn from a stream that depends on `seed` and i alone."""
    # Not torch.manual_seed: it queues a call with a stack trace for every GPU that is not there,
    # which costs a millisecond each time and never leaves memory.
    reseed = {
        "cpu": torch.default_generator.manual_seed,
        "cuda": torch.cuda.manual_seed,
        "mps": torch.mps.manual_seed,
    }[device.type]

    def seeded(i: int) -> Tensor:
        reseed(seeds.derive(seed, "dropout", i))
        return embed(i)

    return seeded


def _assemble(parts: Sequence[Tensor], order: Tensor) -> Tensor:
    rows = torch.cat(list(parts))
    return torch.empty_like(rows).index_copy(0, order, rows)
