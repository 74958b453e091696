"""Pins: a column is used like the list of its texts, whatever of it is kept, joined or on disk."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from repro.data import column
from repro.data.column import Coded, Column, Joined, Spool, coded, lengths, take

texts = some.lists(some.text("aé語\n\u2028 ", max_size=9), max_size=12)


def spooled(values: Sequence[str]) -> Column:
    spool = Spool(None)
    for value in values:
        spool.add(value)
    return spool.column()


def saved(values: Sequence[str]) -> Column:
    with tempfile.TemporaryDirectory() as folder:  # an open column outlives the name of its file
        column.save(Path(folder), "x", values)
        return Column.load(Path(folder), "x")


def is_like(found: Sequence[str], values: list[str]) -> None:
    assert found == values
    assert values == found
    assert list(found) == values
    assert len(found) == len(values)
    assert [found[i] for i in range(-len(values), len(values))] == values + values
    for part in (slice(1, 4), slice(None, -1), slice(3, 1), slice(None, None, 2), slice(-2, 99)):
        assert found[part] == values[part]
    assert lengths(found).tolist() == [len(value.encode()) for value in values]
    assert found != [*values, "more"]
    if values:
        assert found != [*values[:-1], values[-1] + "x"]
    for outside in (len(values), -len(values) - 1):
        with pytest.raises(IndexError):
            found[outside]


@settings(deadline=None, max_examples=60)
@given(texts, some.data())
def test_it_is_used_like_the_list(values: list[str], data: some.DataObject) -> None:
    places = some.lists(some.integers(0, max(len(values) - 1, 0)), max_size=9)
    order = np.array(data.draw(places) if values else [], np.int64)
    mask = np.array(data.draw(some.lists(some.booleans(), min_size=12, max_size=12)))
    kept = mask[: len(values)]
    for make in (spooled, saved, lambda values: Coded(["?", *values], _codes(values))):
        whole = make(values)
        is_like(whole, values)
        is_like(take(whole, kept), take(values, kept))
        is_like(whole.at(order), [values[i] for i in order])
        is_like(whole.at(order).keep(kept[order]), [values[i] for i in order if kept[i]])
        is_like(Joined(whole, ["a", "é"]), [*values, "a", "é"])
        is_like(Joined(["a"], whole), ["a", *values])


@settings(deadline=None, max_examples=60)
@given(texts, texts)
def test_codes_name_the_different_texts_in_order(values: list[str], unused: list[str]) -> None:
    names, codes = coded(values)
    assert names == sorted(set(values))
    assert [names[code] for code in codes] == values
    loose = Coded([*unused, *values], len(unused) + np.arange(len(values)))
    if not set(unused) & set(values) and len(set(values)) == len(values):
        assert coded(loose)[0] == names
        assert coded(loose)[1].tolist() == codes.tolist()


def test_blocks_of_any_size_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    values = [f"text {i} " * (i % 5) for i in range(50)]
    monkeypatch.setattr(column, "BLOCK", 7)
    assert list(saved(values)) == list(spooled(values)) == values


def test_a_file_that_was_cut_off_is_not_taken_for_texts(tmp_path: Path) -> None:
    column.save(tmp_path, "x", ["first", "second"])
    path = tmp_path / "x_bytes.npy"
    path.write_bytes(path.read_bytes()[:-3])
    found = Column.load(tmp_path, "x")
    assert found[0] == "first"
    with pytest.raises(OSError, match="cut off"):
        found[1]


def test_files_are_closed_with_the_last_column_that_reads_them() -> None:
    folder = Path("/proc/self/fd")
    if not folder.is_dir():
        pytest.skip("open files are counted in /proc")
    before = len(list(folder.iterdir()))
    whole = saved(["a", "b"])
    part = whole.keep(np.array([False, True]))
    assert len(list(folder.iterdir())) == before + 2  # texts, and the map of their offsets
    del whole
    assert part == ["b"]
    del part
    assert len(list(folder.iterdir())) == before


def _codes(values: list[str]) -> np.ndarray:
    return np.arange(1, len(values) + 1, dtype=np.int32)
