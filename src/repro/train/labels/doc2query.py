"""Labels by supervised generation: a sequence-to-sequence model writes the query of a passage."""

from __future__ import annotations

from collections.abc import Sequence

from repro.model.generator import Generator
from repro.seeds import derive
from repro.train.labels.kinds import Doc2query
from repro.train.labels.made import Label, Source


def labels(
    kind: Doc2query, writer: Generator, chosen: Sequence[Source], per_passage: int, seed: int
) -> list[list[Label]]:
    """So many queries of each passage; drawn by the place of the first passage and the seed."""
    said = writer.write(
        [kind.prefix + source.text for source in chosen],
        each=per_passage,
        max_tokens=kind.max_tokens,
        top_k=kind.top_k,
        temperature=kind.temperature,
        read_tokens=kind.passage_tokens,
        seed=derive(seed, "doc2query", chosen[0].place),
    )
    return [[Label(text) for text in texts] for texts in said]
