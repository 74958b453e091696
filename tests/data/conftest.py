"""Fixtures of the data room: the embedded dataset."""

from __future__ import annotations

import os

import pytest

from repro.data.dataset import Dataset, load_dataset_params, prepare
from repro.store import Store


@pytest.fixture(scope="session")
def apidocs(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """The embedded dataset, prepared once from the installed package, by one worker for all."""
    own = tmp_path_factory.getbasetemp()
    folder = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    return prepare(Store(folder / "apidocs"), load_dataset_params("apidocs"))
