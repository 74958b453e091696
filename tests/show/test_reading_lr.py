"""Pins: the words of notebook 02 for a profile with the study, without it, and with nothing finished."""

from __future__ import annotations

import pandas as pd
from tests.experiments.test_lr_invariance import compared, curves_of, study_table

from repro.experiments import lr_invariance
from repro.show import page, reading_lr

TABLE = study_table(0.01)
FOUND = lr_invariance.answers(TABLE, curves_of(TABLE, 1.0, 1e-3), compared(rates=0.97, noise=0.0))


def test_the_words_hold_the_numbers() -> None:
    assert "12 of 12 runs (100 %) reached their minimum" in reading_lr.asked(FOUND)
    said = reading_lr.summary(FOUND)
    assert page.estimate(FOUND["M3"]) in said
    assert page.estimate(FOUND["M1"]["parts"]["ratio"]) in said
    spreads = reading_lr.spreads(FOUND)
    assert spreads["n"].tolist() == [12, 9, 9, 12]  # all; without an end twice; all again
    assert "without the highest rate the ratio is" in FOUND["M1"]["why"]
    assert reading_lr.collapse(FOUND)["D"].tolist() == sorted(2 * [320, 1280, 5120])
    assert "900 queries" in reading_lr.likeness(FOUND["alike"])


def test_a_rate_without_a_minimum_is_named() -> None:
    table = TABLE.assign(state=["censored", *TABLE["state"][1:]])
    table = table.assign(reached=lr_invariance.reached(table))
    said = reading_lr.asked(lr_invariance.answers(table, curves_of(table), []))
    assert "0.0005 at D = 320 (censored)" in said


def test_a_profile_without_the_study_says_so_in_one_sentence() -> None:
    assert reading_lr.asked({}) == reading_lr.summary({}) == reading_lr.NOT_ASKED
    assert reading_lr.NOT_ASKED.count(".") == 1
    nothing = lr_invariance.answers(pd.DataFrame(), pd.DataFrame(), [])
    assert reading_lr.asked(nothing) == reading_lr.summary(nothing) == reading_lr.NOTHING
    for table in (reading_lr.spreads, reading_lr.collapse):
        assert table({}).empty
        assert table(nothing).empty
    assert "No two checkpoints" in reading_lr.likeness([])
