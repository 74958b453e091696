"""The hand-written gradient of a layer against plain autograd, text by text, with the same dropout.

The reference knows no blocks and no padding: it takes each text's part of the drawn masks.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from test_packed import LENGTHS, bert, some
from torch import Tensor, nn

from repro.model import packed
from repro.model.attention import Attention
from repro.model.chunk import Chunk
from repro.model.dropout import Dropout
from repro.model.layer import Layer, Pass, weights_of

SHAPES = {  # lengths: of blocks with and without padding, of one token, of one text
    "one token": [1],
    "one text": [7],
    "one block, no padding": [4, 4, 4],
    "one block, padded": [3, 4, 4],
    "tokens alone and long": [1, 1, 1, 20, 20, 19],
    "many blocks": [1, 2, 2, 5, 9, 9, 8, 16, 17, 30, 31],
}
HEADS = [1, 2, 4]


class Recorded(Dropout):
    """Dropout that keeps what it has drawn: attention's weights, then the two linear layers'."""

    def __init__(self) -> None:
        super().__init__(torch.device("cpu"))
        self.drawn: list[Tensor] = []

    def scale(self, like: Tensor, rate: float) -> Tensor | None:
        found = super().scale(like, rate)
        self.drawn.append(torch.ones_like(like) if found is None else found)
        return found


def chunk_of(lengths: list[int]) -> Chunk:
    return some(lengths)[1]


def made(n_heads: int) -> Any:
    """A layer of width 16, in float64."""
    return bert(num_attention_heads=n_heads).encoder.layer[0]


def plainly(layer: Any, x: Tensor, chunk: Chunk, n_heads: int, drawn: list[Tensor]) -> Tensor:
    """The layer's states of the real tokens, in float64, from what the formulae say."""
    own, mixing, at, place = layer.attention.self, layer.attention.output, 0, 0
    attention, first, second = drawn
    out, rows = [], iter(chunk.lengths)
    for n, width in chunk.blocks:
        for _ in range(n):
            length = int(next(rows))
            inside = slice(place, place + length)
            mine, heads = x[inside], []
            for head in range(n_heads):
                part = slice(head * 16 // n_heads, (head + 1) * 16 // n_heads)
                query, key, value = (one(mine)[:, part] for one in (own.query, own.key, own.value))
                soft = torch.softmax(query @ key.T / (16 // n_heads) ** 0.5, dim=1)
                square = attention[at : at + width**2].view(width, width)
                heads.append((soft * square[:length, :length]) @ value)
                at += width**2
            mixed = mixing.dense(torch.cat(heads, dim=1)) * first[inside]
            between = mixing.LayerNorm(mine + mixed)
            inner = layer.output.dense(nn.functional.gelu(layer.intermediate.dense(between)))
            out.append(layer.output.LayerNorm(between + inner * second[inside]))
            place += width
    assert at == attention.numel()
    assert place == len(x)
    return torch.cat(out)


def check(lengths: list[int], n_heads: int, rate: float) -> None:
    torch.manual_seed(len(lengths))
    layer, chunk = made(n_heads), chunk_of(lengths)
    real = chunk.share > 0
    start = torch.randn(len(chunk.ids), 16, dtype=torch.float64)
    goal = torch.randn(int(real.sum()), 16, dtype=torch.float64)
    drop = Recorded()
    of = Pass(Attention(chunk, n_heads, torch.float64), drop, rate, rate / 2, 1e-12)
    results = []
    for fast in (True, False):
        x = start.clone().requires_grad_()
        if fast:
            states = Layer.apply(x, of, *weights_of(layer))[real]
        else:
            states = plainly(layer, x, chunk, n_heads, drop.drawn)
        gradients = torch.autograd.grad((states * goal).sum(), [x, *weights_of(layer)])
        results.append((states, *gradients))
    least = 1e-11 * max(float(asked.detach().abs().max()) for asked in results[1])
    for found, asked in zip(*results, strict=True):
        torch.testing.assert_close(found, asked, rtol=1e-9, atol=least)
    assert not torch.allclose(results[1][1][real], torch.zeros(16, dtype=torch.float64))
    assert torch.equal(results[0][1][~real], torch.zeros_like(start[~real]))


@pytest.fixture
def dirty_memory() -> Any:
    """Fresh buffers hold NaN, so that whatever is read before it is written shows."""
    torch.use_deterministic_algorithms(True)
    assert torch.empty(3).isnan().all()
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.usefixtures("dirty_memory")
@pytest.mark.parametrize("rate", [0.0, 0.3])
@pytest.mark.parametrize("n_heads", HEADS)
@pytest.mark.parametrize("shape", SHAPES)
def test_gradients_are_those_of_plain_autograd(shape: str, n_heads: int, rate: float) -> None:
    check(sorted(SHAPES[shape]), n_heads, rate)


@settings(max_examples=40, deadline=None)
@given(LENGTHS, st.sampled_from(HEADS), st.sampled_from([0.0, 0.1, 0.5]))
def test_so_they_are_for_any_lengths(lengths: list[int], n_heads: int, rate: float) -> None:
    check(sorted(lengths), n_heads, rate)


@pytest.mark.parametrize("rate", [0.0, 0.3])
def test_gradients_are_those_of_finite_differences(rate: float) -> None:
    chunk, layer = chunk_of([1, 3, 3, 4]), made(2)
    x = torch.randn(len(chunk.ids), 16, dtype=torch.float64, requires_grad=True)

    def once(x: Tensor, *weights: Tensor) -> Tensor:
        torch.manual_seed(5)
        attention = Attention(chunk, 2, torch.float64)
        of = Pass(attention, Dropout(torch.device("cpu")), rate, rate, 1e-12)
        return Layer.apply(x, of, *weights)[chunk.share > 0]

    assert torch.autograd.gradcheck(once, (x, *weights_of(layer)), atol=1e-5, fast_mode=True)


def test_a_graph_may_be_walked_twice_but_not_be_differentiated_twice() -> None:
    chunk, network = chunk_of([2, 5, 5]), bert(dropout=0.2)
    weight = network.encoder.layer[0].output.dense.weight
    total = packed.states(network, chunk).pow(2).sum()
    first, second = (torch.autograd.grad(total, weight, retain_graph=True)[0] for _ in range(2))
    assert torch.equal(first, second)
    (slope,) = torch.autograd.grad(total, weight, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        slope.sum().backward()


def test_training_and_evaluation_agree_where_nothing_is_dropped() -> None:
    chunk, network = chunk_of([1, 3, 8, 9, 9]), bert()
    real = chunk.share > 0
    trained = packed.states(network, chunk)[real]
    torch.testing.assert_close(
        packed.states(network.eval(), chunk)[real], trained, rtol=0, atol=1e-12
    )


def test_training_in_bfloat16_follows_float32() -> None:
    chunk, network = chunk_of([3, 8, 9, 9]), bert(dropout=0.1).float()
    with torch.autocast("cpu", torch.bfloat16):
        reduced = packed.states(network, chunk)
    reduced.float().pow(2).sum().backward()
    assert all(bool(weight.grad.isfinite().all()) for weight in network.parameters())
    real = chunk.share > 0
    whole = packed.states(network.eval(), chunk)[real]
    similar = nn.functional.cosine_similarity(reduced.float()[real], whole)
    assert 0.9 < float(similar.detach().mean()) < 0.9999  # dropout is on
