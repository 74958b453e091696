"""The loss against a sum written out, and chunked gradients against the whole one.

Pins: -log softmax over positive and candidates only; gradient caching is exact (float64, 1e-10)
with dropout on and off, with shared, own and in-batch negatives; dropout is really on.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from repro.model.infonce import backward, infonce, same_dropout


def test_equal_scores_give_the_log_of_the_count() -> None:
    scores = torch.zeros(3, 257, dtype=torch.float64)
    loss = infonce(scores, torch.arange(3), torch.ones(3, 257, dtype=torch.bool))
    assert torch.allclose(loss, torch.full((3,), math.log(257), dtype=torch.float64), atol=1e-15)


def test_only_the_positive_and_the_candidates_count() -> None:
    scores = torch.tensor([[1.0, 2.0, 9.0, 0.5]], dtype=torch.float64)
    candidates = torch.tensor([[False, True, False, True]])
    by_hand = -math.log(math.exp(1.0) / (math.exp(1.0) + math.exp(2.0) + math.exp(0.5)))
    assert infonce(scores, torch.tensor([0]), candidates).item() == pytest.approx(
        by_hand, abs=1e-15
    )
    without = infonce(scores, torch.tensor([0]), torch.zeros(1, 4, dtype=torch.bool))
    assert without.item() == 0.0


class Setup:
    """A small network with dropout, three chunks of texts, and a loss that couples all rows."""

    def __init__(self, dropout: float, candidates: Tensor) -> None:
        torch.manual_seed(3)
        self.network = nn.Sequential(
            nn.Linear(6, 8), nn.Tanh(), nn.Dropout(dropout), nn.Linear(8, 5)
        ).double()
        self.chunks = [torch.randn(n, 6, dtype=torch.float64) for n in (5, 4, 3)]
        self.order = torch.randperm(12)
        self.candidates = candidates

    def loss(self, vectors: Tensor) -> Tensor:
        scores = vectors[:4] @ vectors[4:].T
        return infonce(scores, torch.tensor([0, 3, 5, 1]), self.candidates).mean()

    def gradients(self, *, cached: bool, seed: int = 1) -> tuple[float, list[Tensor]]:
        self.network.zero_grad()
        embed: Callable[[int], Tensor] = lambda i: self.network(self.chunks[i])  # noqa: E731
        value = backward(
            same_dropout(embed, seed, torch.device("cpu")), 3, self.order, self.loss, cached=cached
        )
        return value.item(), [
            p.grad.clone() for p in self.network.parameters() if p.grad is not None
        ]


SHARED = torch.zeros(4, 8, dtype=torch.bool).index_fill(1, torch.tensor([2, 4, 6, 7]), True)
OWN = torch.rand(4, 8, generator=torch.Generator().manual_seed(1)) < 0.5
IN_BATCH = SHARED.index_fill(1, torch.tensor([0, 3, 5, 1]), True)


@pytest.mark.parametrize("dropout", [0.0, 0.4])
@pytest.mark.parametrize("candidates", [SHARED, OWN, IN_BATCH], ids=["shared", "own", "in batch"])
def test_cached_chunks_equal_the_full_gradient(dropout: float, candidates: Tensor) -> None:
    setup = Setup(dropout, candidates)
    whole, cached = setup.gradients(cached=False), setup.gradients(cached=True)
    assert whole[0] == pytest.approx(cached[0], abs=1e-12)
    for full, chunked in zip(whole[1], cached[1], strict=True):
        assert torch.allclose(full, chunked, rtol=0, atol=1e-10)
        assert full.abs().max() > 1e-3


def test_dropout_is_on_and_follows_the_seed() -> None:
    setup = Setup(0.4, SHARED)
    assert setup.gradients(cached=True, seed=1)[0] == setup.gradients(cached=True, seed=1)[0]
    assert setup.gradients(cached=True, seed=1)[0] != setup.gradients(cached=True, seed=2)[0]


def test_rows_are_put_back_in_the_callers_order() -> None:
    setup = Setup(0.0, SHARED)
    with torch.no_grad():
        rows = setup.network(torch.cat(setup.chunks))
    seen = {}

    def loss(vectors: Tensor) -> Tensor:
        seen["vectors"] = vectors.detach()
        return vectors.sum()

    backward(lambda i: setup.network(setup.chunks[i]), 3, setup.order, loss, cached=False)
    torch.testing.assert_close(seen["vectors"][setup.order], rows)  # BLAS rounds by shape
