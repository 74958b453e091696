"""What is trained in pre-training: an encoder, and a head that predicts masked tokens."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from repro import seeds
from repro.model.encoder import Encoder
from repro.model.infonce import infonce
from repro.train.crops import Masked


class Learner(nn.Module):
    """An encoder with the head that predicts masked tokens; the head is not shipped."""

    def __init__(self, encoder: Encoder, width: int, n_pieces: int, seed: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.dense, self.norm = nn.Linear(width, width), nn.LayerNorm(width)
        self.bias = nn.Parameter(torch.zeros(n_pieces))
        with torch.no_grad():
            for name, layer in (("projection", encoder.projection), ("mlm", self.dense)):
                values = seeds.stream(seed, name).standard_normal(layer.weight.shape)
                layer.weight.copy_(torch.from_numpy(values / math.sqrt(width)))
                layer.bias.zero_()

    def forward(self, part: Masked) -> tuple[Tensor, Tensor]:
        """Vectors, float [n, output], and the summed loss of the masked tokens, nats."""
        states = self.encoder.states(part.chunk)
        vectors = self.encoder.vectors(states, part.chunk)
        if not len(part.labels):
            return vectors, vectors.new_zeros(())
        states = states[part.places]
        states = self.norm(nn.functional.gelu(self.dense(states)))
        network: Any = self.encoder.backbone
        embeddings = network.get_input_embeddings().weight
        logits = nn.functional.linear(states, embeddings, self.bias)
        return vectors, nn.functional.cross_entropy(logits, part.labels, reduction="sum")


def both_ways(first: Tensor, second: Tensor, scale: Tensor) -> Tensor:
    """InfoNCE of each crop against the partners of all, in both directions, mean in nats."""
    scores = scale * (first @ second.T)
    own = torch.arange(len(scores))
    everyone = torch.ones_like(scores, dtype=torch.bool)
    return (infonce(scores, own, everyone).mean() + infonce(scores.T, own, everyone).mean()) / 2
