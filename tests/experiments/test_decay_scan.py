"""Pins: optima of a scan, and what the convention of the decayed tensors moves, where both are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.experiments.test_weight_decay import DECAYS, SIZES, scanned

from repro.app.study import Study
from repro.experiments import grid, weight_decay, weight_decay_answers
from repro.experiments.decay_scan import optimum
from repro.experiments.weight_decay import DecayParams
from repro.show import reading_decay
from repro.show.figures import decay as figures

RULE = {d: 12_800 / d for d in SIZES}


def under_both(
    matrices: dict[int, float], every: dict[int, float], gain: float = 0.0, noise: float = 0.05
) -> dict[str, Any]:
    """Answers where the optima under each convention are these and `all` lowers the floor by `gain`.

    Decay 0 is there once: its run is that of both.
    """
    own, losses = scanned(matrices, noise)
    other, more = scanned(every, noise, "all", 1.9 - gain)
    table = pd.concat([own, other[other["weight_decay"] > 0]])
    return weight_decay_answers.answers(table, pd.DataFrame(), losses | more, ["matrices", "all"])


def test_what_the_convention_moves_is_found_and_paired_over_the_pairs() -> None:
    found = under_both(RULE, {d: 0.5 * best for d, best in RULE.items()}, gain=0.1)
    moved = found["conventions"]
    assert moved["ratio"]["value"] == pytest.approx(0.5, rel=0.15)
    assert moved["ratio"]["ci95"][0] < 0.5 < moved["ratio"]["ci95"][1] < 1
    assert moved["floor"]["value"] == pytest.approx(-0.1, abs=0.01)
    low, high = moved["floor"]["ci95"]
    assert low < -0.1 < high < 0
    assert high - low < 0.02  # each floor alone is known to 0.17: pairs differ in hardness
    assert [row["d"] for row in moved["sizes"]] == list(SIZES)
    assert [row["none"] for row in found["scan"]][:3] == [row["none"] for row in found["scan"]][3:]
    said = reading_decay.conventions(moved)
    assert said.count("**moves**") == 2
    assert "vectors too" in reading_decay.scan(found["scan"])
    assert len(reading_decay.conventions_by_size(moved)) == 3
    assert "vectors too" in figures.scan(found["scan"])["alt"]
    figures.optima(found["scan"])


def test_conventions_that_are_alike_move_nothing() -> None:
    found = under_both(RULE, RULE)["conventions"]
    assert found["ratio"]["value"] == pytest.approx(1, abs=1e-9)
    assert found["floor"]["value"] == pytest.approx(0, abs=1e-9)
    assert reading_decay.conventions(found).count("is not seen to move") == 2


def test_the_verdict_on_the_rule_rests_on_the_first_convention() -> None:
    flat = dict.fromkeys(SIZES, 10.0)
    first = under_both(RULE, flat)["M16"]
    assert first["holds"] is True
    assert first["parts"]["slope_all"]["value"] == pytest.approx(0, abs=0.2)
    assert "all decayed: slope" in first["why"]
    second = under_both(flat, RULE)["M16"]
    assert second["holds"] is False
    assert second["parts"]["slope_all"]["value"] == pytest.approx(-1, abs=0.2)
    assert second["parts"]["slope_all"]["ci95"]


def test_an_optimum_at_an_end_under_one_convention_has_no_ratio() -> None:
    found = under_both(RULE, RULE | {320: 400.0}, noise=0.0)
    first, *rest = found["conventions"]["sizes"]
    assert first["ratio"]["value"] is None
    assert all(row["ratio"]["value"] == pytest.approx(1) for row in [*rest, found["conventions"]])
    assert found["M16"]["holds"] is not None
    assert "some at an end of the scan" in found["M16"]["why"]
    assert found["M16"]["parts"]["slope_all"]["ci95"] is None
    nowhere = under_both(RULE, dict.fromkeys(SIZES, 400.0), noise=0.0)["conventions"]
    assert "leaves open" in reading_decay.conventions(nowhere)


def test_one_convention_compares_nothing() -> None:
    table, losses = scanned(RULE)
    found = weight_decay_answers.answers(table, pd.DataFrame(), losses)
    assert found["conventions"] is None
    assert found["M16"]["parts"] == {}
    assert "not asked" in reading_decay.conventions(None)


def test_an_optimum_between_the_decays_is_found() -> None:
    x = np.array(DECAYS[1:])
    assert optimum(x, np.log(x / 8.0) ** 2) == pytest.approx(8.0)
    assert optimum(x, x) == 1.0
    assert optimum(x, -x) == 100.0
    assert optimum(x, np.ones(5)) == 1.0


@pytest.mark.slow
def test_the_other_convention_is_scanned_beside_the_first(fresh: Study) -> None:
    """Its runs differ in that alone; decay 0 and all that follows the scan are the first one's."""

    def ask(**more: object) -> None:
        asked: dict[str, object] = {"model": "small", "decays": [0.1, 1, 10], "sizes": [32]}
        section = DecayParams.model_validate(asked | {"compare": [32], "seeds": 2} | more)
        fresh.profile = fresh.profile.model_copy(update={"weight_decay": section})
        fresh.__dict__.pop("runs", None)

    ask()
    assert fresh.sweep() == {}
    before = weight_decay.parts(fresh.runs)
    none, first = before["scan"][:2]
    assert none.spec in [run.spec for run in grid.runs(fresh.runs)]
    assert first.spec == fresh.runs.trained("small", pairs=32, train={"weight_decay": 0.1}).spec
    ask(decayed=["matrices", "all"])
    parts = weight_decay.parts(fresh.runs)
    assert [run.spec for run in parts["scan"][:4]] == [run.spec for run in before["scan"]]
    assert [run.train.label for run in parts["scan"][:4]] == [r.train.label for r in before["scan"]]
    # What follows rests on the first scan: it is known before the other has run.
    assert [r.spec for r in parts["compared"]] == [run.spec for run in before["compared"]]
    for run, own in zip(parts["scan"][4:], before["scan"][1:], strict=True):
        train = own.spec.train.model_copy(update={"decayed": "all"})
        assert run.spec == own.spec.model_copy(update={"train": train})
    assert fresh.missing() == 3
    assert fresh.sweep() == {}
    found = fresh.answers()["weight_decay"]
    rows = {row["decayed"]: row for row in found["scan"]}
    assert rows["matrices"]["none"] == rows["all"]["none"]
    assert rows["matrices"]["mael"][-1] != rows["all"]["mael"][-1]
    assert found["conventions"]["floor"]["ci95"]
