"""What is searched: everything, or a pool that holds every positive and never changes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from repro.data.dataset import Dataset
from repro.experiments.runs import Trained
from repro.measure import ranking
from repro.measure.ranking import RankingParams, RankingSpec, searched
from repro.train.loop import RunSpec
from repro.work.makers import Makers
from repro.work.queue import Task


def test_a_pool_holds_every_positive_and_is_the_same_each_time(dataset: Dataset) -> None:
    positives = np.array([3, 8, 21], dtype=np.int32)
    params = RankingParams.model_construct(passages=50, depth=100)
    pool = searched(params, dataset, positives)
    assert len(pool) == len(set(pool.tolist())) == 50
    assert set(positives.tolist()) <= set(pool.tolist())
    assert (pool == searched(params, dataset, positives)).all()
    everything = searched(RankingParams(), dataset, positives)
    assert (everything == np.arange(len(dataset.collection.passages))).all()


@pytest.mark.parametrize("blocks", [7, 10_000])
def test_a_run_is_measured_the_same_in_any_blocks(
    makers: Makers, cell: Trained, tmp_path: Path, blocks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("repro.measure.ranking.BLOCK", blocks)
    makers.store.get_or_make(
        "train", cell.train.spec, lambda folder: makers.make(cell.train, folder, lambda f, n: None)
    )
    makers.make(cell.ranking, tmp_path, lambda f, n: None)
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert metrics["searched"] == 420
    assert 0 < metrics["map10"] <= metrics["mrr10"] <= metrics["recall100"] <= 1
    assert metrics["test_entropy"] == pytest.approx(np.load(tmp_path / "test.npy").mean())


def test_the_memory_of_a_large_search_is_told_before_it(
    makers: Makers,
    cell: Trained,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    makers.store.get_or_make(
        "train", cell.train.spec, lambda folder: makers.make(cell.train, folder, lambda f, n: None)
    )
    makers.make(cell.ranking, tmp_path, lambda f, n: None)
    assert "ranking" not in capsys.readouterr().out
    monkeypatch.setattr(ranking, "TOLD", 420)
    makers.make(cell.ranking, tmp_path, lambda f, n: None)
    assert "ranking 420 passages: 0.0 GB at most besides the encoder" in capsys.readouterr().out


def test_an_encoder_that_is_not_a_number_has_no_metrics(
    makers: Makers, cell: Trained, tmp_path: Path
) -> None:
    spec = RunSpec.model_validate(cell.train.spec)
    encoder, texts, dataset = makers.parts(spec, cell.train.inputs)
    with torch.no_grad():
        encoder.projection.weight.fill_(float("nan"))
    test = dataset.evaluation("test")
    spec_ = RankingSpec.model_validate(cell.ranking.spec)
    ranking.run(spec_, encoder, texts, dataset, test, tmp_path)
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert set(metrics.values()) == {None}
    assert "mrr10" in metrics


def test_a_run_that_is_not_there_cannot_be_measured(
    makers: Makers, cell: Trained, tmp_path: Path
) -> None:
    spec = {**cell.ranking.spec, "run": "0" * 20}
    with pytest.raises(FileNotFoundError, match="not in the store"):
        makers.make(
            Task("measure", spec, "x", 1.0, cell.ranking.inputs), tmp_path, lambda f, n: None
        )
