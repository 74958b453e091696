"""Fixtures of the data room: the embedded dataset, and where the sample collections lie."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from repro.data.dataset import Dataset, load_dataset_params, prepare
from repro.store import Store


@pytest.fixture(scope="session")
def apidocs(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """The embedded dataset, prepared once from the installed package."""
    return prepare(Store(tmp_path_factory.mktemp("apidocs")), load_dataset_params("apidocs"))


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
