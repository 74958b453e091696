"""Pins, for every family that is let in: FLOPs near torch's own count, the longest text, dropout rates.

The ones that are made whole, with a tokenizer, are in test_families.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from repro.model import family, pretrained
from repro.model.encoder import size_of

SHAPE = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 128,
    "max_position_embeddings": 66,
    "vocab_size": 60,
    "pad_token_id": 1,
    "embedding_size": 16,  # of ELECTRA: what widens it is not counted, and small in real ones
}
ANGLES = ("eurobert", "modernbert", "nomic_bert")  # positions by rotation: no table that ends
each = pytest.mark.parametrize("model_type", family.KNOWN)


def config_of(model_type: str) -> Any:
    return pretrained.library().AutoConfig.for_model(model_type, **SHAPE)


@each
def test_flop_is_near_that_of_torch(model_type: str) -> None:
    config = config_of(model_type)
    network = pretrained.library().AutoModel.from_config(config, attn_implementation="eager").eval()
    if getattr(network, "pooler", None) is not None:
        network.pooler = None
    ids = torch.full((1, 48), 5)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        network(input_ids=ids, attention_mask=torch.ones_like(ids))
    ours = size_of(config, 16).encode_flop(np.array([48]))
    assert ours == pytest.approx(counter.get_total_flops(), rel=0.06)


@each
def test_the_longest_text_is_the_last_that_is_read(model_type: str) -> None:
    config = config_of(model_type)
    most = family.longest(config)
    assert most == (64 if model_type in family.FROM_PAD else 66)
    network = pretrained.library().AutoModel.from_config(config).eval()

    def read(length: int) -> None:
        ids = torch.full((1, length), 5)
        with torch.no_grad():
            network(input_ids=ids, attention_mask=torch.ones_like(ids))

    read(most)
    if model_type not in ANGLES:
        with pytest.raises((IndexError, RuntimeError)):
            read(most + 1)


@each
def test_every_dropout_of_the_network_is_set(model_type: str) -> None:
    config = config_of(model_type)
    assert family.set_dropout(config, 0.25)
    network = pretrained.library().AutoModel.from_config(config)
    rates = {m.p for m in network.modules() if isinstance(m, torch.nn.Dropout)}
    rates |= {
        float(rate)
        for m in network.modules()
        if isinstance(rate := getattr(m, "attention_dropout", None), float | int)
    }
    assert rates == {0.25}
