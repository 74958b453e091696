"""Pins: the transfer law found where it is built in, the split by formula, D0, and what cannot be said."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from repro.app.study import Study
from repro.errors import UserError
from repro.experiments import transfer, transfer_answers, transfer_fits, transfer_worth
from repro.experiments.transfer import TransferParams
from repro.laws.allocation import transfer_split
from repro.laws.transfer import SIMPLER, loss, pretraining_share
from repro.show import claims, reading_transfer
from repro.show.figures import transfer as figures
from tiny import write_beir, write_bert

STEPS = (40, 80, 150, 300, 600)
SIZES = (0, 320, 640, 1280, 2560, 5120, 10240)
LAW = {"A": 200.0, "alpha": 0.8, "G": 6.0, "beta": 0.3, "E": 0.5, "f0": 400.0}
Law = Callable[[float, float], float]


def transferred(**changes: float) -> Law:
    law = LAW | changes
    return lambda p, f: float(loss(law, np.array(p), np.array(f)))


def additive(p: float, f: float) -> float:
    return 30 * p**-0.7 + 12 * (f + 400) ** -0.3 + 0.3


def measured(
    law: Law,
    target: str = "cloud",
    noise: float = 0.004,
    steps: Sequence[int] = STEPS,
    sizes: Sequence[int] = SIZES,
    seeds: int = 1,
) -> pd.DataFrame:
    """One row a run and a start, in the shape of `transfer.table`."""
    rng = np.random.default_rng(3)
    rows = []
    for p in steps:
        for f in sizes:
            for seed in range(1 if f == 0 else seeds):
                value = law(p, f) * float(np.exp(noise * rng.standard_normal()))
                row = {"target": target, "p": p, "f": f, "loss": value, "seed": seed}
                state = "turned" if f else "exact"
                rows.append({**row, "state": state, "steps": f // 10, "weights": f"w-{p}"})
    return pd.DataFrame(rows)


@pytest.fixture(scope="module")
def three() -> dict[str, Any]:
    """Three targets with one alpha and three betas."""
    betas = {"cloud": 0.2, "numeric": 0.4, "learning": 0.7}
    scale = {"cloud": 1.0, "numeric": 3.0, "learning": 20.0}
    tables = [
        measured(transferred(beta=b, A=200 * scale[k], G=6 * scale[k]), k) for k, b in betas.items()
    ]
    return transfer_answers.answers(pd.concat(tables, ignore_index=True))


def test_the_law_is_found_where_it_is_built_in(three: dict[str, Any]) -> None:
    assert three["T1"]["holds"] is True
    law = three["targets"][0]["laws"][0]
    assert law["form"] == "transfer_f0"
    assert law["params"]["alpha"] == pytest.approx(0.8, rel=0.15)
    assert law["loo_p"] < 0.03
    assert three["targets"][0]["problem"] == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    "law",
    [additive, transferred(G=0.0), transferred(E=0.0)],
    ids=["additive", "no gap", "no floor"],
)
def test_the_law_is_not_ahead_where_a_simpler_form_is_true(law: Law) -> None:
    assert transfer_answers.answers(measured(law))["T1"]["holds"] is not True


def test_exponents_over_three_targets(three: dict[str, Any]) -> None:
    found = three["T2"]
    assert found["holds"] is True
    assert found["value"] > 1
    assert "no difference beyond their errors" in found["why"].split(";")[0]


@pytest.mark.slow
def test_one_target_has_no_spread() -> None:
    found = transfer_answers.answers(measured(transferred()))["T2"]
    assert found["holds"] is None
    assert "a spread takes 3" in found["blocked"]


@pytest.mark.slow
def test_targets_with_one_beta_are_not_said_to_vary() -> None:
    tables = [measured(transferred(), name) for name in "abc"]
    found = transfer_answers.answers(pd.concat(tables))["T2"]
    assert found["holds"] is None


@pytest.mark.parametrize("f0", [0.0, 500.0])
@pytest.mark.parametrize("price", [0.01, 1.0, 30.0])
def test_the_split_by_formula_is_the_numerical_one(f0: float, price: float) -> None:
    law = LAW | {"f0": f0}
    found = transfer_split(lambda p, f: loss(law, p, f), 5000, 1.0, price)
    share = float(pretraining_share(law, 5000, 1.0, price))
    assert found.n / 5000 == pytest.approx(share, abs=2e-3)


def test_without_head_start_the_price_of_a_label_does_not_move_the_share() -> None:
    law = LAW | {"f0": 0.0}
    shares = [float(pretraining_share(law, 5000, 1.0, price)) for price in (0.01, 1.0, 100.0)]
    assert np.ptp(shares) < 1e-9
    free = law | {"G": 0.0}
    assert float(pretraining_share(free, 5000, 1.0, 1.0)) == pytest.approx(0.8 / 1.1)


def test_a_larger_gap_moves_the_budget_to_labels(three: dict[str, Any]) -> None:
    assert three["T3"]["holds"] is True
    assert three["T3"]["value"] < 0
    rows = three["targets"][0]["splits"]
    assert len(rows) == 3 * (1 + 4)
    for row in rows:
        assert row["share"] == pytest.approx(row["formula"], abs=5e-3)
    calc = transfer_answers.answers(None)["T3:calc"]
    assert calc["parts"]["share"]["value"] == pytest.approx(0.5, abs=0.005)


@pytest.mark.slow
def test_a_start_that_does_nothing_moves_no_budget() -> None:
    found = transfer_answers.answers(measured(transferred(A=1e-6), noise=0.01))
    assert found["T3"]["holds"] is not True
    assert found["T1"]["holds"] is not True


def test_widths_fall_with_the_number_of_points(three: dict[str, Any]) -> None:
    rows = three["targets"][0]["widths"]
    assert [row["points"] for row in rows] == sorted(row["points"] for row in rows)
    assert rows[-1]["points"] == len(STEPS) * len(SIZES)
    assert rows[0]["beta"] > rows[-1]["beta"] > three["targets"][0]["at_150"]["beta"]
    assert three["T4"]["value"] > 0


@pytest.mark.slow
def test_noise_makes_the_parameters_unknown() -> None:
    quiet = transfer_answers.answers(measured(transferred(), noise=1e-4))["T4"]
    loud = transfer_answers.answers(measured(transferred(), noise=0.05))["T4"]
    assert quiet["holds"] is True
    assert loud["holds"] is not True


def grown(p: float, f: float) -> float:
    """One curve; a start is worth 2 p pairs."""
    return 25 * (f + 2 * p) ** -0.3


@pytest.mark.slow
def test_labels_that_a_start_is_worth() -> None:
    found = transfer_answers.answers(measured(grown, noise=0.002))
    assert found["T5"]["holds"] is True
    assert found["T5"]["value"] == pytest.approx(1200, rel=0.1)
    worth = found["targets"][0]["worth"]
    assert worth["shared_growth"]["value"] == pytest.approx(1, abs=0.1)
    assert worth["p_shared"] > 0.01
    assert worth["shared_beta"] == pytest.approx(0.3, abs=0.02)
    row = next(r for r in found["targets"][0]["equivalents"] if (r["p"], r["f"]) == (600, 320))
    assert row["pairs"] == pytest.approx(2 * (600 - 40), rel=0.15)
    last = next(r for r in found["targets"][0]["equivalents"] if (r["p"], r["f"]) == (600, 10240))
    assert last["pairs"] is None
    assert last["beyond"] == 0


@pytest.mark.slow
def test_a_worth_that_shrinks_fails() -> None:
    found = transfer_answers.answers(
        measured(lambda p, f: 25 * (f + 48_000 / p) ** -0.3, noise=0.002)
    )
    assert found["T5"]["holds"] is False


def test_seeds_of_a_cell_are_one_point() -> None:
    table = measured(transferred(), seeds=3)
    assert len(transfer_fits.points(table)) == len(STEPS) * len(SIZES)


@pytest.mark.parametrize(
    ("steps", "sizes", "said"),
    [
        ((600,), SIZES, "1 checkpoint and 7 data sizes"),
        (STEPS, (0, 320, 640), "5 checkpoints and 3 data sizes"),
        (STEPS, (0, 320), "5 checkpoints and 2 data sizes"),
        ((40,), (0, 320), "1 checkpoint and 2 data sizes"),
        ((40,), (0,), "1 checkpoint and 1 data size "),
    ],
)
def test_too_few_points_are_said(steps: Sequence[int], sizes: Sequence[int], said: str) -> None:
    found = transfer_answers.answers(measured(transferred(), steps=steps, sizes=sizes))
    for claim in ("T1", "T2", "T3", "T4"):
        assert found[claim]["holds"] is None
        assert found[claim]["blocked"]
    assert said in found["T1"]["blocked"]
    shown(found)


@pytest.mark.slow
def test_four_checkpoints_determine_the_law_but_spare_none() -> None:
    found = transfer_answers.answers(measured(transferred(), steps=STEPS[1:]))
    assert "leaving one out takes 5 and 6" in found["T1"]["blocked"]
    assert found["T3"]["holds"] is True
    shown(found)


@pytest.mark.slow
def test_missing_runs_leave_a_law_and_dead_ones_none() -> None:
    table = measured(transferred())
    fewer = table.drop(index=[3, 10, 19, 24])
    assert transfer_answers.answers(fewer)["targets"][0]["laws"][0]["params"][
        "beta"
    ] == pytest.approx(0.3, 0.2)
    plateau = table.assign(state=np.where(table["f"] > 0, "plateau", "exact"))
    assert (
        transfer_answers.answers(plateau)["T1"]["value"]
        == transfer_answers.answers(table)["T1"]["value"]
    )
    for state in ("diverged", "censored"):
        dead = table.assign(state=np.where(table["f"] > 0, state, "exact"))
        found = transfer_answers.answers(dead)
        assert found["T1"]["blocked"]
        assert found["T5"]["blocked"]
        shown(found)
    nothing = transfer_answers.answers(table.assign(state="diverged"))
    assert nothing["T1"]["blocked"]
    empty = transfer_answers.answers(table.iloc[:0])
    assert empty["T1"]["blocked"] == "no run of transfer has finished"
    for found in (nothing, empty):
        shown(found)


@pytest.mark.slow
def test_some_censored_runs_are_bounds() -> None:
    table = measured(transferred())
    last = table["f"] == SIZES[-1]
    bound = table.assign(
        state=table["state"].mask(last, "censored"), loss=table["loss"] * np.where(last, 1.3, 1)
    )
    found = transfer_answers.answers(bound)["targets"][0]
    assert found["states"]["censored"] == len(STEPS)
    assert found["laws"][0]["params"]["beta"] == pytest.approx(0.3, abs=0.1)
    shown(transfer_answers.answers(bound))


def test_every_claim_has_a_verdict_and_a_profile_without_the_section_says_why(
    three: dict[str, Any],
) -> None:
    rows = {(r["id"], r["kind"]): r for r in claims.verdicts({"transfer": three})}
    assert rows["T3", "calc"]["verdict"] == "match"
    assert rows["T1", "qual"]["verdict"] == "holds"
    without = claims.verdicts({"transfer": transfer_answers.answers(None)})
    verdicts = {(r["id"], r["kind"]): r for r in without}
    assert verdicts["T3", "calc"]["verdict"] == "match"
    assert verdicts["T3", "qual"]["verdict"] == "not run"
    assert "no section transfer" in verdicts["T1", "qual"]["why"]


def test_figures_and_sentences(three: dict[str, Any]) -> None:
    shown(three)
    assert "cloud: 35 points" in figures.over_pairs(three["targets"], three["points"])["alt"]
    assert "without gap" in figures.split(three["targets"])["alt"]
    assert len(reading_transfer.laws(three["targets"])) == 3 * (1 + len(SIMPLER))
    assert "steps" in reading_transfer.statics(three["targets"])


def shown(found: Mapping[str, Any]) -> None:
    """Everything that the notebook shows can be shown, and the answers are JSON."""
    json.dumps(dict(found), allow_nan=False)
    targets, points = found["targets"], found["points"]
    for drawing in (
        figures.over_pairs(targets, points), figures.over_steps(targets, points),
        figures.worth(targets), figures.split(targets),
    ):  # fmt: skip
        assert drawing["alt"]
    for name in ("points", "statics", "growth"):
        assert getattr(reading_transfer, name)(targets)
    for name in ("laws", "parameters", "splits", "widths", "worth", "equivalents"):
        assert isinstance(getattr(reading_transfer, name)(targets), pd.DataFrame)


def test_equivalents_need_two_checkpoints() -> None:
    one = transfer_fits.points(measured(grown, steps=(40,)))
    assert transfer_worth.equivalents(one) == []


GOOD: dict[str, Any] = {"model": "small", "checkpoints": {"a": 10, "b": 20}, "sizes": [32, 64]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sizes": [64, 32]}, "do not rise"),
        ({"sizes": [0, 32]}, "greater than or equal to 2"),
        ({"sizes": []}, "at least 1"),
        ({"checkpoints": {}}, "at least 1"),
        ({"checkpoints": {"a": 10, "b": 10}}, "same number of steps"),
        ({"checkpoints": {"a": 0}}, "greater than or equal to 1"),
        ({"datasets": ["x", "x"]}, "stands twice"),
        ({"prices": [0.0, 1.0]}, "greater than 0"),
        ({"prices": [1.0, 0.1]}, "do not rise"),
        ({"seeds": 0}, "greater than or equal to 1"),
    ],
)
def test_what_cannot_be_run_is_refused(change: dict[str, Any], message: str) -> None:
    TransferParams.model_validate(GOOD)
    with pytest.raises(ValueError, match=message):
        TransferParams.model_validate(GOOD | change)


def with_transfer(study: Study, **asked: Any) -> Study:
    params = TransferParams.model_validate(asked)
    study.profile = study.profile.model_copy(update={"transfer": params})
    study.__dict__.pop("runs", None)
    return study


def second_dataset(study: Study, folder: Path) -> str:
    """Another dataset file on other pairs than those of `study`; its path."""
    data = json.loads(study.dataset_file.read_text())
    data["source"] |= {"folder": str(write_beir(folder / "beir2", 400))}
    data |= {"name": "other", "seed": 11}
    data["splits"] |= {"train": 100}
    file = folder / "other.yaml"
    file.write_text(json.dumps(data))
    return str(file)


@pytest.mark.slow
def test_two_targets_are_run_and_answered(fresh: Study, tmp_path: Path) -> None:
    weights = fresh.profile.models["small"].weights
    other = second_dataset(fresh, tmp_path)
    asked = {"model": "small", "checkpoints": {weights: 10}, "sizes": [32, 64]}
    study = with_transfer(fresh, **asked, datasets=[other, str(fresh.dataset_file)])
    assert [plan.dataset.params.name for plan in transfer.plans(study.runs)] == ["tiny", "other"]
    planned = study.planned()
    labels = [run.train.label for run in study.experiments()["transfer"]]
    assert len(labels) == len(set(labels)) == 4
    assert len(planned) == 4 + 1 + 2  # the grid, of which one cell is shared; the other target
    assert study.sweep() == {}
    assert study.missing() == 0
    table = transfer.table(transfer.plans(study.runs))
    assert table.groupby("target")["f"].apply(list).to_dict() == {
        "tiny": [0, 32, 64],
        "other": [0, 32, 64],
    }
    starts = table[table["f"] == 0]
    assert starts["loss"].nunique() == 2  # the same start on two validation sets
    found = study.answers()["transfer"]
    assert "1 checkpoint" in found["T1"]["blocked"]
    assert study.answers()["transfer"] == found
    assert len(study.pair_losses()) == 4
    assert Path(other) in study.depends_on()


def test_what_the_data_or_the_models_lack_is_refused(fresh: Study, tmp_path: Path) -> None:
    weights = fresh.profile.models["small"].weights
    asked = {"model": "small", "checkpoints": {weights: 10}, "sizes": [32]}
    there = len(fresh.dataset.splits.train)
    too_many = with_transfer(fresh, **asked | {"sizes": [32, 5000]})
    with pytest.raises(UserError, match=rf"5,000 pairs, but tiny has {there}"):
        too_many.planned()
    large = str(write_bert(tmp_path / "large", layers=2))
    unlike = with_transfer(fresh, **asked | {"checkpoints": {weights: 10, large: 20}})
    with pytest.raises(UserError, match="encoder parameters"):
        unlike.planned()
    with pytest.raises(UserError, match="nowhere"):
        with_transfer(fresh, **asked | {"checkpoints": {str(tmp_path / "nowhere"): 1}}).planned()
    unknown = with_transfer(fresh, **asked, datasets=["no-such-data"])
    with pytest.raises(UserError, match="no dataset 'no-such-data'"):
        unknown.planned()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": "huge"}, "not among the models"),
        ({"sizes": [8, 32]}, "batch_pairs 16 is larger than"),
    ],
)
def test_a_profile_is_checked_as_a_whole(
    study_file: Path, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    text = json.loads(study_file.read_text())
    weights = text["models"]["small"]["weights"]
    asked = {"model": "small", "checkpoints": {weights: 10}, "sizes": [32]} | change
    file = tmp_path / "study.yaml"
    file.write_text(json.dumps(text | {"transfer": asked}))
    with pytest.raises(UserError, match=message):
        Study(file)
