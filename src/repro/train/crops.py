"""Two random crops of each document of a step: one plays the query, one the passage.

Neither crop prefers the start of a document, so that nothing here resembles a task whose query is
a document's first sentence.  A step's batch is a pure function of the seed and the step.
Source of contrastive learning on crops: Izacard et al. 2022 (arXiv 2112.09118), section 3.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field, model_validator
from tokenizers import Tokenizer
from torch import Tensor

from repro import seeds
from repro.model.chunk import Chunk, parts
from repro.params import Params
from repro.train.vocabulary import SPECIAL

PAD, UNK, CLS, SEP, MASK = range(len(SPECIAL))
Length = Annotated[int, Field(ge=2, le=32_768)]


class Crops(Params):
    """How documents are cropped and masked."""

    query_tokens: tuple[Length, Length] = (6, 32)  # length of the first crop, log-uniform
    passage_tokens: tuple[Length, Length] = (16, 160)  # of the second
    apart: Annotated[float, Field(ge=0, le=1)] = 0.5  # share of pairs whose crops do not overlap
    masked: Annotated[float, Field(ge=0, le=0.9)] = 0.15  # share of the second crop's tokens

    @model_validator(mode="after")
    def _ordered(self) -> Crops:
        for low, high in (self.query_tokens, self.passage_tokens):
            if low > high:
                raise ValueError(f"lengths run from {low} down to {high}\n  remedy: smaller first")
        return self


@dataclass(frozen=True)
class Pieces:
    """The tokens of documents: flat int32 ids, and where each document starts, int64 [n + 1]."""

    ids: NDArray[np.int32]
    starts: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.starts) - 1


@dataclass(frozen=True)
class Masked:
    """A chunk of crops, and the tokens to be predicted in it."""

    chunk: Chunk
    places: Tensor  # int64 [m], the place of each masked token among the chunk's tokens
    labels: Tensor  # int64 [m], the token that stood there


def tokenize(tokenizer: Tokenizer, documents: list[str], least: int) -> Pieces:
    """The documents of at least `least` tokens, without special tokens."""
    found: list[NDArray[np.int32]] = []
    for start in range(0, len(documents), 4096):
        block = tokenizer.encode_batch_fast(
            documents[start : start + 4096], add_special_tokens=False
        )
        found += [np.array(e.ids, np.int32) for e in block if len(e.ids) >= least]
    starts = np.concatenate([[0], np.cumsum([len(ids) for ids in found])]).astype(np.int64)
    return Pieces(np.concatenate([np.empty(0, np.int32), *found]), starts)


def batch(
    pieces: Pieces, params: Crops, seed: int, step: int, n_texts: int
) -> tuple[list[NDArray[np.int32]], list[NDArray[np.int32]]]:
    """The first and the second crops, n_texts each, of the documents of a step (from 0).

    Each epoch goes through all documents once, in an order of its own.
    """
    positions = np.arange(step * n_texts, (step + 1) * n_texts)
    documents = np.empty(n_texts, np.int64)
    for epoch in range(positions[0] // len(pieces), positions[-1] // len(pieces) + 1):
        inside = positions // len(pieces) == epoch
        order = seeds.stream(seed, "order", epoch).permutation(len(pieces))
        documents[inside] = order[positions[inside] % len(pieces)]
    draw = seeds.stream(seed, "crops", step)
    pairs = [_two(pieces, int(document), params, draw) for document in documents]
    return [first for first, _ in pairs], [second for _, second in pairs]


def mask(
    texts: list[NDArray[np.int32]], first: int, params: Crops, vocabulary: int, seed: int, step: int
) -> tuple[list[NDArray[np.int32]], list[NDArray[np.int64]]]:
    """Masks the texts from index `first` on: new texts, and the masked places of each text.

    Of the places 80 % become [MASK], 10 % a random piece, 10 % stay (Devlin et al. 2019, 3.1).
    """
    draw = seeds.stream(seed, "mask", step)
    out, places = list(texts), [np.empty(0, np.int64)] * len(texts)
    for i in range(first, len(texts)):
        chosen = np.flatnonzero(draw.random(len(texts[i])) < params.masked)
        changed = texts[i].copy()
        kind = draw.random(len(chosen))
        changed[chosen[kind < 0.8]] = MASK
        swapped = chosen[(kind >= 0.8) & (kind < 0.9)]
        changed[swapped] = draw.integers(len(SPECIAL), vocabulary, len(swapped))
        out[i], places[i] = changed, chosen
    return out, places


def chunks(
    shown: list[NDArray[np.int32]],
    originals: list[NDArray[np.int32]],
    places: list[NDArray[np.int64]],
    chunk_tokens: int,
    width: int,
) -> list[Masked]:
    """The texts with special tokens, in chunks of similar length; the longest chunk comes last.

    width: of the hidden states, as in `Chunk.of`.
    """
    lengths = np.array([len(text) + 2 for text in shown])
    order = np.argsort(lengths, kind="stable")
    return [
        _chunk(order[part], lengths, shown, originals, places, width)
        for part in parts(lengths[order], chunk_tokens)
    ]


def _chunk(
    rows: NDArray[np.int64],
    lengths: NDArray[np.int64],
    shown: list[NDArray[np.int32]],
    originals: list[NDArray[np.int32]],
    places: list[NDArray[np.int64]],
    width: int,
) -> Masked:
    tokens = np.concatenate([np.concatenate([[CLS], shown[row], [SEP]]) for row in rows])
    chunk = Chunk.of(rows, tokens, lengths[rows], PAD, width)
    where = [first + 1 + places[row] for first, row in zip(chunk.first(), rows, strict=True)]
    labels = np.concatenate([originals[row][places[row]] for row in rows]).astype(np.int64)
    return Masked(chunk, torch.from_numpy(np.concatenate(where)), torch.from_numpy(labels))


def _two(
    pieces: Pieces, document: int, params: Crops, draw: np.random.Generator
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Two random crops of one document."""
    ids = pieces.ids[pieces.starts[document] : pieces.starts[document + 1]]
    first = min(_length(params.query_tokens, draw), max(1, len(ids) // 2))
    second = _length(params.passage_tokens, draw)
    if draw.random() >= params.apart:
        return _crop(ids, first, draw), _crop(ids, second, draw)
    at = int(draw.integers(0, len(ids) - first + 1))
    before, after = ids[:at], ids[at + first :]
    # The other crop comes from one side, a side being as likely as it is long.
    side = before if draw.random() * (len(ids) - first) < at else after
    return ids[at : at + first], _crop(side, second, draw)


def _crop(ids: NDArray[np.int32], length: int, draw: np.random.Generator) -> NDArray[np.int32]:
    length = min(length, len(ids))
    at = int(draw.integers(0, len(ids) - length + 1))
    return ids[at : at + length]


def _length(bounds: tuple[int, int], draw: np.random.Generator) -> int:
    """A whole number between the bounds, uniform on the log scale."""
    low, high = np.log(bounds[0]), np.log(bounds[1] + 1)
    return int(np.exp(draw.uniform(low, high)))
