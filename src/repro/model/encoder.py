"""The bi-encoder: one network for queries and passages, pooled, projected and scored.

score(q, p) = scale * <f(q), f(p)>.  With `dot`, f is unnormalised and the scale a constant (1 in
the papers); with `cosine`, f has unit length and the scale is learnt from 1 / `temperature`.
Source: Fang et al. 2024 (arXiv 2403.18684), section 3: shared encoder, v = W * Transformer(x) + b.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn

from repro import seeds
from repro.model import packed, pretrained, tensors
from repro.model.chunk import Chunk
from repro.params import Params

MAX_SCALE = 100.0  # of a learnt temperature, as in CLIP (arXiv 2103.00020)


class EncoderParams(Params):
    """How a backbone becomes a retrieval encoder."""

    pooling: Literal["mean", "cls"] = "mean"
    projection: Annotated[int, Field(ge=1, le=8192)] = 768  # output width; FACTS A1
    scoring: Literal["dot", "cosine"] = "dot"
    temperature: Annotated[float, Field(gt=0, le=100)] = 0.05  # cosine: 1 / scale at the start
    scale: Annotated[float, Field(gt=0, le=1e4)] = 1.0  # dot: constant factor of the score
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.1
    precision: Literal["float32", "bfloat16"] = (
        "float32"  # of the forward pass; weights stay float32
    )


class Encoder(nn.Module):
    """Token ids to vectors; `scale` turns inner products of vectors into scores."""

    def __init__(self, backbone: nn.Module, projection: nn.Linear, params: EncoderParams) -> None:
        super().__init__()
        self.backbone, self.projection, self.params = backbone, projection, params
        start = 1 / params.temperature if params.scoring == "cosine" else params.scale
        self.log_scale = nn.Parameter(
            torch.tensor(math.log(start)), requires_grad=params.scoring == "cosine"
        )

    def forward(self, chunk: Chunk) -> Tensor:
        """Vectors, float32 [n, projection], of the texts of a chunk on this encoder's device."""
        return self.vectors(self.states(chunk), chunk)

    def states(self, chunk: Chunk) -> Tensor:
        """The last hidden states of all tokens of a chunk, padding included, float [t, width]."""
        with self._autocast(chunk):
            if packed.supports(self.backbone):
                return packed.states(self.backbone, chunk)
            return torch.cat([
                self.backbone(input_ids=ids.view(n, -1), attention_mask=real.view(n, -1))
                .last_hidden_state.flatten(0, 1)
                for (n, _), ids, real in zip(
                    chunk.blocks,
                    chunk.split(chunk.ids),
                    chunk.split((chunk.share > 0).long()),
                    strict=True,
                )
            ])  # fmt: skip

    def vectors(self, states: Tensor, chunk: Chunk) -> Tensor:
        """The vectors of the texts whose hidden states these are: pooled, projected, normalised."""
        reduced = self.params.precision == "bfloat16"
        states = states.float() if reduced else states
        if self.params.pooling == "cls":
            pooled = states[torch.from_numpy(chunk.first()).to(states.device)]
        else:
            share = chunk.share.to(states.dtype)
            pooled = torch.cat([
                torch.bmm(weights.view(n, 1, width), part.view(n, width, -1))[:, 0]
                for (n, width), weights, part in zip(
                    chunk.blocks, chunk.split(share), chunk.split(states), strict=True
                )
            ])  # fmt: skip
        with self._autocast(chunk):
            vectors: Tensor = self.projection(pooled)
        vectors = vectors.float() if reduced else vectors
        if self.params.scoring == "cosine":
            vectors = nn.functional.normalize(vectors, dim=-1)
        return vectors

    def scale(self) -> Tensor:
        """The factor of the score, a scalar."""
        return self.log_scale.exp().clamp(max=MAX_SCALE)

    def _autocast(self, chunk: Chunk) -> torch.autocast:
        reduced = self.params.precision == "bfloat16"
        return torch.autocast(chunk.ids.device.type, torch.bfloat16, enabled=reduced)


def build(source: pretrained.Pretrained, params: EncoderParams, seed: int) -> Encoder:
    """An encoder that starts from pre-trained weights, on the CPU, in float32.

    The projection and temperature come with the weights where these carry them in the width asked
    for; else the projection is drawn from `seed` and the temperature is that of `params`.
    """
    backbone = pretrained.backbone(source, dropout=params.dropout)
    projection = nn.Linear(source.width, params.projection)
    encoder = Encoder(backbone, projection, params)
    head = pretrained.head(source)
    with torch.no_grad():
        if head is not None and head["weight"].shape == projection.weight.shape:
            projection.weight.copy_(head["weight"])
            projection.bias.copy_(head["bias"])
            if params.scoring == "cosine":
                encoder.log_scale.copy_(-head["log_temperature"])
        else:
            draw = seeds.stream(seed, "projection").standard_normal(projection.weight.shape)
            projection.weight.copy_(
                torch.from_numpy(draw.astype(np.float32)) / math.sqrt(source.width)
            )
            projection.bias.zero_()
    return encoder


def encode(encoder: Encoder, chunks: list[Chunk], n_texts: int) -> NDArray[np.float32]:
    """Vectors, float32 [n_texts, width], of the texts in `chunks`, without dropout."""
    device = next(encoder.parameters()).device
    out = np.empty((n_texts, encoder.projection.out_features), dtype=np.float32)
    encoder.eval()
    with torch.inference_mode():
        for chunk in chunks:
            out[chunk.rows] = encoder(chunk.to(device)).cpu().numpy()
    encoder.train()
    return out


def save(encoder: Encoder, path: Path) -> None:
    """Write all weights as safetensors, by a rename so that the file is whole or absent."""
    tensors.write(path, encoder.state_dict())


def restore(encoder: Encoder, path: Path) -> None:
    """Load all weights written by `save`."""
    from safetensors.torch import load_file

    encoder.load_state_dict(load_file(path))


@dataclass(frozen=True)
class Size:
    """The four parameter counts of a model, and what its FLOP count needs (FACTS A3, E1)."""

    encoder: int  # the transformer layers alone
    encoder_pooler: int  # with the pooler, where the family has one, whether or not it is used
    drscale: int  # every parameter whose name lacks "embedding": pooler and projection included
    total: int  # embeddings and pooler included, projection not
    layers: int
    width: int
    local_layers: int = 0  # of `layers`: those whose tokens see their neighbours only
    reach: int = 0  # tokens that these see to each side

    def as_dict(self) -> dict[str, int]:
        """The four counts under the column names of the tables."""
        return {
            "n_encoder": self.encoder,
            "n_encoder_pooler": self.encoder_pooler,
            "n_drscale": self.drscale,
            "n_total": self.total,
        }

    def train_flop(self, lengths: NDArray[np.integer]) -> float:
        """FLOPs of a training step over texts of these lengths (tokens, special ones included).

        6 x encoder parameters x tokens, plus attention: 4 x width for each token and token that it
        sees (t^2; in local layers those within reach), a layer, forward, twice that backward (Kaplan
        et al. 2020, section 2.1).  Embeddings are not counted.
        """
        tokens = lengths.astype(np.float64)
        seen = self.layers * (tokens**2).sum()
        if self.local_layers:
            seen -= self.local_layers * (tokens**2 - _within(tokens, self.reach)).sum()
        return float(6 * self.encoder * tokens.sum() + 12 * self.width * seen)

    def encode_flop(self, lengths: NDArray[np.integer]) -> float:
        """FLOPs of one forward pass over texts of these lengths."""
        return self.train_flop(lengths) / 3


def size(source: pretrained.Pretrained, projection: int) -> Size:
    """The parameter counts of a model with a projection of that width, from its configuration."""
    return size_of(source.config, projection)


def size_of(config: Any, projection: int) -> Size:
    """The same from a transformers configuration alone: no weights, no files."""
    backbone, width = pretrained.skeleton(config), int(config.hidden_size)
    embeddings = sum(p.numel() for name, p in backbone.named_parameters() if "embedding" in name)
    inside = sum(p.numel() for p in backbone.parameters()) - embeddings
    pooler = width * width + width if pretrained.has_pooler(config) else 0
    local_layers = (getattr(config, "layer_types", None) or []).count("sliding_attention")
    return Size(
        encoder=inside,
        encoder_pooler=inside + pooler,
        drscale=inside + pooler + width * projection + projection,
        total=inside + pooler + embeddings,
        layers=config.num_hidden_layers,
        width=width,
        local_layers=local_layers,
        reach=config.sliding_window if local_layers else 0,
    )


def _within(tokens: NDArray[np.float64], reach: int) -> NDArray[np.float64]:
    """Pairs of tokens of a text of that many at most `reach` apart, each token with itself included."""
    near = np.minimum(tokens - 1, reach)
    return tokens * (2 * near + 1) - near * (near + 1)
