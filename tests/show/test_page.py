"""Pins: tables and sentences read well, and hold what they are given."""

from __future__ import annotations

import pandas as pd
import pytest
from tests.experiments import synthetic

from repro.experiments import gains, law_fits
from repro.experiments.bend import LAWS, bend
from repro.experiments.regime import find_regime, local_slopes
from repro.experiments.replicates import seed_noise
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
    assert "not known" in reading.seed_noise(None)
    again = reading.seed_noise(seed_noise(synthetic.reseeded(synthetic.product)))
    assert "10 degrees of freedom, 5 cells" in again


def test_what_falls_short_is_named_and_the_rest_is_counted() -> None:
    table = synthetic.reseeded(synthetic.product)
    checks = gains.soundness(table, seed_noise(table))
    shown = reading.soundness(checks)
    assert shown.iloc[1].tolist() == ["○ no", checks[1]["check"], "at least 40", "9"]
    said = reading.weak_steps(checks)
    assert "1x32 on 320 pairs" in said
    assert "moves in D that lower" not in said
    assert "Nothing" in reading.weak_steps([{**row, "met": True} for row in checks])


@pytest.mark.parametrize("law", ["product", "worth_2000"])
def test_the_bend_is_said_with_its_numbers(law: str) -> None:
    table = synthetic.reseeded(getattr(synthetic, law))
    cells = law_fits.losses(table)
    found = bend(table, {name: law_fits.laws(cells, [name])[name] for name in LAWS})
    said = reading.bend(found)
    assert ("No bend" in said) == (law == "product")
    assert said.count("than seeds make") == 4
    shown = reading.bends(found).set_index("law")
    assert shown.loc["product law with head start", "bent by"].startswith("D0 = ")
    assert "(fixed)" in shown.loc["product law capped at chance", "bent by"]
    ranges = reading.ranges(find_regime(local_slopes(table)).as_dict())
    assert "takes 4 models that share one" in ranges
    assert "of 6 sizes or more" in ranges


def test_two_sizes_have_no_slopes_that_could_agree() -> None:
    found = find_regime(
        local_slopes(synthetic.grid_table(synthetic.product, synthetic.MICRO, (160, 320)))
    )
    assert reading.ranges(found.as_dict()).startswith("With 2 data sizes no model has")


def test_a_grid_without_laws_has_a_bend_of_its_own_words() -> None:
    table = synthetic.grid_table(synthetic.product, synthetic.MICRO, (160, 320))
    found = bend(table.assign(state="diverged"), {})
    assert "too small" in reading.bend(found)
    assert reading.bends(found).empty


def test_fall_is_that_of_the_law() -> None:
    text = reading.fall(synthetic.grid_table(synthetic.product, noise=0))
    assert "16 times the pairs change MAEL by -43 %" in text
    assert "62 times the parameters by -34 %" in text


def test_states_are_counted() -> None:
    table = pd.DataFrame({"state": ["turned", "turned", "censored"]})
    assert reading.states(table).startswith("Of 3 runs: 2 turned")
    assert "1 censored" in reading.states(table)


def test_depth_without_a_minimum_is_not_measured() -> None:
    rows = [
        {"models": ["a", "b"], "slope": None, "ci95": None},
        {"models": ["b", "c"], "slope": 0.1, "ci95": [0.05, 0.15]},
    ]
    said = reading.depth(rows)
    assert "a to b not measured; b to c 0.100 [0.050, 0.150]" in said


def test_the_decisions_name_what_holds_and_what_fails() -> None:
    about = {"kind": "qual", "asks": "its sign"}
    rows = [
        {**about, "id": "M3", "claim": "It stays.", "verdict": "fails"},
        {**about, "id": "M1", "claim": "It falls.", "verdict": "holds"},
        {**about, "id": "M1", "claim": "It falls.", "verdict": "match", "kind": "calc"},
        {**about, "id": "M2", "claim": "It bends.", "verdict": "inconclusive"},
    ]
    said = page.decisions(rows, {"M1"})
    assert said.startswith(
        "- **● holds** M1 ‡: It falls. *Asked: its sign.*\n- **○ fails** M3: It stays."
    )
    assert "It bends" not in said
    assert "‡" not in page.decisions(rows)
    assert page.decisions(rows[3:]).startswith("No claim")
