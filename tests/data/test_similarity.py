"""Pins: all near pairs are found, exactly as a direct comparison of all pairs finds them."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from repro.data import similarity
from repro.data.similarity import near_texts, shingles
from repro.data.text import words

texts = some.lists(
    some.lists(some.sampled_from("abcdefg"), max_size=9).map(" ".join), min_size=1, max_size=12
)


def grams(text: str, n: int) -> frozenset[tuple[str, ...]]:
    run = words(text)
    return frozenset(tuple(run[i : i + n]) for i in range(max(len(run) - n, 0) + 1))


def jaccard(one: str, other: str, n: int) -> float:
    a, b = grams(one, n), grams(other, n)
    return len(a & b) / len(a | b)


@settings(deadline=None, max_examples=150)
@given(texts, some.integers(1, 3), some.sampled_from([0.2, 1 / 3, 0.5, 0.6, 1.0]))
def test_near_pairs_equal_the_direct_comparison(texts: list[str], n: int, threshold: float) -> None:
    near = near_texts(texts, n, threshold)
    distinct = [i for i, first in enumerate(near.first.tolist()) if first == i]
    direct = {
        (i, j): jaccard(texts[i], texts[j], n)
        for i, j in combinations(distinct, 2)
        if jaccard(texts[i], texts[j], n) >= threshold
    }
    found = dict(zip(map(tuple, near.pairs.tolist()), near.jaccard.tolist(), strict=True))
    assert found == pytest.approx(direct)
    for index, first in enumerate(near.first.tolist()):
        assert grams(texts[index], n) == grams(texts[first], n)


def test_small_blocks_find_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    many = [" ".join(map(str, random.integers(0, 9, 12))) for _ in range(200)]
    whole = near_texts(many, 2, 0.3)
    monkeypatch.setattr(similarity, "CANDIDATES", 50)
    monkeypatch.setattr(similarity, "COMPARED", 7)
    parts = near_texts(many, 2, 0.3)
    assert len(whole.pairs) > 50
    np.testing.assert_array_equal(whole.pairs, parts.pairs)


def test_a_text_shorter_than_a_run_counts_as_one_run() -> None:
    assert shingles(["a b", "a b", "a b c d e", ""], 4).toarray().sum(axis=1).tolist() == [
        1,
        1,
        2,
        1,
    ]


def test_long_runs_over_many_words_do_not_overflow() -> None:
    random = np.random.default_rng(1)
    many = [" ".join(f"w{word}" for word in random.integers(0, 50, 60)) for _ in range(40)]
    many += [f"{text} end" for text in many]
    sizes = shingles(many, 30).sum(axis=1)
    assert sizes.tolist() == [len(grams(text, 30)) for text in many]
    assert near_texts(many, 30, 0.9).pairs.tolist() == [[i, i + 40] for i in range(40)]


def test_links_skip_what_is_not_among_the_chosen() -> None:
    near = near_texts(["a b", "a b", "a b", "c"], 2, 0.5)
    assert near.links().tolist() == [[0, 1], [0, 2]]
    assert near.links(np.array([False, True, True, True])).tolist() == [[1, 2]]
