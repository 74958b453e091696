"""The resume state of a run: one safetensors file, replaced by a rename at each evaluation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import nn

NAME = "last.safetensors"


def write(
    folder: Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    best: NDArray[np.float64],
    about: dict[str, Any],
) -> None:
    """Write weights, optimiser state, an array and JSON; the old file stays until this is whole."""
    tensors = {f"model/{name}": tensor for name, tensor in model.state_dict().items()}
    for index, state in optimizer.state_dict()["state"].items():
        for name, tensor in state.items():
            tensors[f"optimizer/{index}/{name}"] = tensor
    tensors["best"] = torch.from_numpy(best)
    temporary = folder / f".{NAME}"
    contiguous = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    save_file(contiguous, temporary, metadata={"about": json.dumps(about)})
    temporary.replace(folder / NAME)


def read(
    folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer
) -> tuple[NDArray[np.float64], dict[str, Any]] | None:
    """Put model and optimiser back to what was written; None where nothing whole is there."""
    path = folder / NAME
    if not path.exists():
        return None
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            about = json.loads(file.metadata()["about"])
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        print(f"{path.name} cannot be read ({error}); the run begins again")
        remove(folder)
        return None
    best = tensors.pop("best").numpy()
    state: dict[int, dict[str, torch.Tensor]] = {}
    weights: dict[str, torch.Tensor] = {}
    for name, tensor in tensors.items():
        place, _, rest = name.partition("/")
        if place == "model":
            weights[rest] = tensor
        else:
            index, _, field = rest.partition("/")
            state.setdefault(int(index), {})[field] = tensor
    model.load_state_dict(weights)
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})
    return best, about


def remove(folder: Path) -> None:
    """Delete the resume state."""
    (folder / NAME).unlink(missing_ok=True)
