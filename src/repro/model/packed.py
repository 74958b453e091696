"""BERT's layers on packed texts: one matrix product over all tokens of a chunk, attention by block.

The network is that of transformers and so are its weights; only the way through it is ours.  It
gives what `BertModel` gives on padded batches (tests/model/test_packed.py), with less padding.
Source: Devlin et al. 2019 (arXiv 1810.04805), section 3; attention: Vaswani et al. 2017, 3.2.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from repro.model.attention import LOW, Attention
from repro.model.chunk import Chunk
from repro.model.dropout import Dropout
from repro.model.layer import Layer, Pass, weights


def supports(network: Any) -> bool:
    """Whether `states` knows this network: BERT as an encoder, with GELU and absolute positions."""
    config = network.config
    return (
        config.model_type == "bert"
        and config.hidden_act == "gelu"
        and not getattr(config, "is_decoder", False)
        and getattr(config, "position_embedding_type", "absolute") in (None, "absolute")
    )


def states(network: Any, chunk: Chunk) -> Tensor:
    """The last hidden states of all tokens of the chunk, padding included, float [t, width]."""
    parts, config = network.embeddings, network.config
    drop = Dropout(chunk.ids.device)
    rate, attention_rate = config.hidden_dropout_prob, config.attention_probs_dropout_prob
    if not network.training:
        rate = attention_rate = 0.0
    words = parts.word_embeddings(chunk.ids) + parts.position_embeddings(chunk.positions)
    x = drop(parts.LayerNorm(words + parts.token_type_embeddings.weight[0]), rate)
    if x.device.type == "cpu" and not torch.is_autocast_enabled("cpu"):
        of = Pass(
            Attention(chunk, config.num_attention_heads, x.dtype),
            drop, rate, attention_rate, config.layer_norm_eps,
        )
        for layer in network.encoder.layer:
            x = Layer.apply(x, of, *weights(layer))
        return x
    masks = _masks(chunk, x)
    for layer in network.encoder.layer:
        own, output = layer.attention.self, layer.attention.output
        mixed = _attention(own, x, chunk, masks, drop, attention_rate)
        x = output.LayerNorm(x + drop(output.dense(mixed), rate))
        inner = nn.functional.gelu(layer.intermediate.dense(x))
        x = layer.output.LayerNorm(x + drop(layer.output.dense(inner), rate))
    return x


def _attention(
    own: Any, x: Tensor, chunk: Chunk, masks: list[Tensor | None], drop: Dropout, rate: float
) -> Tensor:
    """Multi-head self-attention within each text, float [t, width], before the output's layer."""
    n_heads, width = own.num_attention_heads, own.attention_head_size
    three = (own.query, own.key, own.value)
    weight = torch.cat([part.weight for part in three])
    bias = torch.cat([part.bias for part in three])
    joint = nn.functional.linear(x, weight, bias)
    out = []
    for (n, length), part, mask in zip(chunk.blocks, chunk.split(joint), masks, strict=True):
        heads = part.view(n, length, 3, n_heads, width).permute(2, 0, 3, 1, 4)
        attend = _by_products if x.device.type == "cpu" else _by_sdpa
        mixed = attend(heads, mask, drop, rate)
        out.append(mixed.transpose(1, 2).reshape(n * length, n_heads * width))
    return torch.cat(out)


def _by_products(heads: Tensor, mask: Tensor | None, drop: Dropout, rate: float) -> Tensor:
    """Attention of one block as batched products: on a CPU faster than SDPA with dropout.

    heads: float [3, n, heads, length, width]: queries, keys, values.  Returns [n, heads, ...].
    """
    _, n, n_heads, length, width = heads.shape
    query, key, value = heads.reshape(3, n * n_heads, length, width).unbind(0)
    if mask is None:
        scores = torch.bmm(query * width**-0.5, key.transpose(1, 2))
    else:
        low = mask.repeat_interleave(n_heads, dim=0)
        scores = torch.baddbmm(low, query, key.transpose(1, 2), alpha=width**-0.5)
    weights = drop(torch.softmax(scores, dim=-1), rate)
    return torch.bmm(weights, value).view(n, n_heads, length, width)


def _by_sdpa(heads: Tensor, mask: Tensor | None, _drop: Dropout, rate: float) -> Tensor:
    query, key, value = heads.unbind(0)
    low = None if mask is None else mask[:, None]
    attention: Tensor = nn.functional.scaled_dot_product_attention(
        query, key, value, low, dropout_p=rate
    )
    return attention


def _masks(chunk: Chunk, like: Tensor) -> list[Tensor | None]:
    """What is added to the scores of each block, [n, 1, length]; None where nothing is padded."""
    low = torch.zeros_like(chunk.share, dtype=like.dtype).masked_fill_(chunk.share == 0, LOW)
    return [
        part.view(n, 1, length) if padded else None
        for (n, length), part, padded in zip(
            chunk.blocks, chunk.split(low), chunk.padded, strict=True
        )
    ]
