"""The resume state of a run: one safetensors file, replaced by a rename at each evaluation.

It carries the digest of what it holds.  One that does not match is set aside, and is never gone on from.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from repro.model import tensors

NAME = "last.safetensors"


@dataclass(frozen=True)
class Kept:
    """A resume state as it was written."""

    best: NDArray[np.float64]
    about: dict[str, Any]
    weights: dict[str, Tensor]
    moments: dict[int, dict[str, Tensor]]  # what the optimiser keeps of each weight

    def restore(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        """Put model and optimiser back to what was written."""
        model.load_state_dict(self.weights)
        optimizer.load_state_dict({**optimizer.state_dict(), "state": self.moments})


def write(
    folder: Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    best: NDArray[np.float64],
    about: dict[str, Any],
) -> None:
    """Write weights, optimiser state, an array and JSON; the old file stays until this is whole."""
    named = {f"model/{name}": tensor for name, tensor in model.state_dict().items()}
    for index, state in optimizer.state_dict()["state"].items():
        for name, tensor in state.items():
            named[f"optimizer/{index}/{name}"] = tensor
    named["best"] = torch.from_numpy(best)
    text = json.dumps(about)
    tensors.write(folder / NAME, named, {"about": text, "digest": tensors.digest(named, text)})


def read(folder: Path) -> Kept | None:
    """What was written; None where there is nothing, or nothing sound: that is set aside."""
    path = folder / NAME
    if not path.exists():
        return None
    try:
        with safe_open(path, framework="pt") as file:
            named = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            head = file.metadata()
        if tensors.digest(named, head["about"]) != head["digest"]:
            raise ValueError("it does not match its digest")
        about = json.loads(head["about"])
        best = named.pop("best").numpy()
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        aside(folder, f"cannot be read: {error}")
        return None
    weights: dict[str, Tensor] = {}
    moments: dict[int, dict[str, Tensor]] = {}
    for name, tensor in named.items():
        place, _, rest = name.partition("/")
        if place == "model":
            weights[rest] = tensor
        else:
            index, _, field = rest.partition("/")
            moments.setdefault(int(index), {})[field] = tensor
    return Kept(best, about, weights, moments)


def aside(folder: Path, fault: str) -> None:
    """Move a damaged resume state to `.aside/`, beside the folder where work lies."""
    target = folder.parent.parent / ".aside" / f"{folder.name}.{uuid.uuid4().hex[:6]}.{NAME}"
    target.parent.mkdir(exist_ok=True)
    (folder / NAME).rename(target)
    print(f"resume state {NAME} {fault}; moved to {target}, and the run begins again", flush=True)


def remove(folder: Path) -> None:
    """Delete the resume state."""
    (folder / NAME).unlink(missing_ok=True)
