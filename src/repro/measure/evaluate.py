"""The contrastive entropy of an encoder on an evaluation set; each text is encoded once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from repro.data.evaluation import EvaluationSet
from repro.measure.entropy import contrastive_entropy
from repro.model.encoder import Encoder, Size, encode
from repro.model.texts import Texts


def pair_entropies(
    encoder: Encoder, texts: Texts, evaluation: EvaluationSet
) -> NDArray[np.float64]:
    """The contrastive entropy of each pair of the set, float64 [m], in nats."""
    queries, passages = evaluation.queries, evaluation.passages
    vectors = encode(encoder, texts.chunks(queries, passages), len(queries) + len(passages))
    scale = float(encoder.scale().detach())
    scores = scale * (vectors[: len(queries)] @ vectors[len(queries) :].T)
    return contrastive_entropy(scores, evaluation.positive, evaluation.negatives)


def reading_flop(size: Size, texts: Texts, evaluation: EvaluationSet) -> float:
    """FLOPs of `pair_entropies`: each query and each passage of the set is encoded once."""
    queries = texts.query_lengths(evaluation.queries)
    return size.encode_flop(np.concatenate([queries, texts.passage_lengths(evaluation.passages)]))
