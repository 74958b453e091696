"""How much memory a model takes, before it is built: from its shape and the tokens held at once.

Counted is what the backward pass wants to see again (`repro.model.layer`, `repro.model.packed`), held
against measured peaks in tests/model/test_memory.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Precision = Literal["float32", "bfloat16"]
# Numbers of a token's width, and of its inner layer's, that a layer keeps for its gradient; the rest of a
# layer's work is alive once, for the layer that is under way.
KEPT_WIDTHS, KEPT_INNER = 9, 2
WORK_WIDTHS, WORK_INNER = 6, 2
# The same in bytes under autocast: norms and residuals stay float32, products are halved.
KEPT_WIDTH_BYTES = 32
WEIGHT_BYTES = 16  # float32: the weight, its gradient and AdamW's two moments


@dataclass(frozen=True)
class Footprint:
    """What the memory of a model hangs on."""

    parameters: int  # all, the projection included
    layers: int
    width: int
    inner: int
    heads: int

    @classmethod
    def of(cls, config: Any, parameters: int) -> Footprint:
        """That of a transformers configuration."""
        width = int(config.hidden_size)
        inner = int(getattr(config, "intermediate_size", 4 * width))
        return cls(
            parameters, int(config.num_hidden_layers), width, inner, config.num_attention_heads
        )

    def training(self, tokens: float, length: float, precision: Precision, cpu: bool) -> float:
        """Peak bytes of a step that holds the graph of so many tokens, of texts of this length at most.

        On a CPU attention keeps its weights, before and after dropout, and by what they were multiplied;
        elsewhere torch's own attention keeps none.
        """
        weights = 3 * self.heads * length if cpu else 0.0
        if precision == "float32":
            kept = 4 * (KEPT_WIDTHS * self.width + KEPT_INNER * self.inner + weights)
        else:
            kept = KEPT_WIDTH_BYTES * self.width + 2 * KEPT_INNER * self.inner + 2 * weights
        work = 4 * (WORK_WIDTHS * self.width + WORK_INNER * self.inner + weights)
        copies = 2 * self.parameters if precision == "bfloat16" else 0
        return WEIGHT_BYTES * self.parameters + copies + tokens * (self.layers * kept + work)

    def encoding(self, tokens: float, length: float, cpu: bool) -> float:
        """Peak bytes of embedding so many tokens at once, without gradient."""
        weights = self.heads * length if cpu else 0.0
        alive = 4 * (WORK_WIDTHS * self.width + WORK_INNER * self.inner + weights)
        return 4 * self.parameters + tokens * alive
