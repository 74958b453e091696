"""Pins when studies agree on a claim, and how it is told."""

from __future__ import annotations

from typing import Any

import pytest

from repro.show import agreement


def row(claim: str, verdict: str, kind: str = "qual") -> dict[str, Any]:
    about = {"id": claim, "kind": kind, "claim": "said", "paper": "printed", "verdict": verdict}
    return about | {"ours": None, "ci95": None}


@pytest.mark.parametrize(
    ("verdicts", "outcome"),
    [
        (("holds", "holds"), "same"), (("match", "close"), "same"), (("holds", "fails"), "opposed"),
        (("close", "differs"), "opposed"), (("holds", "inconclusive"), "open"),
        (("holds", "inconclusive", "fails"), "opposed"), (("inconclusive", "inconclusive"), "same"),
        (("holds", "not run"), ""), (("not comparable", "not comparable"), ""),
    ],
)  # fmt: skip
def test_outcomes(verdicts: tuple[str, ...], outcome: str) -> None:
    studies = {f"study {i}": [row("M1", verdict)] for i, verdict in enumerate(verdicts)}
    assert [each["outcome"] for each in agreement.compare(studies)] == [outcome]


def test_kinds_that_share_a_row_meet_their_own() -> None:
    studies = {
        "a": [row("M18", "not run", "num, qual")],
        "b": [row("M18", "not comparable", "num"), row("M18", "holds")],
    }
    found = agreement.compare(studies)
    assert [each["kind"] for each in found] == ["num", "qual"]
    assert all(set(each["rows"]) == {"a", "b"} for each in found)


def test_arithmetic_is_not_counted_and_the_divided_are_named() -> None:
    studies = {
        "a": [row("C1", "match", "calc"), row("M1", "holds"), row("M2", "holds"), row("M3", "fails")],
        "b": [row("C1", "differs", "calc"), row("M1", "fails"), row("M2", "inconclusive")],
    }  # fmt: skip
    text = agreement.divided(agreement.compare(studies))
    assert text.startswith("Of 2 verdicts on runs that more than one study gives, 0 are the same")
    assert "Opposite: **M1** (holds in a, fails in b)." in text
    assert "Decided by some, open in others: **M2** (holds in a, inconclusive in b)." in text
    assert "C1" not in text


def test_what_is_decided_is_told_with_what_was_asked_and_the_verdicts_that_seeds_change() -> None:
    asked = {"asks": "a ratio under .1", "value": "ratio", "ours": 0.05, "n": 12}
    studies = {
        "a": [row("M1", "holds") | asked, row("M2", "inconclusive"), row("C1", "match", "calc")],
        "b": [row("M1", "not run", "num, qual")],
    }
    text = agreement.decided(studies, {"a": {"M1"}})
    (line,) = [each for each in text.splitlines() if each.startswith("| M1 ")]
    assert "a ratio under .1" in line
    assert "● holds**<br>ratio 0.05 (n = 12) ‡ |" in line
    assert "– not run" in line
    assert "M2" not in text
    assert "C1" not in text
    assert "‡ another verdict" in text
    assert "‡" not in agreement.decided(studies, {})


def test_verdicts_that_differ_between_seeds_are_unsteady() -> None:
    variants = [
        {"name": "base", "claims": [row("M1", "holds"), row("M2", "holds"), row("M3", "fails")]},
        {"name": "seed 2", "claims": [row("M1", "fails"), row("M2", "holds"), row("M3", "inconclusive")]},
    ]  # fmt: skip
    assert agreement.unsteady(variants) == {"M1", "M3"}
    assert agreement.unsteady([]) == set()
