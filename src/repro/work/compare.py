"""Whether two results hold the same numbers; the time that a run took is not one of them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

TOLERANCE = 1e-5  # relative to the largest value of an array: between machines
ABOUT = ("manifest.json", "provenance.json", "spec.json")
TIMES = "seconds"  # the last part of the name of a field that is a time


@dataclass(frozen=True)
class Likeness:
    """How far two results are apart."""

    worst: float  # largest relative difference of a number
    where: str  # of that number; or the first thing that is no number and differs
    other: bool = False  # something that is no number differs, or is missing

    @property
    def same(self) -> bool:
        """Every number is the same, bit for bit."""
        return self.worst == 0 and not self.other

    @property
    def close(self) -> bool:
        """The same up to rounding on another machine."""
        return self.worst <= TOLERANCE and not self.other

    def __str__(self) -> str:
        if self.other:
            return f"{self.where} differs"
        return "the same" if self.same else f"{self.where} differs by {self.worst:.1e}"


def compare(ours: Path, theirs: Path) -> Likeness:
    """Compare two result folders, number by number."""
    first, second = numbers(ours), numbers(theirs)
    if first.keys() != second.keys():
        return Likeness(0.0, min(first.keys() ^ second.keys()), other=True)
    worst, where = 0.0, ""
    for name, value in first.items():
        apart = _apart(value, second[name])
        if apart is None:
            return Likeness(worst, name, other=True)
        if apart > worst:
            worst, where = apart, name
    return Likeness(worst, where)


def numbers(folder: Path) -> dict[str, Any]:
    """Everything that a result holds, by file and field: arrays, texts, or the bytes of other files."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if not path.is_file() or name in ABOUT:
            continue
        for field, value in _read(path).items():
            if field.rpartition(".")[2] != TIMES:
                found[f"{name}: {field}" if field else name] = value
    return found


def _read(path: Path) -> dict[str, Any]:
    if path.suffix == ".npy":
        return {"": np.load(path, allow_pickle=False)}
    if path.suffix == ".safetensors":
        from safetensors.numpy import load_file

        return dict(load_file(path))
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        table = pq.read_table(path)
        return {name: np.asarray(table[name].to_pylist()) for name in table.column_names}
    if path.suffix == ".json":
        return dict(_leaves(json.loads(path.read_text(encoding="utf-8")), ""))
    return {"": path.read_bytes()}


def _leaves(value: Any, name: str) -> list[tuple[str, Any]]:
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        return [
            leaf
            for key, each in items
            for leaf in _leaves(each, f"{name}.{key}" if name else str(key))
        ]
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return [(name, np.asarray(value) if number else value)]


def _apart(ours: Any, theirs: Any) -> float | None:
    """The relative difference of two values; None where they differ in anything but a number."""
    if not (isinstance(ours, np.ndarray) and isinstance(theirs, np.ndarray)):
        return 0.0 if type(ours) is type(theirs) and ours == theirs else None
    if ours.shape != theirs.shape:
        return None
    if not (_is_float(ours) and _is_float(theirs)):
        return 0.0 if np.array_equal(ours, theirs) else None
    finite = np.isfinite(ours)
    if not np.array_equal(finite, np.isfinite(theirs)):
        return None
    if not np.array_equal(ours[~finite], theirs[~finite], equal_nan=True):
        return None
    ours, theirs = ours[finite].astype(np.float64), theirs[finite].astype(np.float64)
    gap = np.abs(ours - theirs).max(initial=0.0)
    return float(gap / np.abs(ours).max(initial=np.finfo(np.float64).tiny)) if gap else 0.0


def _is_float(values: NDArray[Any]) -> bool:
    return bool(np.issubdtype(values.dtype, np.floating))
