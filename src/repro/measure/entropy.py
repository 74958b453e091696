"""Contrastive entropy: how many nats it takes to tell a judged passage from K random ones.

For a judged pair (q, p+) and K passages p- drawn at random: -log softmax of s(q, p+) among the
K + 1 scores, averaged over the pairs.  Equal scores give ln(K + 1).  Source: Fang et al. 2024
(arXiv 2403.18684), section 3.3; MAEL is its minimum over a training run on the validation pairs.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray


def contrastive_entropy(
    scores: NDArray[np.floating], positive: NDArray[np.integer], negatives: NDArray[np.integer]
) -> NDArray[np.float64]:
    """The entropy of each pair, float64 [m], in nats.

    scores: float [m, u], of each pair's query against u distinct passages.
    positive: int [m], the column of each pair's judged passage.
    negatives: int [m, K], the columns of its K negatives.
    """
    rows = np.arange(len(scores))[:, None]
    ahead = scores[rows, negatives].astype(np.float64) - scores[rows, positive[:, None]]
    top = np.maximum(ahead.max(axis=1), 0.0)
    return top + np.log(np.exp(-top) + np.exp(ahead - top[:, None]).sum(axis=1))


def chance(k: int) -> float:
    """The contrastive entropy of a scorer that knows nothing, ln(K + 1), in nats."""
    return math.log(k + 1)
