"""Labels of several kinds: runs in rounds, and answers that recover what was put into a table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from repro.app.study import Study
from repro.errors import UserError
from repro.experiments import label_answers, labels, planted
from repro.experiments.labels import LabelsParams
from repro.seeds import stream
from repro.show import reading_labels
from repro.work import verify

SIZES = [320, 640, 1280, 2560, 5120]
MADE = [{"name": "ict", "kind": "ict"}, {"name": "generated", "kind": "doc2query"}]
LAWS = {"summary": (2.0, 0.20), "ict": (3.0, 0.10), "generated": (2.3, 0.19)}


def table(laws: dict[str, tuple[float, float]], noise: float = 0.0) -> pd.DataFrame:
    """Runs on power laws: kind -> (loss at 1,280 pairs, exponent)."""
    random = stream(3, "labels")
    return pd.DataFrame(
        {
            "kind": kind, "d": d, "seed": 1, "state": "turned",
            "mael": level * (d / 1280) ** -beta * np.exp(noise * random.standard_normal()),
        }
        for kind, (level, beta) in laws.items()
        for d in SIZES
    )  # fmt: skip


def answers(laws: dict[str, tuple[float, float]] = LAWS, **more: Any) -> dict[str, Any]:
    noise = more.pop("noise", 0.003)
    return label_answers.answers(table(laws, noise), more.pop("losses", {}), MADE)


def test_laws_and_differences_are_recovered() -> None:
    found = answers(noise=0.0)
    for law in found["laws"]:
        level, beta = LAWS[law["kind"]]
        assert law["exponent"] == pytest.approx(beta)
        assert law["level"] == pytest.approx(level)
        assert law["middle"] == pytest.approx(1280)
        assert law["local"] == pytest.approx([beta] * 4)
    ict = found["against"][0]
    assert (ict["kind"], ict["other"]) == ("ict", "summary")
    assert ict["slope"] == pytest.approx(-0.1)
    assert ict["level"] == pytest.approx(0.5)


def test_intervals_cover() -> None:
    random, inside = stream(4, "cover"), []
    for _ in range(400):
        x = np.log(SIZES) - np.log(SIZES).mean()
        found = label_answers.line(SIZES, 1 - 0.2 * x + 0.02 * random.standard_normal(5))
        inside.append(
            (
                found["slope_ci95"][0] <= -0.2 <= found["slope_ci95"][1],
                found["level_ci95"][0] <= 1 <= found["level_ci95"][1],
            )
        )
    assert (np.mean(inside, axis=0) > 0.92).all()


def test_the_exchange_rate_is_that_of_the_laws() -> None:
    random = stream(5, "pairs")
    shared = random.gamma(4.0, 0.25, 500)  # of each pair, the same under every kind
    losses = {
        (row["kind"], row["d"]): row["mael"] * shared / shared.mean()
        for row in table(LAWS).to_dict("records")
    }
    found = answers(noise=0.0, losses=losses)
    rows = {(row["kind"], row["d"]): row for row in found["exchange"]}
    row = rows["generated", 640]
    assert row["bound"] == ""
    level, beta = LAWS["generated"]
    wanted = 2.0 * (640 / 1280) ** -0.2
    exact = 1280 * (wanted / level) ** (-1 / beta)
    assert row["needed"] == pytest.approx(exact, rel=1e-6)
    assert row["ci95"][0] <= exact <= row["ci95"][1]
    assert rows["ict", 1280]["bound"] == "over"  # no number of ICT labels that was run does as well
    assert rows["ict", 1280]["needed"] == 5120


@pytest.mark.parametrize(
    ("wanted", "size", "bound"), [(3.0, 100, "under"), (1.0, 400, "over"), (2.0, 200, "")]
)
def test_equal_sizes(wanted: float, size: float, bound: str) -> None:
    found = label_answers.equal([100, 200, 400], [2.5, 2.0, 2.0], wanted)
    assert found == (pytest.approx(size), bound)


def test_claims_on_kinds() -> None:
    found = answers()
    assert found["S7"]["holds"] is True
    assert found["S8"]["holds"] is True
    assert found["S9"]["blocked"].startswith("no llm labels here")  # which part cannot be told
    better = answers({**LAWS, "ict": (1.8, 0.30)})
    assert better["S8"]["holds"] is False
    bent = table(LAWS, 0.001)
    bent.loc[bent["kind"] == "ict", "mael"] *= np.exp(-0.1 * np.log(np.array(SIZES) / 1280) ** 2)
    assert label_answers.answers(bent, {}, MADE)["S7"]["holds"] is False


def test_the_order_of_kinds() -> None:
    made = [*MADE, {"name": "asked", "kind": "llm"}]
    laws = {**LAWS, "asked": (2.6, 0.2)}
    assert label_answers.answers(table(laws, 0.003), {}, made)["S9"]["holds"] is True
    laws["asked"] = (2.1, 0.2)  # better than the generated ones
    assert label_answers.answers(table(laws, 0.003), {}, made)["S9"]["holds"] is False
    laws["asked"] = (2.3, 0.19)
    assert label_answers.answers(table(laws, 0.01), {}, made)["S9"]["holds"] is None


def test_nothing_run_is_said() -> None:
    found = label_answers.answers(pd.DataFrame(), {}, [])
    assert all(found[claim]["blocked"] for claim in ("S7", "S8", "S9"))
    few = table(LAWS)[table(LAWS)["d"] < 700]
    assert label_answers.answers(few, {}, MADE)["S8"]["blocked"]


@pytest.mark.parametrize("which", [0, 1])
def test_a_kind_without_one_minimum_has_no_exchange(which: int) -> None:
    rows = table(LAWS)
    kind = list(LAWS)[which]
    rows.loc[rows["kind"] == kind, "state"] = "censored"
    losses = {(k, d): np.ones(4) for k, d in zip(rows["kind"], rows["d"], strict=True)}
    found = label_answers.answers(rows, losses, MADE)
    named = {row["kind"] for row in found["exchange"]}
    assert kind not in named
    assert bool(named) == (which > 0)  # without a curve of the own labels there is nothing to equal


def test_wrong_labels_are_no_kind_of_the_papers() -> None:
    made = [*MADE, {"name": "half wrong", "kind": "wrong"}]
    laws = {**LAWS, "half wrong": (4.0, 0.05)}  # worse and flatter than ICT
    found = label_answers.answers(table(laws, 0.003), {}, made)
    assert found["S8"]["holds"] is True
    assert "half wrong" not in found["S7"]["why"]


def test_planted_false_negatives_raise_a_floor() -> None:
    random = stream(6, "planted")
    rows, pairs = [], {}
    for model, n in (("a", 1e4), ("b", 1e5), ("c", 1e6)):
        for d in SIZES:
            mael = 0.3 + (3e3 / n) ** 0.4 + (400 / d) ** 0.5
            pairs[model, d, 1] = mael * random.gamma(3.0, 1 / 3, 600)
            where = {"model": model, "n_encoder": n, "d": d, "seed": 1, "state": "turned"}
            rows.append({**where, "mael": pairs[model, d, 1].mean()})
    found = planted.answers(pd.DataFrame(rows), pairs)
    assert found["S6"]["holds"] is True
    assert [row["share"] for row in found["planted"]] == [0.0, *planted.SHARES]
    rises = [row["rise"] for row in found["planted"]]
    assert rises == sorted(rises)
    assert planted.answers(pd.DataFrame(rows), {})["S6"]["blocked"]


def test_a_floor_at_its_bound_decides_nothing() -> None:
    start = {"share": 0.0, "floor": 0.0, "rise": 0.0, "ci95": None, "least": 0.0}
    last = {"share": 0.4, "floor": 0.0, "rise": 0.0, "ci95": [0.0, 0.0], "least": 0.28}
    assert "not determined" in planted._claim([start, last])["blocked"]
    fell = planted._claim([start | {"floor": 0.2}, last | {"rise": -0.2, "ci95": [-0.3, -0.1]}])
    assert fell["holds"] is False


def test_a_second_right_answer_costs_what_it_must() -> None:
    losses, chosen = np.array([0.0, 2.0, 1.0]), np.array([True, True, False])
    scores = np.log(np.expm1(np.array([2.0])))  # one negative that gives the loss 2
    direct = -np.log(1 / (2 + np.exp(scores)))  # the positive, its equal, the negative
    assert planted.planted(losses, chosen) == pytest.approx([np.log(2), direct[0], 1.0])


ASKED = {
    "model": "small",
    "sizes": [32, 64, 128],
    "kinds": {
        "ict": {"kind": "ict"},
        "extracted": {"kind": "extracted"},
        "wrong-30": {"kind": "wrong", "share": 0.3},
    },
}


@pytest.mark.slow
def test_labels_are_made_first_and_then_run_on(fresh: Study) -> None:
    asked = LabelsParams.model_validate(ASKED)
    fresh.profile = fresh.profile.model_copy(update={"labels": asked})
    assert len(fresh.experiments()["labels"]) == 3  # the own labels; the others are not known yet
    assert "9 runs on them" in fresh.describe()
    assert fresh.budget(later=True).lines["labels (later)"].runs == 9
    missing = fresh.missing()
    assert fresh.sweep() == {}
    assert "labels (later)" not in fresh.budget(later=True).lines
    assert missing - 3 == len(fresh.experiments()["grid"]) + 2  # three sets; 64 and 128 own pairs
    assert len(fresh.experiments()["labels"]) == 12
    assert fresh.missing() == 0
    found = labels.table(fresh.runs)
    assert found["kind"].unique().tolist() == ["judged", "ict", "extracted", "wrong-30"]
    by_kind = found[found["d"] == 32].set_index("kind")
    assert by_kind["mael"].nunique() == 4
    assert len(set(by_kind["zero_shot"])) == 1  # the same evaluation pairs for all
    answered = fresh.answers()["labels"]
    assert [row["kind"] for row in answered["against"]] == ["ict", "extracted", "wrong-30"]
    assert answered["exchange"][0]["ci95"] is not None or answered["exchange"][0]["bound"]
    assert {row["name"]: row["labels"] for row in answered["made"]}["wrong-30"] == 128
    assert sum(answered["states"].values()) == 12
    assert reading_labels.states(answered["states"]).startswith("12 runs: ")
    rows = fresh.report()["claims"]
    verdict = next(row for row in rows if row["id"] == "S8")
    assert verdict["verdict"] in ("holds", "fails", "inconclusive")
    again = Study(fresh.profile_file)
    again.profile = fresh.profile
    assert again.sweep() == {}  # nothing is made twice


@pytest.mark.slow
def test_a_label_run_is_ranked_on_the_dataset_itself_and_labels_are_verified(
    fresh: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = LabelsParams.model_validate({**ASKED, "sizes": [32, 64]})
    fresh.profile = fresh.profile.model_copy(update={"labels": asked})
    fresh.sweep()
    own = fresh.runs.trained("small", pairs=32)
    other = labels.plans(fresh.runs)["ict"].trained("small", pairs=32)
    assert own.ranking is not None
    assert other.ranking is not None
    assert own.ranking.spec["tokens"] == other.ranking.spec["tokens"]
    assert fresh._make([*own.tasks, *other.tasks]) == {}
    row = labels.plans(fresh.runs)["ict"].row(other)
    assert row is not None
    assert 0 <= row["mrr10"] <= 1
    monkeypatch.setattr(verify, "SAMPLED", ("labels",))
    again = list(verify.sample(fresh.store, 3, 0, {}))
    assert [(each.right, each.same_machine) for each in again] == [(True, True)] * 3


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"model": "smal"}, "names `smal`"),
        ({"sizes": [8, 64]}, "larger than the smallest size of labels"),
        ({"per_passage": 2}, "gives one label a passage"),
        ({"sizes": [64, 32]}, "do not rise"),
        ({"kinds": {}}, "kinds"),
        ({"kinds": {"x": {"kind": "wrong"}}}, "share"),
    ],
)
def test_what_cannot_be_run_is_refused(
    study_file: Path, tmp_path: Path, change: dict[str, Any], text: str
) -> None:
    profile = json.loads(study_file.read_text())
    profile["labels"] = {**ASKED, **change}
    (tmp_path / "study.yaml").write_text(json.dumps(profile))
    with pytest.raises(UserError, match=text):
        Study(tmp_path / "study.yaml")


@pytest.mark.parametrize(
    ("kinds", "text"),
    [
        ({"llm": {"kind": "llm", "model": "./nowhere"}}, "there is no model folder"),
        ({"judged": {"kind": "ict"}}, "own labels are called"),
    ],
)
def test_models_and_names_are_checked_before_anything_runs(
    fresh: Study, kinds: dict[str, Any], text: str
) -> None:
    asked = LabelsParams.model_validate({**ASKED, "kinds": kinds})
    fresh.profile = fresh.profile.model_copy(update={"labels": asked})
    with pytest.raises(UserError, match=text):
        fresh.planned()
