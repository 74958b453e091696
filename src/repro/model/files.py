"""The files of a pre-trained model: found by name, downloaded if they must be, whole, and their digest.

A name is `micro/2x64` (shipped with the package), a folder in Hugging Face layout, or a hub id,
optionally with a revision: `org/name@revision`.  Weights are safetensors, or are turned into them
(`repro.model.pickled`).
"""

from __future__ import annotations

import difflib
import hashlib
import re
from pathlib import Path

from repro import hub
from repro.errors import UserError
from repro.files import read_json

MICRO = Path(__file__).parent / "micro"
PICKLED = "pytorch_model.bin"
MOST_NAME = 255  # bytes of a file's name
FLOATS = ("F64", "F32", "F16", "BF16")  # all are trained in float32
NEEDED = [
    "config.json",
    "model*.safetensors*",
    "tokenizer*",
    "*.txt",
    "*.model",
    "merges*",
    "vocab*",
    "special_tokens_map.json",
    "added_tokens.json",
    "generation_config.json",  # of models that write
    "chat_template*",
]


def names() -> list[str]:
    """The names of the encoders shipped with the package, smallest first."""
    found = [entry.parent.name for entry in MICRO.glob("*/config.json")]

    def width_first(name: str) -> list[int]:
        layers, width, *steps = (int(number) for number in re.findall(r"[0-9]+", name))
        return [width, layers, *steps]

    return [f"micro/{name}" for name in sorted(found, key=width_first)]


def folder_of(weights: str) -> Path:
    """Where the files of `weights` lie on this machine, downloaded if they must be."""
    if weights.startswith("micro/"):
        if weights in names():
            return MICRO / weights.removeprefix("micro/")
        near = difflib.get_close_matches(weights, names(), n=1, cutoff=0.0)
        raise UserError(
            f"there is no shipped model `{weights}` (there are: {', '.join(names()) or 'none'})",
            remedy=f"did you mean `{near[0]}`?" if near else "make one: repro pretrain",
        )
    path = Path(weights).expanduser()
    if path.is_dir():
        return path.resolve()
    if weights.startswith((".", "/", "~")) or weights.count("/") != 1 or path.parent.is_dir():
        beside = [str(entry) for entry in path.parent.glob("*")]
        near = difflib.get_close_matches(str(path), beside, n=1)
        raise UserError(
            f"there is no model folder `{weights}`",
            remedy=f"did you mean `{near[0]}`?"
            if near
            else f"name a folder, a hub id such as org/name, or one of {', '.join(names())}",
        )
    return _download(weights)


def here(weights: str) -> bool:
    """Whether the files of `weights` are on this machine; the network is not asked."""
    if weights.startswith("micro/") or Path(weights).expanduser().is_dir():
        return True
    name, _, revision = weights.partition("@")
    folder = hub.local(name, revision, "model")
    return folder is not None and (folder / "config.json").is_file()


def _download(weights: str) -> Path:
    """The snapshot of a hub id: from REPRO_HUB_MIRROR, the hub's cache, or the network.

    Pickled weights are fetched only where there are no others.
    """
    name, _, revision = weights.partition("@")
    mirror = hub.mirrored(name, revision)
    if mirror is not None:
        return mirror
    import httpx2
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError

    try:
        for patterns in (NEEDED, [*NEEDED, f"{PICKLED}*", "pytorch_model-*.bin"]):
            folder = Path(
                snapshot_download(name, revision=revision or None, allow_patterns=patterns)
            )
            if any(folder.glob("model*.safetensors")) or any(folder.glob("pytorch_model*.bin")):
                return folder
        reason = "none of the files that are there hold weights (safetensors, pytorch_model.bin)"
    except (OSError, HFValidationError, httpx2.HTTPError) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0][:160]
    command = f"hf download {name}" + (f" --revision {revision}" if revision else "")
    raise UserError(
        f"cannot get `{weights}` from the model hub: {reason}",
        remedy=f"where the hub is reachable run `{command} --local-dir models/"
        f"{name.rpartition('/')[2]}`, put that folder here, and name it instead; or set {hub.MIRROR}",
    )


def weight_files(weights: str, folder: Path) -> list[Path]:
    """The files in `folder` that hold its weights: safetensors, each with a whole header, else pickles.

    Raises `UserError` where there are none, one is cut off, or one of several is missing.
    """
    files = sorted(folder.glob("model*.safetensors"))
    for file in files:
        check_types(file, _types(file))
    whole = "model.safetensors" if files else PICKLED
    files = files or sorted(folder.glob("pytorch_model*.bin"))
    if not (folder / whole).is_file():
        _check_parts(folder / f"{whole}.index.json")
    if files:
        return files
    others = [name for name in ("tf_model.h5", "flax_model.msgpack") if (folder / name).is_file()]
    raise UserError(
        f"`{weights}` has no weights" + (f" that we read (but {others[0]})" if others else ""),
        where=str(folder),
        remedy="put model.safetensors or pytorch_model.bin beside config.json",
    )


def _check_parts(index: Path) -> None:
    """Refuse weights in several files of which one is missing; no index, no parts."""
    if not index.is_file():
        return
    try:
        parts: list[str] = sorted(set(read_json(index)["weight_map"].values()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise UserError(
            f"{index.name} cannot be read", where=str(index), remedy="copy or download it again"
        ) from None
    for part in parts:
        if "/" in part or len(part.encode("utf-8", "replace")) > MOST_NAME:
            raise UserError(
                f"{index.name} names a file that is not beside it: {part[:80]!r}",
                where=str(index),
                remedy="do not use it, or take the model in one file",
            )
        if not (index.parent / part).is_file():
            raise UserError(
                f"{part} is missing, one of {len(parts)} parts of the weights",
                where=str(index.parent),
                remedy="copy or download it too",
            )


def stored_types(folder: Path) -> tuple[str, ...]:
    """The types that weights in safetensors have in `folder`, such as F32 or F16; only headers are read."""
    found = {kind for file in folder.glob("model*.safetensors") for kind in _types(file).values()}
    return tuple(sorted(found & set(FLOATS)))


def _types(file: Path) -> dict[str, str]:
    """The type of each tensor; raises `UserError` for a file that is cut off or no safetensors."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, framework="pt") as opened:
            return {name: opened.get_slice(name).get_dtype() for name in opened.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise UserError(
            f"{file.name} cannot be read: {str(error).splitlines()[0]}",
            where=str(file),
            remedy="copy or download it again",
        ) from None


def check_types(file: Path, types: dict[str, str]) -> None:
    """Refuse tensors of a type that cannot be trained: name -> type, as safetensors call it."""
    for name, kind in types.items():
        if kind not in FLOATS and not name.endswith("position_ids"):
            raise UserError(
                f"{name} in {file.name} is {kind}: quantised weights cannot be trained",
                where=str(file),
                remedy=f"take the model in one of {', '.join(FLOATS)}",
            )


def tokenizer_files(folder: Path) -> list[Path]:
    """What determines the tokenizer: tokenizer.json alone where it is there."""
    whole = folder / "tokenizer.json"
    if whole.is_file():
        return [whole]
    parts = ("vocab.txt", "vocab.json", "merges.txt", "tokenizer.model", "tokenizer_config.json")
    return [folder / part for part in parts]


def digest(files: list[Path]) -> str:
    """sha256 over the names and digests of those of `files` that exist."""
    there = [path for path in files if path.is_file()]
    lines = [f"{path.name} {hub.file_sha256(path)}" for path in there]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
