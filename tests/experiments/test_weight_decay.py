"""Pins: optima of a scan, the paper's rule, and tuned against none, on tables where they are known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from repro.app.study import Study
from repro.errors import UserError
from repro.experiments import weight_decay, weight_decay_answers
from repro.experiments.weight_decay import DecayParams
from repro.show.figures import decay as figures

DECAYS = [0.0, 1.0, 3.0, 10.0, 30.0, 100.0]
SIZES = (320, 1280, 5120)
MORE = ("test_entropy", "mrr10", "recall100", "ndcg10", "map10")


def scanned(
    best: dict[int, float], noise: float = 0.0, convention: str = "matrices", floor: float = 1.9
) -> tuple[pd.DataFrame, dict[tuple[str, float, int], np.ndarray]]:
    """A scan whose optimum at D is `best[D]`: a parabola in log decay, pairs that share hardness."""
    rng = np.random.default_rng(0)
    rows: list[dict[str, object]] = []
    losses: dict[tuple[str, float, int], np.ndarray] = {}
    for d, at in best.items():
        hard = rng.gamma(2.0, 1.0, 300)
        for decay in DECAYS:
            loss = 2.0 if decay == 0 else floor + 0.02 * np.log(decay / at) ** 2
            own = hard / hard.mean() * loss + noise * rng.normal(size=300)
            rows.append(
                {
                    "part": "scan", "model": "2x64", "d": d, "seed": 1, "lr": 4e-4, "mael": own.mean(),
                    "weight_decay": decay, "state": "turned", "n_encoder": 100_000,
                    "decayed": convention,
                }
            )  # fmt: skip
            losses[convention, decay, d] = own
    return pd.DataFrame(rows), losses


def compared(gain: float, seeds: int = 3) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Tuned (decay 10) lowers entropies by `gain` and raises the metrics by it, with small noise."""
    rng = np.random.default_rng(1)
    own, targets = [], []
    for seed in range(seeds):
        for decay in (0.0, 10.0):
            shift = gain * (decay > 0) + 0.002 * rng.normal()
            row = {"d": 1280, "seed": seed, "weight_decay": decay, "test_entropy": 2 - shift}
            row |= dict.fromkeys(MORE[1:], 0.3 + shift)
            own.append(
                {**row, "part": "compared", "mael": 2 - shift, "state": "turned", "lr": 4e-4}
            )
            targets += [{**row, "target": name} for name in ("a", "b", "c")]
    return pd.DataFrame(own), pd.DataFrame(targets)


def test_the_papers_rule_holds_where_it_is_built_in() -> None:
    table, losses = scanned({d: 12_800 / d for d in SIZES}, noise=0.05)
    found = weight_decay_answers.answers(table, pd.DataFrame(), losses)
    rule = found["M16"]
    assert rule["value"] == pytest.approx(-1, abs=0.2)
    assert rule["holds"] is True
    assert found["M17"]["parts"]["decay"]["value"] == pytest.approx(2.5, rel=0.5)
    assert [row["d"] for row in found["scan"]] == list(SIZES)


def test_one_decay_for_all_sizes_is_another_rule() -> None:
    table, losses = scanned(dict.fromkeys(SIZES, 10.0), noise=0.02)
    rule = weight_decay_answers.answers(table, pd.DataFrame(), losses)["M16"]
    assert rule["value"] == pytest.approx(0, abs=0.2)
    assert rule["holds"] is False


def test_an_optimum_at_an_end_of_the_scan_decides_nothing() -> None:
    table, losses = scanned({320: 400.0, 1280: 10.0, 5120: 2.5})
    rule = weight_decay_answers.answers(table, pd.DataFrame(), losses)["M16"]
    assert rule["holds"] is None
    assert "at an end of the scan on 320 pairs" in rule["blocked"]
    rows = weight_decay_answers.answers(table, pd.DataFrame(), losses)["scan"]
    assert [row["ci95"] is None for row in rows] == [True, False, False]


def test_two_sizes_and_diverged_runs_are_answered() -> None:
    table, losses = scanned({320: 30.0, 1280: 10.0})
    assert (
        "a slope takes three"
        in weight_decay_answers.answers(table, pd.DataFrame(), losses)["M16"]["why"]
    )
    dead = table.assign(state="diverged")
    assert weight_decay_answers.answers(dead, pd.DataFrame(), losses)["M17"]["blocked"]
    assert weight_decay.optima(dead) == {}
    at_one = table.assign(state=table["state"].where(table["d"] == 320, "censored"))
    assert weight_decay.optima(at_one) == {320: 30.0}
    assert weight_decay.optima(table[table["weight_decay"] != 30]) == {320: 10.0, 1280: 10.0}


@pytest.mark.parametrize(("gain", "holds"), [(0.05, True), (-0.05, False), (0.0, None)])
def test_tuned_against_none_is_paired_by_seed(gain: float, holds: bool | None) -> None:
    scan, losses = scanned({d: 12_800 / d for d in SIZES})
    own, targets = compared(gain)
    found = weight_decay_answers.answers(pd.concat([scan, own]), targets, losses)
    assert found["M18"]["holds"] is holds
    assert found["M18"]["parts"]["targets"]["value"] == pytest.approx(gain, abs=0.01)
    places = {row["place"] for row in found["differences"]}
    assert places == {"in domain", "a", "b", "c", "mean of targets"}
    figures.differences(found["differences"])


def test_one_seed_has_no_interval_and_decides_nothing() -> None:
    scan, losses = scanned({d: 12_800 / d for d in SIZES})
    own, targets = compared(0.1, seeds=1)
    found = weight_decay_answers.answers(pd.concat([scan, own]), targets, losses)
    assert found["M18"]["holds"] is None
    assert found["M18"]["blocked"]


@pytest.mark.parametrize("sizes", [SIZES, SIZES[:1]])
def test_figures_of_the_scan(sizes: tuple[int, ...], tmp_path: Path) -> None:
    table, losses = scanned({d: 12_800 / d for d in sizes}, noise=0.02)
    rows = weight_decay_answers.answers(table, pd.DataFrame(), losses)["scan"]
    assert "D = 320: best" in figures.scan(rows)["alt"]
    assert figures.optima(rows)["alt"]
    assert figures.scan([])["alt"]
    assert figures.optima([])["alt"]
    assert figures.differences([])["alt"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"decays": [1, 1, 2]}, "do not rise"),
        ({"decays": [1, 2]}, "at least 3"),
        ({"decays": [0, 1, 2]}, "greater than 0"),
        ({"compare": [640]}, "640 is not scanned"),
        ({"sizes": [320, 320]}, "do not rise"),
        ({"seeds": 1}, "greater than or equal to 2"),
        ({"compare": [320, 320]}, "do not rise"),
        ({"law_models": ["small"]}, "go together"),
        ({"law_sizes": [320]}, "go together"),
        ({"decayed": []}, "at least 1"),
        ({"decayed": ["all", "all"]}, "stands twice"),
        ({"decayed": ["vectors"]}, "'matrices' or 'all'"),
        ({"law_models": ["small", "small"], "law_sizes": [320]}, "stands twice"),
    ],
)
def test_what_cannot_be_run_is_refused(change: dict[str, object], message: str) -> None:
    good = {"model": "small", "decays": [1, 3, 9], "sizes": [320, 1280], "compare": [320]}
    DecayParams.model_validate(good)
    with pytest.raises(ValueError, match=message):
        DecayParams.model_validate(good | change)


@pytest.mark.slow
def test_runs_after_the_scan_are_known_when_it_is_there(fresh: Study) -> None:
    """Two phases in one sweep: the best decay of the scan is what is compared with none."""
    asked = DecayParams(model="small", decays=[0.1, 1, 10], sizes=[32], compare=[32], seeds=2)
    fresh.profile = fresh.profile.model_copy(update={"weight_decay": asked})
    assert "weight_decay" in fresh.experiments()
    first = fresh.planned()
    foretold = fresh.budget(later=True).lines
    assert list(foretold) == ["grid", "weight_decay", "weight_decay (later)"]
    assert list(fresh.budget().lines) == ["grid", "weight_decay"]  # what a sweep is held against
    assert fresh.sweep() == {}
    assert list(fresh.budget(later=True).lines) == ["grid", "weight_decay"]
    compared = weight_decay.parts(fresh.runs)["compared"]
    assert foretold["weight_decay (later)"].runs == len(compared)
    assert len(fresh.planned()) > len(first)
    assert fresh.missing() == 0
    table = weight_decay.table(fresh.runs)
    assert table["part"].value_counts().to_dict() == {"scan": 4, "compared": 4}
    best = weight_decay.optima(table[table["part"] == "scan"])[32]
    assert set(table.loc[table["part"] == "compared", "weight_decay"]) == {0.0, best}
    losses = weight_decay.pair_losses(fresh.runs)
    found = weight_decay_answers.answers(table, weight_decay.targets(fresh.runs), losses)
    assert found["M18"]["blocked"]  # the tiny dataset declares no targets
    assert fresh.answers()["weight_decay"]["scan"][0]["d"] == 32


def test_a_convention_of_the_training_that_is_not_scanned_is_refused(fresh: Study) -> None:
    asked = DecayParams(model="small", decays=[0.1, 1, 10], sizes=[32], compare=[32])
    train = fresh.profile.train.model_copy(update={"decayed": "all"})
    asked.check({"small": 1e-3}, fresh.profile.train)
    with pytest.raises(ValueError, match=r"train.decayed is all"):
        asked.check({"small": 1e-3}, train)


def test_sizes_beyond_the_data_are_refused_before_anything_is_trained(fresh: Study) -> None:
    """Those of the refitted law too: its runs are known only after the scan."""
    asked = DecayParams(
        model="small", decays=[0.1, 1, 10], sizes=[32], compare=[32],
        law_models=["small"], law_sizes=[32, 50_000],
    )  # fmt: skip
    fresh.profile = fresh.profile.model_copy(update={"weight_decay": asked})
    with pytest.raises(UserError, match=r"weight_decay.law_sizes asks for 50,000"):
        fresh.planned()
