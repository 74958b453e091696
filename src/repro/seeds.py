"""One root seed, many named and independent streams.  Nothing else in the package may seed."""

from __future__ import annotations

import hashlib

import numpy as np


def derive(root: int, *names: str | int) -> int:
    """A seed below 2**63 that depends on the root seed and on every name, in order."""
    text = "\x1f".join([str(root), *(str(name) for name in names)])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) >> 1


def stream(root: int, *names: str | int) -> np.random.Generator:
    """A numpy generator for the stream `names` under the root seed."""
    return np.random.Generator(np.random.PCG64(derive(root, *names)))
