"""Pins what a study says of itself before anything runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from repro.app.study import Study, files
from repro.data.sources.pydocs import VERSIONS
from repro.params import UserError


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


@pytest.mark.parametrize("key", ["query_tokens", "passage_tokens"])
def test_texts_longer_than_a_model_reads_are_refused(
    study_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    """They would end every run with an index out of range."""
    monkeypatch.setenv("REPRO_HOME", str(tmp_path))
    profile = json.loads(study_file.read_text())
    profile["texts"][key] = 129  # the tiny BERTs have 128 positions
    (tmp_path / "long.yaml").write_text(json.dumps(profile))
    with pytest.raises(UserError, match=f"texts.{key} is 129, but small reads 128 tokens") as error:
        Study(tmp_path / "long.yaml").planned()
    assert error.value.remedy == "use 128 or less"
    assert "long.yaml:1" in str(error.value.where)
