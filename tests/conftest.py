"""Fixtures that several rooms share.  No test reads the network or the home folder."""

from __future__ import annotations

import os
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
import torch

import tiny
from repro.app.study import Study
from repro.data.dataset import Dataset
from repro.experiments.runs import Trained
from repro.work.makers import Makers

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def sample_data() -> Path:
    """The folder of sample collections, beside the reference data."""
    reference = os.environ.get("REPRO_REFERENCE_DATA")
    if not reference:
        pytest.skip("REPRO_REFERENCE_DATA is not set")
    folder = Path(reference).parent / "sample-data"
    if not folder.is_dir():
        pytest.skip("there is no folder sample-data beside REPRO_REFERENCE_DATA")
    return folder


@pytest.fixture(scope="session")
def study_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The profile file of a study of seconds: two tiny BERTs on 420 pairs."""
    return tiny.write_study(tmp_path_factory.mktemp("study"))


@pytest.fixture(scope="session")
def study(study_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Study:
    """That study, with its data prepared in a store of its own; tests may read it only."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REPRO_HOME", str(tmp_path_factory.mktemp("home")))
        opened = Study(study_file)
        assert len(opened.planned()) == 4
        return opened


@pytest.fixture
def fresh(study_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    """The same study over an empty store."""
    monkeypatch.setenv("REPRO_HOME", str(tmp_path))
    return Study(study_file)


@pytest.fixture(scope="session")
def dataset(study: Study) -> Dataset:
    """The prepared dataset of `study`."""
    return study.dataset


@pytest.fixture(scope="session")
def cell(study: Study) -> Trained:
    """One run of `study`, not yet made."""
    return next(run for run in study.planned() if run.pairs == 160)


@pytest.fixture
def makers(study: Study) -> Makers:
    """What makes runs, on the CPU."""
    return Makers(study.store, "cpu")
