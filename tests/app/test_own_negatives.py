"""Pins hard negatives from a column of the data to a run: in the key where used, refused where missing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from repro.app.study import Study
from repro.errors import UserError
from repro.train.loop import RunSpec
from repro.work.makers import Makers
from tiny import PROFILE, pair_texts, write_bert


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table whose rows name the passages of the next two rows as negatives."""
    monkeypatch.setenv("REPRO_HOME", str(tmp_path / "home"))
    write_bert(tmp_path / "bert")
    texts = pair_texts(420)
    rows = [
        {"query": query, "passage": passage, "not": [texts[i - 1][1], texts[i - 2][1]]}
        for i, (query, passage) in enumerate(texts)
    ]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def study(folder: Path, columns: dict[str, str], **negatives: Any) -> Study:
    source = {"kind": "pairs", "files": "pairs.jsonl", "columns": columns}
    about = {"name": "own", "language": "en", "seed": 1, "splits": "auto", "source": source}
    (folder / "own.yaml").write_text(json.dumps(about))
    profile = {
        **PROFILE,
        "dataset": str(folder / "own.yaml"),
        "models": {"small": {"weights": str(folder / "bert"), "lr": 2e-3}},
        "train": {"batch_pairs": 16, "negatives": {"count": 16, **negatives}},
        "curve": {"first": 2, "max_steps": 4},
        "grid": {"models": ["small"], "sizes": "auto from 64"},
    }
    (folder / "profile.yaml").write_text(json.dumps(profile))
    return Study(folder / "profile.yaml")


def test_a_run_trains_on_them_under_a_key_of_its_own(folder: Path) -> None:
    plain = study(folder, {"negative": "not"})
    own = study(folder, {"negative": "not"}, own=2)
    assert "splits chosen: validation 42, test 42, tuning 42, generator 21" in own.describe()
    assert "16 negatives and 2 of each query's own" in own.describe()
    specs = [each.planned()[0].train.spec for each in (plain, own)]
    assert "own_negatives" not in specs[0]
    assert "own" not in specs[0]["train"]["negatives"]
    assert specs[1]["own_negatives"] == own.dataset.own_digest
    assert RunSpec.model_validate(specs[1]).model_dump(mode="json") == specs[1]
    assert own.planned()[0].train.flop > plain.planned()[0].train.flop

    assert (
        folder / "pairs.jsonl" in own.depends_on()
    )  # so that a changed table is not taken for this one
    inside = np.isin(own.dataset.own_negatives.passages, own.dataset.splits.pool)
    assert inside.all()
    assert len(inside) < len(own.dataset.collection.negatives)  # some lie near evaluated passages
    losses = []
    for each, name in ((plain, "plain"), (own, "own")):
        work = folder / name
        work.mkdir()
        Makers(each.store, "cpu").make(each.planned()[0].train, work, lambda flop, note: None)
        losses.append(pd.read_parquet(work / "curve.parquet")["train_loss"].tolist())
    assert np.isfinite(losses).all()
    assert losses[0] != losses[1]


def test_a_change_of_the_negatives_stops_a_sweep(folder: Path) -> None:
    opened = study(folder, {"negative": "not"}, own=1)
    task = opened.planned()[0].train
    spec = RunSpec.model_validate({**task.spec, "own_negatives": "0" * 64})
    with pytest.raises(UserError, match="the own negatives changed"):
        Makers(opened.store, "cpu").parts(spec, task.inputs)


def test_data_that_name_none_are_refused(folder: Path) -> None:
    with pytest.raises(
        UserError, match="asks for each query's own negatives, but own names none"
    ) as caught:
        study(folder, {}, own=1).planned()
    assert "negative" in caught.value.remedy
    assert "profile.yaml" in caught.value.where
