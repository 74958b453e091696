"""Pins: a run's best checkpoint is measured on the targets of its dataset, each with its own texts."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tiny
from repro.app.study import Study
from repro.experiments.budget import distinct


@pytest.fixture
def study(study_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    """The tiny study, its dataset with one target: other pairs, of the same words."""
    data = json.loads(study_file.with_name("tiny.yaml").read_text())
    other = tiny.write_beir(tmp_path / "other")
    for name in ("corpus", "queries"):  # other texts under other ids
        file = other / f"{name}.jsonl"
        file.write_text(file.read_text().replace('"text": "', '"text": "zo '))
    elsewhere = {**data, "name": "elsewhere"}
    elsewhere["source"] = {**data["source"], "folder": str(other)}
    (tmp_path / "elsewhere.yaml").write_text(json.dumps(elsewhere))
    data["targets"] = {"far": {"dataset": str(tmp_path / "elsewhere.yaml"), "set": "test"}}
    (tmp_path / "tiny.yaml").write_text(json.dumps(data))
    profile = json.loads(study_file.read_text()) | {"dataset": str(tmp_path / "tiny.yaml")}
    (tmp_path / "study.yaml").write_text(json.dumps(profile))
    monkeypatch.setenv("REPRO_HOME", str(tmp_path / "home"))
    return Study(tmp_path / "study.yaml")


@pytest.mark.slow
def test_targets_are_measured_beside_the_test_pairs(study: Study) -> None:
    plan = study.runs
    run = plan.trained("small", pairs=32, targets=True)
    assert [task.kind for task in run.tasks] == ["train", "measure", "measure"]
    assert plan.row(run) is None
    assert plan.target_rows(run) is None
    monkey = {"one": [run]}
    study.experiments = lambda: monkey  # type: ignore[method-assign]
    assert study.missing() == 1
    assert study.budget().total.ranking > 0
    assert study.sweep() == {}
    assert study.missing() == 0
    row, targets = plan.row(run), plan.target_rows(run)
    assert row is not None
    assert targets is not None
    (far,) = targets
    assert far["target"] == "far"
    assert far["searched"] == tiny.N_PAIRS
    assert np.isfinite(far["test_entropy"])
    assert far["test_entropy"] != row["test_entropy"]
    assert plan.target_rows(replace(run, targets={})) == []


def test_targets_that_nobody_asks_for_are_not_even_read(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another dataset may take a minute to prepare."""
    monkeypatch.setattr("repro.experiments.runs.out_of_domain", lambda *_: pytest.fail("read"))
    study.planned()


def test_runs_shared_by_experiments_keep_every_ranking_asked_for(study: Study) -> None:
    plan = study.runs
    bare = plan.trained("small", pairs=32, ranked=False)
    ranked, far = plan.trained("small", pairs=32), plan.trained("small", pairs=32, targets=True)
    assert len(bare.tasks) == 1
    for order in ([bare, ranked, far], [far, bare, ranked], [bare, far]):
        (found,) = distinct({str(k): [run] for k, run in enumerate(order)})
        assert [task.label for task in found.tasks] == [task.label for task in far.tasks]


def test_another_rate_decay_or_start_is_another_run(study: Study) -> None:
    plan = study.runs
    same = plan.trained("small", pairs=32)
    large = study.profile.models["large"].weights
    others = [
        plan.trained("small", pairs=32, lr=1e-4),
        plan.trained("small", pairs=32, train={"weight_decay": 3.0}),
        plan.trained("small", pairs=32, weights=large),
        plan.trained("small", pairs=32, seed=1),
    ]
    keys = {plan.store.key("train", run.train.spec) for run in [same, *others]}
    assert len(keys) == 5
    assert len({run.train.label for run in [same, *others]}) == 5
    own = study.profile.models["small"].lr
    assert plan.trained("small", pairs=32, lr=own).spec == same.spec
