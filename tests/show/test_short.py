"""Pins: the answer in short says what the answers hold, whatever grid they come from."""

from __future__ import annotations

import functools
from typing import Any

import pandas as pd
import pytest
from tests.experiments import synthetic

from repro.experiments import law_choice
from repro.show import short


@functools.cache
def of_product() -> dict[str, Any]:
    return answered(synthetic.reseeded(synthetic.product, noise=0.002))


def answered(table: pd.DataFrame) -> dict[str, Any]:
    return law_choice.answers(table)


def test_a_product_law_is_named_with_its_exponents() -> None:
    answers = of_product()
    said = short.law_answer(answers)
    assert ("The product law" in said) == (answers["M5"]["holds"] is True)
    assert "from D = 320 to 10,240" in said
    assert "5 of them are 5 facts" in said
    assert "0.51 times as wide" in said


@pytest.mark.slow
def test_a_bend_gets_no_verdict_and_its_cause() -> None:
    said = short.law_answer(answered(synthetic.reseeded(synthetic.head_start, noise=0.002)))
    assert "no power law in D" in said
    assert "D0 = " in said
    assert "Of the bend: the slope changes by +" in said
    assert "D well above D0" in said


@pytest.mark.parametrize("holds", [True, False, None])
def test_the_duels_decide(holds: bool | None) -> None:
    answers = of_product() | {"M5": {**of_product()["M5"], "holds": holds}}
    said = short.law_answer(answers).splitlines()[0]
    start = {True: "The product law", False: "Not the product law", None: "Open"}[holds]
    assert said.startswith(f"**Which law?** {start}")


@pytest.mark.parametrize(
    "table",
    [
        synthetic.grid_table(synthetic.product).assign(state="diverged"),
        synthetic.grid_table(synthetic.product, {"1x32": 10_000}),
        synthetic.grid_table(synthetic.product, {"1x32": 10_000, "2x64": 90_000}, (320,)),
    ],
)
def test_small_and_dead_grids_are_answered(table: pd.DataFrame) -> None:
    assert short.law_answer(answered(table)).startswith("**Which law?**")
