"""Pins that a table of losses that is no table of numbers is refused by name."""

from __future__ import annotations

import gzip
from pathlib import Path

import pandas as pd
import pytest

from repro.errors import UserError
from repro.laws.read import read
from repro.laws.table import from_frame

CSV = b"n,d,loss\n1e6,320,2.5\n2e6,320,2.25\n"


@pytest.mark.parametrize("damage", [slice(0, 30), slice(0, 12)])
def test_a_packed_table_that_breaks_off_is_refused(damage: slice, tmp_path: Path) -> None:
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(CSV)[damage])
    with pytest.raises(UserError, match=r"t\.csv\.gz: this cannot be read as csv"):
        read(path)


@pytest.mark.parametrize(
    ("values", "what"),
    [
        (pd.to_datetime(["2020-01-01", "2020-01-02"]), "holds dates"),
        (pd.to_timedelta([1, 2]), "holds dates"),
        ([True, False], "holds true and false"),
        ([[1.0], [2.0]], "holds text"),
    ],
)
def test_what_is_no_number_is_not_taken_for_one(values: object, what: str) -> None:
    frame = pd.DataFrame({"n": [1e6, 2e6], "d": [1, 2]}).assign(loss=values)
    with pytest.raises(UserError, match=what):
        from_frame(frame, loss="loss", n="n", d="d")
