"""What a retriever costs: labels, training, pre-training, serving.  Dollars from their ingredients.

The defaults recompute the cost model of SIGIR'24 (section 6): .6 USD a pair, 3.22e-8 USD a
parameter for training, .43 USD a parameter for encoding a web of 30e12 pages.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from repro.laws.shapes import Array

Steps = Callable[[Array, Array], Array]


@dataclass(frozen=True)
class Hardware:
    """What a FLOP costs: an A100-80G at 3.93 USD an hour, 312e12 FLOP/s at 25 % use (SIGIR'24)."""

    usd_per_hour: float = 3.93
    peak_flop_per_second: float = 312e12
    utilisation: float = 0.25

    @property
    def usd_per_flop(self) -> float:
        """Dollars a FLOP."""
        return self.usd_per_hour / (self.peak_flop_per_second * 3600 * self.utilisation)


@dataclass(frozen=True)
class Training:
    """Tokens of a fine-tuning run; `steps` says how many steps a run of (N, D) takes."""

    batch: int = 256
    query_tokens: int = 30
    passage_tokens: int = 60
    passages_per_query: int = 2  # one positive, one negative, as SIGIR'24 counts
    fixed_steps: float = 10_000.0
    steps: Steps | None = None  # from a fitted steps law, in place of `fixed_steps`

    @property
    def tokens_per_step(self) -> float:
        """Tokens that one step processes."""
        return self.batch * (self.query_tokens + self.passages_per_query * self.passage_tokens)

    def flop(self, n: Array, d: Array) -> Array:
        """Fine-tuning FLOP of a model of n parameters on d pairs: 6 N a token."""
        count = np.asarray(self.fixed_steps if self.steps is None else self.steps(n, d))
        return 6.0 * n * self.tokens_per_step * count


@dataclass(frozen=True)
class Serving:
    """Encoding of passages and queries over the life of the system, and the index that it needs."""

    passages: float = 0.0
    passage_tokens: int = 512
    encodings: float = 1.0  # how often the whole collection is encoded
    queries_per_day: float = 0.0
    query_tokens: int = 30
    days: float = 365.0
    bytes_per_vector: float = 768 * 4.0
    usd_per_gigabyte_month: float = 0.0

    def flop(self, n: Array) -> Array:
        """Inference FLOP: 2 N a token."""
        tokens = self.passages * self.passage_tokens * self.encodings
        tokens += self.queries_per_day * self.days * self.query_tokens
        return 2.0 * n * tokens

    @property
    def storage_usd(self) -> float:
        """Keeping the index for the whole time."""
        months = self.days / 30.4375
        return self.passages * self.bytes_per_vector / 1e9 * months * self.usd_per_gigabyte_month


WEB = Serving(passages=30e12, passage_tokens=512)  # SIGIR'24: every page of the web, once
NOTHING = Serving()


@dataclass(frozen=True)
class Costs:
    """Prices of everything that a plan counts; `usd(n, d)` adds them up."""

    pair_usd: float = 0.6  # Althammer et al. 2023, as cited by SIGIR'24
    hardware: Hardware = Hardware()
    training: Training = Training()
    serving: Serving = NOTHING
    pretraining_usd_per_parameter: float = 0.0
    fixed_usd: float = 0.0

    def parts(self, n: Array | float, d: Array | float) -> dict[str, Array]:
        """Dollars of each part, arrays of the broadcast shape of n and d."""
        n, d = np.broadcast_arrays(np.asarray(n, dtype=float), np.asarray(d, dtype=float))
        price = self.hardware.usd_per_flop
        return {
            "labels": self.pair_usd * d,
            "training": price * self.training.flop(n, d),
            "serving": price * self.serving.flop(n) + self.serving.storage_usd,
            "pre-training": self.pretraining_usd_per_parameter * n,
            "fixed": np.full(n.shape, self.fixed_usd),
        }

    def usd(self, n: Array | float, d: Array | float) -> Array:
        """Dollars in all."""
        parts = list(self.parts(n, d).values())
        return np.sum(parts, axis=0)


def unit_costs(costs: Costs) -> tuple[float, float, float]:
    """USD a pair, USD a parameter for training (fixed steps), USD a parameter for serving."""
    one = np.array(1.0)
    parts = costs.parts(one, one)
    return float(parts["labels"]), float(parts["training"]), float(parts["serving"])
