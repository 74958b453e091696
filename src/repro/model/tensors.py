"""The one place where tensors are written: as safetensors, whole or absent, readable like other files."""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor


def write(path: Path, tensors: Mapping[str, Tensor], about: dict[str, str] | None = None) -> None:
    """Write `tensors`, wherever they lie, and `about` in the head of the file; by a rename."""
    from safetensors.torch import save_file

    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    here = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    try:
        save_file(here, temporary, about)
        open_to_others(temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def digest(tensors: Mapping[str, Tensor], about: str = "") -> str:
    """sha256 (hex) over `about`, and over names, types, shapes and values, wherever the tensors lie."""
    total = hashlib.sha256(about.encode())
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        total.update(f"{name}\x1f{tensor.dtype}\x1f{tuple(tensor.shape)}\x1e".encode())
        if tensor.numel():  # of nothing there is no view
            total.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return total.hexdigest()


def file_digest(path: Path) -> str:
    """The `digest` of the tensors in a file; "" where they cannot be read."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return digest(load_file(path))
    except (OSError, SafetensorError):
        return ""


def open_to_others(path: Path) -> None:
    """Give a file the rights that new files have here; safetensors makes its own for their owner alone."""
    mask = os.umask(0)
    os.umask(mask)
    path.chmod(0o666 & ~mask)
