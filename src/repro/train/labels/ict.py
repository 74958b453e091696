"""Inverse cloze labels: a sentence of a passage is its query, what is left is the passage.

As in SIGIR'24's code (FACTS A): sentences have three words or more; where there are not two of them,
the first twenty words ask for the last twenty; else the query is the first sentence, or one at
random, half and half.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from repro.data.text import spans
from repro.seeds import stream
from repro.train.labels.kinds import Ict
from repro.train.labels.made import Label, Source

LEAST_WORDS = 3
EDGE_WORDS = 20
_END = re.compile(r"(?<=[.!?。！？])\s+|(?<=[。！？])|\n+")


def labels(kind: Ict, chosen: Sequence[Source], per_passage: int, seed: int) -> list[list[Label]]:
    """So many labels of each passage, drawn by its place in the order alone."""
    return [_of(source, kind, per_passage, stream(seed, "ict", source.place)) for source in chosen]


def sentences(text: str) -> list[str]:
    """The sentences of a text, cut at full stops, question and exclamation marks and line ends."""
    return [part.strip() for part in _END.split(text) if part.strip()]


def _of(source: Source, kind: Ict, per_passage: int, random: np.random.Generator) -> list[Label]:
    parts = sentences(source.text)
    long = [i for i, part in enumerate(parts) if len(spans(part)) >= LEAST_WORDS]
    if len(long) < 2:
        words = spans(source.text) or [(0, 0)]
        ends = source.text[: words[:EDGE_WORDS][-1][1]], source.text[words[-EDGE_WORDS:][0][0] :]
        return [Label(*(" ".join(end.split()) for end in ends))]
    found = []
    for _ in range(per_passage):
        place = long[0] if random.random() < kind.first else int(random.choice(long))
        rest = " ".join(part for i, part in enumerate(parts) if i != place)
        found.append(Label(parts[place], rest))
    return found
