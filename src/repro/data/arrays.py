"""Named arrays on disk, one .npy each, and one digest over their content."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

BLOCK = 1 << 20  # bytes read at once where a whole file is read


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


class Writer:
    """Writes a one-dimensional array to `folder/<name>.npy` part by part, holding none of it.

    The file is what `np.save` would write; it is whole when the `with` block is left.
    """

    def __init__(self, folder: Path, name: str, dtype: Any) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.file = (folder / f"{name}.npy").open("wb")
        self.dtype = np.dtype(dtype)
        self.size = 0
        self._header()

    def add(self, part: Any) -> None:
        """Append `part` (anything that numpy takes for a one-dimensional array of this type)."""
        part = np.ascontiguousarray(part, self.dtype)
        self.file.write(part.data)
        self.size += len(part)

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.seek(0)
        self._header()
        self.file.close()

    def _header(self) -> None:
        """numpy leaves room in the header for the size to grow: it can be written again in place."""
        about = {
            "descr": np.lib.format.dtype_to_descr(self.dtype),
            "fortran_order": False,
            "shape": (self.size,),
        }
        np.lib.format.write_array_header_1_0(self.file, about)


def header(file: BinaryIO) -> tuple[tuple[int, ...], np.dtype]:
    """Shape and dtype of the .npy file that `file` stands at the start of; it then stands at the data."""
    if np.lib.format.read_magic(file) != (1, 0):
        raise ValueError("an array file of another version than 1.0")
    shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    return shape, dtype


def digest(arrays: Mapping[str, np.ndarray]) -> str:
    """sha256 (hex) over names, dtypes, shapes and little-endian content, in order of the names."""
    total = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        array = array.astype(array.dtype.newbyteorder("<"), copy=False)
        total.update(_start(name, array.shape, array.dtype))
        total.update(array.tobytes())
    return total.hexdigest()


def file_digest(folder: Path, names: Iterable[str]) -> str:
    """The `digest` of the arrays of these names in `folder`, read block by block."""
    total = hashlib.sha256()
    for name in sorted(names):
        with (folder / f"{name}.npy").open("rb") as file:
            shape, dtype = header(file)
            total.update(_start(name, shape, dtype))
            while block := file.read(BLOCK):
                total.update(block)
    return total.hexdigest()


def _start(name: str, shape: tuple[int, ...], dtype: np.dtype) -> bytes:
    return f"{name}\x1f{dtype.str}\x1f{shape}\x1e".encode()
