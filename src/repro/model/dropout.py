"""Dropout at a third of the price: on a CPU torch draws its random bits one by one."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

LEVELS = 2**16  # a rate is a whole number of these: .1 is off by 6e-6


class Dropout:
    """One pass's dropout; its stream starts from torch's generator, so that reseeding that repeats it."""

    def __init__(self, device: torch.device) -> None:
        self.on_cpu = device.type == "cpu"
        if self.on_cpu:
            self.bits = np.random.SFC64(int(torch.randint(2**63 - 1, ())))

    def __call__(self, values: Tensor, rate: float) -> Tensor:
        """`values` with the share `rate` set to zero and the others divided by 1 - rate."""
        if not self.on_cpu:
            return nn.functional.dropout(values, rate) if rate else values
        scale = self.scale(values, rate)
        return values if scale is None else values * scale

    def scale(self, like: Tensor, rate: float) -> Tensor | None:
        """By what to multiply values on the CPU, of that shape and type; None: by nothing."""
        if rate == 0:
            return None
        n = like.numel()
        drawn = self.bits.random_raw(n // 4 + 1).view(np.uint16)[:n]  # 64 bits serve four
        kept = (drawn >= round(rate * LEVELS)).view(np.uint8)
        return torch.from_numpy(kept).view(like.shape).to(like.dtype).mul_(1 / (1 - rate))
