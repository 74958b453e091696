"""Rows to files, with the same bytes every time: JSONL, Parquet, TSV, and the card of a repository."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

Rows = Sequence[Mapping[str, Any]]


def jsonl(path: Path, rows: Rows) -> None:
    """One JSON object a line; gzipped where the name ends in .gz."""
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    _write(path, lines.encode())


def parquet(path: Path, rows: Rows, shards: int = 1) -> list[Path]:
    """`rows` in shards called like those of the hub: <path>-00000-of-00002.parquet."""
    path.parent.mkdir(parents=True, exist_ok=True)
    size = -(-len(rows) // shards)
    written = []
    for shard in range(shards):
        file = path.with_name(f"{path.name}-{shard:05d}-of-{shards:05d}.parquet")
        part = rows[shard * size : (shard + 1) * size]
        pq.write_table(pa.Table.from_pylist([dict(row) for row in part]), file)
        written.append(file)
    return written


def tsv(
    path: Path,
    rows: Iterable[Sequence[Any]],
    *,
    header: Sequence[str] = (),
    ends: str = "\n",
    mark: bool = False,
) -> None:
    """Columns parted by tabs, nothing quoted; mark: a byte order mark first; .gz is gzipped."""
    lines = [header, *rows] if header else [*rows]
    text = "".join("\t".join(str(cell) for cell in line) + ends for line in lines)
    _write(path, (b"\xef\xbb\xbf" if mark else b"") + text.encode())


def card(folder: Path, configs: Mapping[str, Mapping[str, str]], *, default: str = "") -> None:
    """README.md with the `configs:` that the hub's library reads: config -> split -> path."""
    lines = ["---", "configs:"]
    for name, splits in configs.items():
        lines += [f"- config_name: {name}", *(["  default: true"] * (name == default))]
        lines += ["  data_files:"]
        for split, path in splits.items():
            lines += [f"  - split: {split}", f"    path: {path}"]
    lines += ["---", "", "# A made-up copy of the layout, for a dress rehearsal", ""]
    _write(folder / "README.md", "\n".join(lines).encode())


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
