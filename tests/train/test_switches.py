"""Switches for what the papers' code does otherwise: at their default nothing of a run changes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from repro import params
from repro.experiments.profile import Profile
from repro.experiments.runs import Trained
from repro.files import digest
from repro.places import ROOT
from repro.train.loop import RunSpec
from repro.work.makers import Makers
from repro.work.queue import Task


def spec(**changes: object) -> RunSpec:
    mini = params.load(ROOT / "params" / "mini.yaml", Profile)
    own = {
        name: getattr(mini, name).model_dump() for name in ("encoder", "texts", "train", "curve")
    }
    for name, change in changes.items():
        own[name] |= change
    given = {"weights": "w", "tokens": "t", "splits": "s", "validation": "v", "pairs": 320}
    return RunSpec(**given, seed=1, lr=5e-4, lr_reference=1e-3, **own)


def test_a_run_of_before_the_switches_keeps_its_key() -> None:
    assert digest(spec().model_dump(mode="json")) == "dfc0bb7a219f1a4f195e"
    said = {"train": {"schedule": "constant"}, "curve": {"most_passes": None}}
    assert spec(**said, texts={"train_query_tokens": None}) == spec()
    assert spec(**said).model_dump_json() == spec().model_dump_json()


@pytest.mark.parametrize(
    "change",
    [
        {"train": {"schedule": "linear"}},
        {"curve": {"most_passes": 80}},
        {"texts": {"train_query_tokens": 25}},
    ],
)
def test_a_switch_that_is_on_gives_another_key_and_is_read_back(change: dict) -> None:
    changed = spec(**change)
    assert changed.model_dump_json() != spec().model_dump_json()
    assert RunSpec.model_validate(json.loads(changed.model_dump_json())) == changed


def test_a_linear_schedule_falls_to_nothing_behind_the_last_step() -> None:
    own = {"train": {"schedule": "linear", "warmup_steps": 10}, "curve": {"max_steps": 110}}
    rates = spec(**own).rates(110) / 5e-4
    assert np.allclose(rates[:10], np.arange(1, 11) / 10)
    assert np.allclose(rates[10:], np.arange(100, 0, -1) / 100)  # as transformers' trainer has it
    assert np.array_equal(spec(**own).rates(40), rates[:40] * 5e-4)
    constant = spec(train={"warmup_steps": 0}).rates(500)
    assert (constant == 5e-4).all()


def test_the_passes_end_a_run_where_they_come_first() -> None:
    assert spec(curve={"max_steps": 5000, "most_passes": 80}).max_steps == 1600  # of 16 in 320
    assert spec(curve={"max_steps": 500, "most_passes": 80}).max_steps == 500
    assert spec(curve={"max_steps": 500}).max_steps == 500


def run(makers: Makers, task: Task, folder: Path, **changes: dict) -> pd.DataFrame:
    changed = {**task.spec, **{name: {**task.spec[name], **new} for name, new in changes.items()}}
    makers.make(
        Task(task.kind, changed, "", task.flop, task.inputs), folder, lambda flop, note: None
    )
    return pd.read_parquet(folder / "curve.parquet")


def test_training_hears_of_each_switch(makers: Makers, cell: Trained, tmp_path: Path) -> None:
    folders = {name: tmp_path / name for name in ("plain", "linear", "short", "passes")}
    for folder in folders.values():
        folder.mkdir()
    few = {"curve": {"max_steps": 12, "share": 0.9}}
    plain = run(makers, cell.train, folders["plain"], **few)
    linear = run(makers, cell.train, folders["linear"], **few, train={"schedule": "linear"})
    short = run(makers, cell.train, folders["short"], **few, texts={"train_query_tokens": 4})
    passes = run(
        makers,
        cell.train,
        folders["passes"],
        curve={"max_steps": 12, "share": 0.9, "most_passes": 0.5},
    )
    assert plain["step"].iloc[-1] == 12
    assert linear["sum_lr"].iloc[-1] == pytest.approx(plain["sum_lr"].iloc[-1] * 6.5 / 12)
    same = plain["step"].isin(short["step"])
    assert (short["tokens"].to_numpy() < plain.loc[same, "tokens"].to_numpy()).all()
    about = [
        json.loads((folders[name] / "summary.json").read_text()) for name in ("plain", "short")
    ]
    assert about[0]["zero_shot"] == about[1]["zero_shot"]  # evaluated on whole queries
    assert passes["step"].iloc[-1] == 5  # half a pass of 160 pairs, 16 a step
