"""Pins: figures and words of notebook 06 from a whole grid, a ragged one, and ones that tell nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from tests.experiments import synthetic

from repro.experiments import allocation
from repro.experiments.steps_law import MOST
from repro.show import page, reading_allocation, style
from repro.show.figures import allocation as figures

WHOLE = synthetic.with_steps(synthetic.reseeded(synthetic.worth_2000), 0.3, 0.9, 0.3, noise=0.3)
TABLES = {
    "whole": WHOLE,
    "ragged": WHOLE.drop(index=[0, 1, 7, 13]).reset_index(drop=True),
    "no minimum": WHOLE.assign(state="censored"),
    "diverged": WHOLE.assign(state="diverged"),
    "one model": WHOLE[WHOLE["model"] == "2x64"],
    "one run": WHOLE.head(1),
    "free models": synthetic.with_steps(synthetic.reseeded(synthetic.product), 1.2, 0.9, noise=0.1),
}


@pytest.fixture(scope="module", params=TABLES.values(), ids=TABLES)
def answers(request: pytest.FixtureRequest) -> dict[str, Any]:
    table: pd.DataFrame = request.param
    return allocation.answers(table)


def test_figures_draw(answers: dict[str, Any], tmp_path: Path) -> None:
    for drawing in (
        figures.steps(answers["steps"]),
        figures.ratios(answers["readings"], answers["papers"], MOST),
        figures.equal_compute(answers["iso"]),
        figures.corner(answers["dollars"]),
    ):
        style.save(
            drawing["figure"], tmp_path, drawing["name"], alt=drawing["alt"], data=drawing["data"]
        )
        assert (tmp_path / f"{drawing['name']}.svg").stat().st_size > 1000
        assert len(drawing["alt"]) > 40
        assert "nan" not in drawing["alt"]


def test_words_are_filled(answers: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    said = [
        reading_allocation.bounds(answers["bounds"]),
        reading_allocation.rates(answers["rates"]),
        reading_allocation.headline(answers["readings"], answers["regime"]),
        reading_allocation.control(answers["control"], answers["M15"]),
        reading_allocation.corner(answers["dollars"]),
    ]
    for text in said:
        assert text
        assert "nan" not in text
        text.format()  # page.say formats it: no stray braces
    for table in (
        reading_allocation.readings(answers["readings"], MOST),
        reading_allocation.papers(answers["papers"], MOST),
        reading_allocation.flops(answers["flops"]),
        reading_allocation.pairs(answers["iso"]["pairs"]),
        reading_allocation.dollars(answers["dollars"]),
    ):
        assert len(table)
        page.table(table)
    assert "nan" not in capsys.readouterr().out


def test_the_sentence_names_the_corner() -> None:
    found = allocation.answers(TABLES["whole"])["dollars"]
    text = reading_allocation.corner(found)
    first = min(
        passages
        for row in found["map"]
        for passages, best in zip(found["passages"], row, strict=True)
        if best == 0
    )
    assert "**The small model's corner** begins" in text
    assert style.count(first) in text
