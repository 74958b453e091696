"""Pins: passages that stream to disk are those that a table in memory would keep, digests that agree
included; and memory does not grow with the texts."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

import tiny
from repro.data import passages, same
from repro.data.duplicates import first_of
from repro.data.passages import PassageReader, Passages

rows = some.lists(
    some.tuples(some.sampled_from(["", *"abcdefghij"]), some.sampled_from(["", "x", "yy"])),
    max_size=30,
)


def read(rows: list[tuple[str, str]]) -> tuple[Passages, Counter[str]]:
    dropped: Counter[str] = Counter()
    reader = PassageReader(None)
    for place, (identifier, text) in enumerate(rows):
        reader.add(identifier, text and f"{text}{place}", f"g{place % 3}")
    return reader.finish(dropped), +dropped


def direct(rows: list[tuple[str, str]]) -> tuple[dict[str, tuple[str, str]], Counter[str]]:
    kept: dict[str, tuple[str, str]] = {}
    dropped: Counter[str] = Counter()
    for place, (identifier, text) in enumerate(rows):
        if not identifier:
            dropped["passage without an id"] += 1
        elif identifier in kept:
            dropped["passage with a repeated id"] += 1
        elif not text:
            dropped["passage with an empty text"] += 1
        else:
            kept[identifier] = f"{text}{place}", f"g{place % 3}"
    return kept, dropped


@pytest.fixture(params=["digests", "digests that agree"])
def digests(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param != "digests":
        monkeypatch.setattr(same, "digest", lambda text: len(text) + (text > "e"))


@settings(deadline=None, max_examples=60)
@given(rows)
@pytest.mark.usefixtures("digests")
def test_the_first_with_an_id_and_a_text_is_kept(rows: list[tuple[str, str]]) -> None:
    (found, dropped), (kept, counts) = read(rows), direct(rows)
    assert found.ids == list(kept)
    assert found.texts == [text for text, _ in kept.values()]
    assert found.groups == [group for _, group in kept.values()]
    assert dropped == counts
    expected = {identifier: place for place, identifier in enumerate(kept)}
    assert found.places(["", "none", *"jihgfedcba", "a"]) == expected


@settings(deadline=None, max_examples=60)
@given(some.lists(some.text("ab1", min_size=1, max_size=4), unique=True, max_size=30))
@pytest.mark.usefixtures("digests")
def test_they_are_sorted_in_parts_as_in_one(ids: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passages, "SORTED", 7)
        patch.setattr(passages, "BLOCK", 2)
        found = read([(identifier, "x") for identifier in ids])[0]
        ordered = found.in_order(lambda identifier: (identifier[::-1],))
    expected = sorted(ids, key=lambda identifier: identifier[::-1])
    assert ordered.ids == expected
    assert ordered.texts == [f"x{ids.index(identifier)}" for identifier in expected]
    assert ordered.groups == [f"g{ids.index(identifier) % 3}" for identifier in expected]
    places = {identifier: place for place, identifier in enumerate(expected)}
    assert ordered.places(ids) == places


@settings(deadline=None, max_examples=60)
@given(some.lists(some.sampled_from("abcdefg")), some.data())
@pytest.mark.usefixtures("digests")
def test_the_first_of_the_same_is_found(values: list[str], data: some.DataObject) -> None:
    n = len(values)
    among = np.array(data.draw(some.lists(some.booleans(), min_size=n, max_size=n)), bool)
    first = same.firsts(same.digests(values, n), values.__getitem__)
    assert first.tolist() == first_of(values).tolist()
    assert same.firsts_among(first, among).tolist() == first_of(values, among=among).tolist()


ASSEMBLE = """
import sys
from pathlib import Path
from repro.data.collection import Collection, Records, assemble

n, folder = int(sys.argv[1]), Path(sys.argv[2])
records = Records(
    queries=((f"q{i}", f"query {i}") for i in range(100)),
    passages=((f"p{i}", f"passage {i} " + "word " * 1200, "") for i in range(n)),
    judgements=((f"q{i}", f"p{i * 7}") for i in range(100)),
)
whole = assemble("large", "en", records, folder)
whole.save(folder)
back = Collection.load(folder)
assert back.digest == whole.digest and len(back.passages) == n
assert sum(map(len, back.passages)) > 6000 * n
print(peak())
"""


def test_memory_does_not_grow_with_the_texts(tmp_path: Path) -> None:
    def peak(n: int) -> int:
        folder = tmp_path / str(n)
        folder.mkdir()
        command = [sys.executable, "-c", tiny.PEAK + ASSEMBLE, str(n), str(folder)]
        return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    few, many = 1_000, 13_000
    text = 6_000 * (many - few)
    assert text > 70e6  # the premise: held, it would be seen
    assert peak(many) - peak(few) < 0.15 * text
