"""The fast path against the plain one: transformers on one padded batch, in values and gradients."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from transformers import BertConfig, BertModel, RobertaConfig, RobertaModel

from repro.model import chunk as chunks
from repro.model import packed
from repro.model.chunk import Chunk
from repro.model.dropout import Dropout
from repro.model.encoder import Encoder, EncoderParams

PAD = 0
LENGTHS = st.lists(st.integers(2, 24), min_size=1, max_size=40)


def bert(dropout: float = 0.0, **options: Any) -> BertModel:
    torch.manual_seed(0)
    sizes = {
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 48,
        "vocab_size": 50,
        "max_position_embeddings": 32,
        "hidden_dropout_prob": dropout,
        "attention_probs_dropout_prob": dropout,
    }
    network = BertModel(BertConfig(**{**sizes, **options}), add_pooling_layer=False)
    with torch.no_grad():  # LayerNorms and biases that matter
        for weight in network.parameters():
            weight += 0.1 * torch.randn_like(weight)
    return network.double()


def some(lengths: list[int]) -> tuple[list[np.ndarray], Chunk]:
    """Random texts of these lengths, and their chunk."""
    draw = np.random.default_rng(len(lengths))
    texts = [draw.integers(1, 50, n) for n in lengths]
    order = np.argsort(lengths, kind="stable")
    tokens = np.concatenate([texts[row] for row in order])
    return texts, Chunk.of(order, tokens, np.array(lengths)[order], PAD, 16)


def plainly(network: Any, texts: list[np.ndarray]) -> tuple[Tensor, Tensor]:
    """States [n, t, width] of one padded batch through transformers, and its mask [n, t]."""
    width = max(map(len, texts))
    ids = torch.tensor([[*text, *[PAD] * (width - len(text))] for text in texts])
    mask = torch.tensor([[1] * len(text) + [0] * (width - len(text)) for text in texts])
    return network(input_ids=ids, attention_mask=mask).last_hidden_state, mask


@settings(max_examples=30, deadline=None)
@given(LENGTHS)
def test_states_and_gradients_are_those_of_transformers(lengths: list[int]) -> None:
    network = bert()
    texts, chunk = some(lengths)
    goal = torch.randn(len(texts), 16, generator=torch.Generator().manual_seed(1)).double()

    def gradients(pooled: Tensor) -> list[Tensor]:
        return torch.autograd.grad((pooled * goal).sum().exp(), list(network.parameters()))

    plain, mask = plainly(network, texts)
    wanted = gradients((plain * mask[..., None]).sum(1) / mask.sum(1, keepdim=True))
    states = packed.states(network, chunk)
    pooled = torch.zeros(len(texts), 16, dtype=torch.float64)
    ends = [
        (row, a, a + n) for row, a, n in zip(chunk.rows, chunk.first(), chunk.lengths, strict=True)
    ]
    for row, start, end in ends:
        torch.testing.assert_close(states[start:end], plain[row, : end - start], rtol=0, atol=1e-10)
    pooled = torch.stack([states[a:e].mean(0) for _, a, e in sorted(ends)])
    least = 1e-9 * max(float(asked.abs().max()) for asked in wanted)  # keys' biases have none
    for found, asked in zip(gradients(pooled), wanted, strict=True):
        torch.testing.assert_close(found, asked, rtol=1e-8, atol=least)


@settings(max_examples=60, deadline=None)
@given(LENGTHS, st.floats(0, 200))
def test_blocks_hold_every_text_at_the_least_cost(lengths: list[int], price: float) -> None:
    rising = np.sort(np.array(lengths))
    blocks = chunks.cut(rising, price)
    assert sum(n for n, _ in blocks) == len(rising)
    ends = np.cumsum([n for n, _ in blocks])
    assert [width for _, width in blocks] == rising[ends - 1].tolist()
    cost = sum(n * width for n, width in blocks) + price * len(blocks)
    assert cost <= len(rising) * rising[-1] + price + 1e-6  # one block
    assert cost <= rising.sum() + price * len(np.unique(rising)) + 1e-6  # no padding
    draw = np.random.default_rng(0)
    for _ in range(20):  # any other cut costs as much or more
        chosen = np.flatnonzero(draw.random(len(rising)) < 0.3) + 1
        edges = np.unique([0, *chosen, len(rising)])
        other = sum((b - a) * rising[b - 1] + price for a, b in itertools.pairwise(edges))
        assert cost <= other + 1e-6


@settings(max_examples=60, deadline=None)
@given(LENGTHS, st.integers(24, 300))
def test_a_chunk_keeps_every_token_in_its_place(lengths: list[int], most: int) -> None:
    rising = np.sort(np.array(lengths))
    assert np.concatenate([rising[part] for part in chunks.parts(rising, most)]).tolist() == (
        rising.tolist()
    )
    texts, chunk = some(lengths)
    for row, start, length in zip(chunk.rows, chunk.first(), chunk.lengths, strict=True):
        inside = slice(start, start + length)
        assert chunk.ids[inside].tolist() == texts[row].tolist()
        assert chunk.positions[inside].tolist() == list(range(length))
        assert chunk.share[inside].sum() == pytest.approx(1)
    assert int((chunk.share > 0).sum()) == sum(lengths)
    assert all(bool((part == 0).any()) == padded for part, padded in zip(
        chunk.split(chunk.share), chunk.padded, strict=True))  # fmt: skip


@pytest.mark.parametrize("kind", ["roberta", "gelu_new"])
def test_other_networks_go_through_transformers(kind: str) -> None:
    texts, chunk = some([3, 9, 4, 4])
    if kind == "roberta":
        sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
        config = RobertaConfig(**sizes, vocab_size=50, intermediate_size=20, pad_token_id=PAD)
        network: Any = RobertaModel(config, add_pooling_layer=False).double().eval()
    else:
        network = bert(hidden_act="gelu_new").eval()
    assert not packed.supports(network)
    encoder = Encoder(network, torch.nn.Linear(16, 8).double(), EncoderParams(projection=8))
    plain, _ = plainly(network, texts)
    states = encoder.states(chunk)
    for row, start, length in zip(chunk.rows, chunk.first(), chunk.lengths, strict=True):
        torch.testing.assert_close(states[start : start + length], plain[row, :length])


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.5, 0.9])
def test_dropout_keeps_the_mean_and_drops_its_share(rate: float) -> None:
    torch.manual_seed(3)
    ones = torch.ones(400, 500)
    out = Dropout(torch.device("cpu"))(ones, rate)
    assert float((out == 0).float().mean()) == pytest.approx(rate, abs=4 * (rate / 2e5) ** 0.5)
    torch.testing.assert_close(out[out > 0], torch.full_like(out[out > 0], 1 / (1 - rate)))
    rows = (out == 0).double()
    assert rows.mean(1).std() == pytest.approx((rate * (1 - rate) / 500) ** 0.5, rel=0.2, abs=1e-9)


def test_dropout_repeats_with_torchs_generator_and_is_off_in_evaluation() -> None:
    _, chunk = some([5, 7, 7, 3])
    network = bert(dropout=0.2)

    def once(seed: int) -> Tensor:
        torch.manual_seed(seed)
        return packed.states(network, chunk)

    assert torch.equal(once(1), once(1))
    assert not torch.equal(once(1), once(2))
    network.eval()
    assert torch.equal(once(1), once(2))


@pytest.mark.slow
def test_dropout_acts_where_transformers_applies_it() -> None:
    """Over many draws the states have the mean and the spread of the plain path's."""
    texts, chunk = some([6, 6, 6])  # one block without padding: row after row
    network = bert(dropout=0.2)
    with torch.no_grad():
        ours = torch.stack([packed.states(network, chunk).view(3, 6, 16) for _ in range(600)])
        plain = torch.stack([plainly(network, texts)[0] for _ in range(600)])
    error = ((ours.var(0) + plain.var(0)) / 600).sqrt()
    assert float(((ours.mean(0) - plain.mean(0)) / error).abs().max()) < 5
    assert float(ours.var(0).mean() / plain.var(0).mean()) == pytest.approx(1, abs=0.1)
