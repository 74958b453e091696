"""Contrastive entropy: exact where it is known, and the same as the training loss."""

from __future__ import annotations

import math

import numpy as np
import torch

from repro.measure.entropy import chance, contrastive_entropy
from repro.model.infonce import infonce


def test_equal_scores_give_ln_257_exactly() -> None:
    scores = np.full((5, 300), 0.3, dtype=np.float32)
    negatives = np.tile(np.arange(1, 257), (5, 1))
    found = contrastive_entropy(scores, np.zeros(5, int), negatives)
    assert (found == math.log(257)).all()
    assert chance(256) == math.log(257)


def test_a_perfect_encoder_gives_about_zero_and_a_wrong_one_is_finite() -> None:
    scores = np.zeros((2, 257), dtype=np.float32)
    scores[0, 0], scores[1, 0] = 60.0, -2000.0
    negatives = np.tile(np.arange(1, 257), (2, 1))
    found = contrastive_entropy(scores, np.zeros(2, int), negatives)
    assert 0 <= found[0] < 1e-20
    assert found[1] == 2000 + math.log(256)


def test_it_equals_the_training_loss() -> None:
    random = np.random.default_rng(1)
    scores = random.normal(size=(7, 40)) * 5
    positive = random.integers(0, 40, 7)
    negatives = np.array([
        random.choice(np.delete(np.arange(40), p), 12, replace=False) for p in positive
    ])  # fmt: skip
    candidates = np.zeros((7, 40), bool)
    candidates[np.arange(7)[:, None], negatives] = True
    loss = infonce(torch.tensor(scores), torch.tensor(positive), torch.tensor(candidates))
    np.testing.assert_allclose(contrastive_entropy(scores, positive, negatives), loss, rtol=1e-12)
