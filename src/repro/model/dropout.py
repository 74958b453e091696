"""Dropout whose random bits cost little: on a CPU torch draws them one by one, at ten times the price."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn

LEVELS = 2**16  # a rate is a whole number of these: .1 is off by 6e-6


class Dropout:
    """One pass's dropout; its stream starts from torch's generator, so that reseeding that repeats it."""

    def __init__(self, device: torch.device) -> None:
        self.on_cpu = device.type == "cpu"
        if self.on_cpu:
            seed = int(torch.randint(2**63 - 1, ()))
            self.bits = np.random.Generator(np.random.SFC64(seed))

    def __call__(self, values: Tensor, rate: float) -> Tensor:
        """`values` with the share `rate` set to zero and the others divided by 1 - rate."""
        if rate == 0:
            return values
        if not self.on_cpu:
            return nn.functional.dropout(values, rate)
        raw = bytearray(self.bits.bytes(2 * values.numel()))
        drawn = torch.frombuffer(raw, dtype=torch.int16).view(values.shape)
        kept = drawn >= math.floor(rate * LEVELS + 0.5) - LEVELS // 2
        return values * kept.to(values.dtype).mul_(1 / (1 - rate))
