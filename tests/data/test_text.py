"""Pins the cleaning rule, each repair counted, and what a word is."""

from __future__ import annotations

from collections import Counter

import pytest

from repro.data.text import clean, normal, words


@pytest.mark.parametrize(
    ("text", "cleaned", "repair"),
    [
        ("\ufeffplain", "plain", "byte order mark"),
        ("one\r\ntwo\rthree", "one\ntwo\nthree", "CR or CRLF line ends"),
        ("a\x00b\x1fc\x85d", "a b c d", "control characters"),
        ("half \ud83d of a pair", "half \ufffd of a pair", "broken encoding"),
        ("cafe\u0301", "caf\u00e9", "not NFC"),
    ],
)
def test_each_repair_is_made_and_counted(text: str, cleaned: str, repair: str) -> None:
    repaired: Counter[str] = Counter()
    assert clean(text, repaired) == cleaned
    assert repaired == {repair: 1}


def test_clean_text_is_left_alone_and_uncounted() -> None:
    repaired: Counter[str] = Counter()
    assert clean("  tab\tand\nline stay, e\u0301".replace("e\u0301", "é"), repaired) == (
        "tab\tand\nline stay, é"
    )
    assert clean(" \n", repaired) == ""
    assert not repaired


def test_words_are_folded_runs_and_single_characters_of_unspaced_scripts() -> None:
    assert words("The S3-Bucket_name, v2.") == ["the", "s3", "bucket_name", "v2"]
    assert words("Straße É") == ["strasse", "é"]
    assert words("开发GPU三") == ["开", "发", "gpu", "三"]
    assert words("...") == []


def test_identical_queries_differ_in_case_and_space_only() -> None:
    assert normal(" The  ARN\n") == normal("the arn")
    assert normal("the arn.") != normal("the arn")
