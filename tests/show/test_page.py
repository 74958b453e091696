"""Pins: tables and sentences read well, and hold what they are given."""

from __future__ import annotations

import pandas as pd
import pytest
from tests.experiments import synthetic

from repro.show import page, reading


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"), (float("nan"), "–"), (0.10132, "0.101"), (12, "12"), (10240, "10,240"),
        (396544.0, "396,544"), (True, "yes"), ([0.1, None], "[0.1, –]"), ("a", "a"),
    ],
)  # fmt: skip
def test_cells(value: object, text: str) -> None:
    assert page.cell(value) == text


def test_bars_in_cells_are_escaped() -> None:
    assert page.markdown(["a|b"], [["c\nd"]]) == "| a\\|b |\n| --- |\n| c d |"


def test_found_names_each_part() -> None:
    row = {"ours": {"alpha": 0.1, "beta": 0.2}, "ci95": {"alpha": [0.05, 0.15]}}
    assert page.found(row) == "alpha 0.1 [0.05, 0.15]<br>beta 0.2"
    assert page.found({"ours": None, "ci95": None}) == "–"
    assert page.found({"ours": 0.024, "ci95": [0.01, 0.04], "unit": "%"}) == "2.4 % [1, 4]"
    assert page.found({"ours": 3.7e6, "ci95": None, "unit": "%"}) == "over 999 %"


def test_tally_counts_every_verdict() -> None:
    rows = [{"source": "a", "verdict": "holds"}, {"source": "b", "verdict": "holds"}]
    counts = page.tally([*rows, {"source": "a", "verdict": "not run"}])
    assert counts.columns.tolist() == ["source", "holds", "not run"]
    assert counts.drop(columns="source").to_numpy().sum() == 3


def test_one_seed_is_said_to_tell_no_noise() -> None:
    assert "not known" in reading.seed_noise(synthetic.grid_table(synthetic.product))
    twice = reading.seed_noise(synthetic.grid_table(synthetic.product, seeds=2))
    assert "sd, mean of 25 cells" in twice


def test_fall_is_that_of_the_law() -> None:
    text = reading.fall(synthetic.grid_table(synthetic.product, noise=0))
    assert "16 times the pairs change MAEL by -43 %" in text
    assert "62 times the parameters by -34 %" in text


def test_states_are_counted() -> None:
    table = pd.DataFrame({"state": ["turned", "turned", "censored"]})
    assert reading.states(table).startswith("Of 3 runs: 2 turned")
    assert "1 censored" in reading.states(table)
