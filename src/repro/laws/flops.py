"""Counting parameters and FLOPs of transformers, as Kaplan 2020 (section 2.1, table 1) does.

N counts no embeddings.  A multiply-add is two operations; the backward pass costs twice the forward.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Transformer:
    """Dimensions of a transformer; attention and feed-forward widths default to d and 4 d."""

    n_layer: int
    d_model: int
    d_attn: int = 0
    d_ff: int = 0
    n_vocab: int = 0
    n_ctx: int = 512

    @property
    def parameters(self) -> int:
        """Kaplan's N: weights outside the embeddings; 12 n_layer d_model^2 at the usual widths.

        Biases and layer norms are not counted: 13 d_model a layer in BERT, .14 % of BERT-Base.
        """
        return 2 * self.d_model * self.n_layer * (2 * self._attn + self._ff)

    @property
    def encoder_parameters(self) -> int:
        """All weights of a BERT encoder's layers, biases and layer norms included."""
        per_layer = 4 * self.d_model * self._attn + 3 * self._attn + self.d_model
        per_layer += 2 * self.d_model * self._ff + self._ff + self.d_model + 4 * self.d_model
        return self.n_layer * per_layer

    @property
    def embedding_parameters(self) -> int:
        """Token and position embeddings: (n_vocab + n_ctx) d_model."""
        return (self.n_vocab + self.n_ctx) * self.d_model

    @property
    def forward_flop_per_token(self) -> int:
        """C_forward = 2 N + 2 n_layer n_ctx d_attn (the second term is attention's scores)."""
        return 2 * self.parameters + 2 * self.n_layer * self.n_ctx * self._attn

    @property
    def training_flop_per_token(self) -> int:
        """Three forward passes; about 6 N where n_ctx is small beside 12 d_model."""
        return 3 * self.forward_flop_per_token

    @property
    def _attn(self) -> int:
        return self.d_attn or self.d_model

    @property
    def _ff(self) -> int:
        return self.d_ff or 4 * self.d_model
