"""Devices by name: what they can do at most, and the share of it that a plan assumes."""

from __future__ import annotations

from dataclasses import dataclass

from repro.errors import UserError, nearest
from repro.work.pace import GUESS

# Of the peak: the share that SIGIR'24's cost model takes for an A100 (FACTS A6).  No run of ours has been
# measured on a GPU; models narrower than 512 reach less alone, so that several share a device.
UTILISATION = 0.25


@dataclass(frozen=True)
class Device:
    """Peak rates (FLOP/s, dense), memory (bytes; None: the machine's own), and the share that is reached."""

    name: str
    float32: float  # outside of tensor cores: products are not rounded to TF32
    bfloat16: float
    memory: float | None
    source: str
    utilisation: float = UTILISATION
    said: str = f"{UTILISATION:.0%} of its peak assumed"
    usd_per_hour: float | None = None  # where a source of ours states one: SIGIR'24's A100

    def rate(self, precision: str) -> float:
        """FLOP/s that a plan may count on."""
        return self.utilisation * float(getattr(self, precision))


def _sheet(name: str) -> str:
    return f"NVIDIA {name} datasheet"


DEVICES = {
    each.name: each
    for each in (
        Device("h200", 67e12, 989e12, 141e9, _sheet("H200 SXM")),
        Device("h100", 67e12, 989e12, 80e9, _sheet("H100 SXM")),
        Device(
            "a100", 19.5e12, 312e12, 80e9, _sheet("A100 80GB"), usd_per_hour=3.93
        ),
        Device("a100-40", 19.5e12, 312e12, 40e9, _sheet("A100 40GB")),
        Device("l40s", 91.6e12, 362e12, 48e9, _sheet("L40S")),
        Device("l4", 30.3e12, 121e12, 24e9, _sheet("L4")),
        Device("rtx4090", 82.6e12, 165e12, 24e9, "NVIDIA Ada architecture whitepaper"),
        Device(
            "cpu", 1 / GUESS, 1 / GUESS, None, "docs/performance.md", 1.0,
            "a core, as measured on the micro-encoders",
        ),
    )
}  # fmt: skip


def device(name: str) -> Device:
    """The device of that name; raises `UserError`."""
    if name not in DEVICES:
        raise UserError(
            f"there is no device `{name}` in the table",
            where="--device",
            remedy=nearest(name, list(DEVICES)),
        )
    return DEVICES[name]
