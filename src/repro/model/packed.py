"""BERT's layers on packed texts: one matrix product over all tokens of a chunk, attention by block.

The network is that of transformers and so are its weights; only the way through it is ours.  It
gives what `BertModel` gives on padded batches (tests/model/test_packed.py), with less padding.
Source: Devlin et al. 2019 (arXiv 1810.04805), section 3; attention: Vaswani et al. 2017, 3.2.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from repro.model.attention import Attention, masks
from repro.model.chunk import Chunk
from repro.model.dropout import Dropout
from repro.model.layer import Layer, Pass, weights_of


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
    """The last hidden states of all tokens of the chunk, padding included, float [t, width].

    In training on a CPU, in full precision, each layer is one function with its gradient by hand
    (`repro.model.layer`); else plain autograd over torch's own attention.
    """
    parts, config = network.embeddings, network.config
    drop = Dropout(chunk.ids.device)
    rate, attention_rate = config.hidden_dropout_prob, config.attention_probs_dropout_prob
    if not network.training:
        rate = attention_rate = 0.0
    words = parts.word_embeddings(chunk.ids) + parts.position_embeddings(chunk.positions)
    x = drop(parts.LayerNorm(words + parts.token_type_embeddings.weight[0]), rate)
    if network.training and x.device.type == "cpu" and not torch.is_autocast_enabled("cpu"):
        attention = Attention(chunk, config.num_attention_heads, x.dtype)
        of = Pass(attention, drop, rate, attention_rate, config.layer_norm_eps)
        for layer in network.encoder.layer:
            x = Layer.apply(x, of, *weights_of(layer))
        return x
    lows = masks(chunk, x.dtype)
    for layer in network.encoder.layer:
        own, output = layer.attention.self, layer.attention.output
        mixed = _attention(own, x, chunk, lows, attention_rate)
        x = output.LayerNorm(x + drop(output.dense(mixed), rate))
        inner = nn.functional.gelu(layer.intermediate.dense(x))
        x = layer.output.LayerNorm(x + drop(layer.output.dense(inner), rate))
    return x


def _attention(own: Any, x: Tensor, chunk: Chunk, lows: list[Tensor | None], rate: float) -> Tensor:
    """Multi-head self-attention within each text, float [t, width], before the output's layer."""
    n_heads, width = own.num_attention_heads, own.attention_head_size
    three = (own.query, own.key, own.value)
    weight = torch.cat([part.weight for part in three])
    bias = torch.cat([part.bias for part in three])
    joint = nn.functional.linear(x, weight, bias)
    out = []
    for (n, length), part, low in zip(chunk.blocks, chunk.split(joint), lows, strict=True):
        heads = part.view(n, length, 3, n_heads, width).permute(2, 0, 3, 1, 4)
        query, key, value = heads.unbind(0)
        mixed = nn.functional.scaled_dot_product_attention(query, key, value, low, dropout_p=rate)
        out.append(mixed.transpose(1, 2).reshape(n * length, n_heads * width))
    return torch.cat(out)
