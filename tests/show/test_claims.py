"""Pins: the vocabulary of verdicts, and that the table of claims is complete."""

from __future__ import annotations

import pytest

from repro.experiments.answer import answer, part
from repro.show import claims

EXPECTED = (
    [f"M{k}" for k in range(1, 22)]
    + [f"S{k}" for k in range(1, 15)]
    + [f"T{k}" for k in range(1, 6)]
    + [f"C{k}" for k in range(1, 8)]
)


def claim(**kinds: object) -> claims.Claims:
    row = {"id": "X1", "source": "mael", "notebook": "04", "sentence": "s", "paper": "p", **kinds}
    return claims.Claims.model_validate({"claims": [row], "limits": []})


def only(found: dict, claims_: claims.Claims, comparable: tuple[str, ...] = ("mael",)) -> dict:
    (row,) = claims.verdicts(found, comparable=comparable, claims=claims_)
    return row


def test_every_claim_has_its_row() -> None:
    assert [c.id for c in claims.load().claims] == EXPECTED
    rows = claims.verdicts({})
    assert {row["verdict"] for row in rows} == {"not run"}
    assert [row["id"] for row in rows] == EXPECTED
    assert all(row["why"] for row in rows)


def test_limits_are_open_or_tested() -> None:
    assert len(claims.load().limits) == 9


@pytest.mark.parametrize(
    ("value", "ci95", "verdict"),
    [
        (0.02, (0.01, 0.04), "holds"),
        (0.02, (0.01, 0.06), "inconclusive"),
        (0.08, (0.06, 0.10), "fails"),
        (0.02, None, "holds"),
        (0.08, None, "fails"),
        (None, None, "inconclusive"),
    ],
)
def test_a_rule_needs_the_whole_interval(value: float, ci95: tuple, verdict: str) -> None:
    asked = claim(qual={"asks": "small", "holds_if": [{"below": 0.05}]})
    row = only({"X1": answer(value, "because", n=9, ci95=ci95)}, asked)
    assert row["verdict"] == verdict
    assert "because" in row["why"]


def test_a_value_without_an_end_to_its_error_decides_nothing() -> None:
    asked = claim(qual={"asks": "", "holds_if": [{"part": "a", "below": 0.5}]})
    parts = {"a": part(-2.3, endless=True)}
    assert only({"X1": answer(None, "", n=3, parts=parts)}, asked)["verdict"] == "inconclusive"


def test_one_broken_rule_is_enough_to_fail() -> None:
    rules = [{"part": "a", "above": 0}, {"part": "b", "below": 1}]
    parts = {"a": part(1.0), "b": part(2.0)}
    row = only(
        {"X1": answer(None, "", n=1, parts=parts)}, claim(qual={"asks": "", "holds_if": rules})
    )
    assert row["verdict"] == "fails"
    assert row["ours"] == {"a": 1.0, "b": 2.0}


def test_blocked_is_inconclusive_whatever_the_value() -> None:
    asked = claim(qual={"asks": "small", "holds_if": [{"below": 0.05}]})
    row = only({"X1": answer(0.0, "", n=1, blocked="no power-law regime")}, asked)
    assert (row["verdict"], row["why"]) == ("inconclusive", "no power-law regime")


def test_numbers_are_not_comparable_on_embedded_data() -> None:
    asked = claim(num={"values": {"": 0.161}, "close": 0.1})
    found = {"X1": answer(0.5, "", n=12)}
    assert only(found, asked, ())["verdict"] == "not comparable"
    assert only(found, asked)["verdict"] == "differs"


@pytest.mark.parametrize(
    ("value", "verdict"),
    [(0.1612, "match"), (0.165, "close"), (0.19, "differs"), (0.1452, "close")],
)
def test_match_is_the_rounding_and_close_the_tolerance(value: float, verdict: str) -> None:
    asked = claim(calc={"values": {"": 0.161}, "close": 0.1})
    assert only({"X1:calc": answer(value, "", n=0)}, asked)["verdict"] == (
        "match" if abs(value - 0.161) <= 0.00161 else verdict
    )


def test_printed_constants_imply_what_the_paper_says() -> None:
    from repro.experiments import published

    rows = {row["id"]: row for row in claims.verdicts(published.answers()) if row["kind"] == "calc"}
    assert {k: rows[k]["verdict"] for k in ("M11", "M12", "M13", "M21", "S11")} == {
        "M11": "match", "M12": "close", "M13": "match", "M21": "match", "S11": "match",
    }  # fmt: skip


def test_answers_may_be_grouped_by_experiment() -> None:
    asked = claim(qual={"asks": "", "holds_if": [{"above": 0}]})
    found = {"some_experiment": {"X1": answer(1.0, "", n=1), "laws": {}}}
    assert only(found, asked)["verdict"] == "holds"
