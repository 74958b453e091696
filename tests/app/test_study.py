"""Pins what a study says of itself before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from repro.app.study import Study, files
from repro.data.sources.pydocs import VERSIONS


def test_a_text_read_from_other_versions_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REPRO_HOME", str(tmp_path))
    study = Study(*files("smoke:pydocs-numeric"))
    monkeypatch.setitem(VERSIONS, "numpy", "0.1")
    said = study.describe()
    assert "pydocs-numeric is read from numpy " in said
    assert "in place of 0.1" in said
    assert "recorded, not checked" in said
    assert "is read from" not in Study(*files("smoke:apidocs")).describe()
