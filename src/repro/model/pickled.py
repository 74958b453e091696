"""Weights of old repositories, pickled in `pytorch_model.bin`, turned into safetensors once.

Only tensors are read, by torch's own reader for them: a pickle that would run code is refused.  The
result lies beside the store, in runs/converted/, under the digest of the file; the folder that the
weights came from is left as it is.
"""

from __future__ import annotations

import pickle
from pathlib import Path

import torch
from torch import Tensor

from repro import hub
from repro.errors import UserError
from repro.files import read_json, write_json
from repro.model import files, tensors
from repro.places import home

RULES = 1  # raise it when what is written changes on purpose
NAME = "model.safetensors"
TYPES = {torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16"}


def readable(found: list[Path]) -> Path:
    """The folder where the weights in the files `found` lie as safetensors: theirs, or a converted one.

    Raises `UserError` where they cannot be read safely.
    """
    if found[0].suffix == ".safetensors":
        return found[0].parent
    place = home() / "runs" / "converted" / files.digest(found)[:20]
    if not _is_whole(place):
        _convert(found, place)
    return place


def _is_whole(place: Path) -> bool:
    """Whether it is there, by these rules, and still what was written."""
    try:
        about = read_json(place / "about.json")
        is_ours = about["rules"] == RULES and (place / NAME).is_file()
        return is_ours and about["sha256"] == hub.file_sha256(place / NAME)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _convert(found: list[Path], place: Path) -> None:
    """Write the tensors of `found`; two processes at once both write, and either file serves."""
    found_tensors: dict[str, Tensor] = {}
    for file in found:
        found_tensors |= _tensors(file)
    place.mkdir(parents=True, exist_ok=True)
    tensors.write(place / NAME, _once(found_tensors), {"format": "pt"})
    write_json(
        place / "about.json",
        {
            "rules": RULES,
            "from": {file.name: hub.file_sha256(file) for file in found},
            "sha256": hub.file_sha256(place / NAME),
            "torch": torch.__version__,
        },
    )


def _tensors(file: Path) -> dict[str, Tensor]:
    """The named tensors of a pickled file; raises `UserError` where it holds anything else."""
    try:
        content = torch.load(file, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise UserError(
            f"{file.name} is no plain file of tensors, and reading it might run code: "
            f"{_reason(error)}",
            where=str(file),
            remedy="do not use it; take a copy in safetensors (model.safetensors) from a source that "
            "you trust",
        ) from None
    except Exception as error:  # torch's reader raises anything, IndexError for an empty stack
        raise UserError(
            f"{file.name} cannot be read: {_reason(error)}",
            where=str(file),
            remedy="copy or download it again",
        ) from None
    if not isinstance(content, dict):
        content = {}
    tensors = {str(name): each for name, each in content.items() if isinstance(each, Tensor)}
    if not tensors:
        held = ", ".join(str(name) for name in list(content)[:5]) or "nothing of the kind"
        raise UserError(
            f"{file.name} holds no named weights (but {held})",
            where=str(file),
            remedy="save the model's state_dict, by its save_pretrained for instance",
        )
    types = {name: TYPES.get(each.dtype, str(each.dtype)) for name, each in tensors.items()}
    files.check_types(file, types)
    return tensors


def _reason(error: Exception) -> str:
    """What torch says is wrong, without its advice to read the file unsafely."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = [line for line in lines if "Unsupported" in line or "unsupported" in line]
    told += [line for line in lines if "WeightsUnpickler error" in line]
    return (told or lines or [type(error).__name__])[0][:200]


def _once(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Of tensors that are one in memory (tied weights) the first: bodies come before their heads.

    What shares its memory only in part is copied.
    """
    kept: dict[str, Tensor] = {}
    seen: set[tuple[int, torch.Size, tuple[int, ...], torch.dtype]] = set()
    storages: set[int] = set()
    for name, tensor in tensors.items():
        same = (tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype)
        if tensor.numel() and same in seen:
            continue
        seen.add(same)
        storage = tensor.untyped_storage().data_ptr()
        kept[name] = tensor.clone() if storage in storages else tensor
        storages.add(storage)
    return kept
