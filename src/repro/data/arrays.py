"""Named arrays on disk, one .npy each, and one digest over their content."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np


def save(folder: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write each array to `folder/<name>.npy` (no pickle)."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array, allow_pickle=False)


def load(folder: Path, name: str, *, mapped: bool = False) -> np.ndarray:
    """The array `folder/<name>.npy`, read-only; `mapped` leaves it on disk until it is touched."""
    path = folder / f"{name}.npy"
    if (
        mapped and path.stat().st_size > 128
    ):  # the header alone is 128 bytes; nothing cannot be mapped
        return np.load(path, mmap_mode="r", allow_pickle=False)
    array = np.load(path, allow_pickle=False)
    array.flags.writeable = False
    return array


def digest(arrays: Mapping[str, np.ndarray]) -> str:
    """sha256 (hex) over names, dtypes, shapes and little-endian content, in order of the names."""
    total = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        array = array.astype(array.dtype.newbyteorder("<"), copy=False)
        total.update(f"{name}\x1f{array.dtype.str}\x1f{array.shape}\x1e".encode())
        total.update(array.tobytes())
    return total.hexdigest()
