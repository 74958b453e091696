"""Tables of losses for `repro fit`, damaged or of odd types: the numbers that stand there, or a refusal."""

from __future__ import annotations

import gzip
import io
import json
import math
import random
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fuzz.damage import damaged, recipes
from fuzz.harness import REFUSED, Fuzz, attempt
from fuzz.right import sampled
from fuzz.test_fuzz_pairs import TYPES
from repro.laws.read import read
from repro.laws.table import Table, from_frame

CSV = b"params, pairs,mael,state,seed\n1e6,320,2.5,turned,0\n2e6,320,2.25,censored,0\n4e6,640,1.5,,1\n"
ROWS = [
    {"params": 1e6, "pairs": 320, "mael": 2.5, "state": "turned", "seed": 0},
    {"params": 2e6, "pairs": 320, "mael": 2.25, "state": "censored", "seed": 0},
]
TEXTS = {
    "t.csv": CSV.replace(b",,", b",exact,"),
    "t.tsv": CSV.replace(b", ", b",").replace(b",,", b",exact,").replace(b",", b"\t"),
    "t.jsonl": "".join(json.dumps(row) + "\n" for row in ROWS).encode(),
}


def table(path: Path) -> Table:
    """The table as `repro fit --n params --d pairs --loss mael` takes it."""
    frame = read(path)
    return from_frame(
        frame, loss="mael", n="params", d="pairs", state="state", group="seed", where=str(path)
    )


@pytest.mark.parametrize("name", TEXTS)
def test_tables_of_text(name: str, fuzz: Fuzz) -> None:
    path = fuzz.folder / name

    def check(data: bytes) -> bool:
        path.write_bytes(data)
        if not sampled(data, of=8):
            return attempt(lambda: read(path), path) is not REFUSED
        found = attempt(lambda: table(path), path)
        if found is not REFUSED:
            _holds(found, data)
        return found is not REFUSED

    fuzz(damaged([TEXTS[name]]), check, share=0.3)


def _holds(found: Table, data: bytes) -> None:
    """Asserts that the numbers are positive, finite, and stand in the file."""
    text = data.decode("utf-8", "replace")
    for values in (found.loss, *found.columns.values()):
        assert all(math.isfinite(value) and value >= 0 for value in values)
        assert len(values) == len(found)
    assert len(found) <= text.count("\n") + text.count("\r") + 1
    digits = "".join(each for each in text if each.isdigit())
    for value in found.loss.tolist():
        assert (
            str(value).rstrip("0").replace(".", "")[:3].strip("e-") in digits
            or value >= 1e4
            or value < 1e-3
        )


def test_packed_tables(fuzz: Fuzz) -> None:
    path = fuzz.folder / "t.csv.gz"

    def check(data: bytes) -> bool:
        path.write_bytes(data)
        return attempt(lambda: table(path), path) is not REFUSED

    fuzz(damaged([gzip.compress(TEXTS["t.csv"])]), check, share=0.04)


def test_parquet_of_odd_types(fuzz: Fuzz) -> None:
    path = fuzz.folder / "t.parquet"

    def check(recipe: bytes) -> bool:
        choose = random.Random(recipe)
        columns: dict[str, Any] = {}
        n = choose.randrange(3)
        for name in ("params", "pairs", "mael", "state", "seed"):
            kind, cells = choose.choice(TYPES)
            if choose.random() < 0.8:
                kind, cells = pa.float64(), [1.5, 320.0, 2.0]
            if name == "state" and choose.random() < 0.9:
                kind, cells = pa.string(), ["turned", "plateau"]
            if pa.types.is_dictionary(kind):
                kind = pa.string()
            columns[name] = pa.array([choose.choice(cells) for _ in range(n)], kind)
        pq.write_table(pa.table(columns), path)
        found = attempt(lambda: table(path), path)
        if found is not REFUSED:
            for name in ("params", "pairs", "mael"):
                kind = columns[name].type
                assert (
                    pa.types.is_integer(kind)
                    or pa.types.is_floating(kind)
                    or pa.types.is_decimal(kind)
                    or pa.types.is_string(kind)
                    or pa.types.is_large_string(kind)
                ), kind
        return found is not REFUSED

    fuzz(recipes(), check, share=0.03)


def test_damaged_parquet(fuzz: Fuzz) -> None:
    path = fuzz.folder / "t.parquet"
    target = io.BytesIO()
    pd.DataFrame(ROWS).to_parquet(target)

    def check(data: bytes) -> bool:
        path.write_bytes(data)
        return attempt(lambda: table(path), path) is not REFUSED

    fuzz(damaged([target.getvalue()]), check, share=0.03)
