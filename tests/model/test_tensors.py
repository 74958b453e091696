"""Tensors as files: whole or absent, as readable as others, and written in one place."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import repro
from repro.model import tensors


def test_a_file_is_what_was_written_and_as_readable_as_others(tmp_path: Path) -> None:
    """safetensors makes files that only their owner reads; two people may share a store."""
    wanted = {"one": torch.arange(6.0).reshape(2, 3).T, "two": torch.zeros(1, requires_grad=True)}
    tensors.write(tmp_path / "some.safetensors", wanted)
    found = load_file(tmp_path / "some.safetensors")
    assert all(torch.equal(found[name], wanted[name].detach()) for name in wanted)
    (tmp_path / "plain").touch()
    modes = {path.stat().st_mode for path in tmp_path.iterdir()}
    assert len(modes) == 1


def test_what_fails_leaves_the_old_file_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tensors.write(tmp_path / "some.safetensors", {"one": torch.ones(1)})

    def full(path: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tensors, "open_to_others", full)
    with pytest.raises(OSError, match="No space left"):
        tensors.write(tmp_path / "some.safetensors", {"one": torch.zeros(1)})
    assert [path.name for path in tmp_path.iterdir()] == ["some.safetensors"]
    assert load_file(tmp_path / "some.safetensors")["one"].item() == 1


def test_nothing_else_writes_tensor_files() -> None:
    source = Path(repro.__file__).parent
    users = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and any(name.name == "save_file" for name in node.names)
    }
    assert users == {"model/tensors.py"}
