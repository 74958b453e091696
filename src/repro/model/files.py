"""The files of a pre-trained model: found by name, downloaded if they must be, whole, and their digest.

A name is `micro/2x64` (shipped with the package), a folder in Hugging Face layout, or a hub id,
optionally with a revision: `org/name@revision`.  Weights come from safetensors only.
"""

from __future__ import annotations

import difflib
import functools
import hashlib
import re
from pathlib import Path

from repro.params import UserError

MICRO = Path(__file__).parent / "micro"
NEEDED = [
    "config.json",
    "model*.safetensors*",
    "tokenizer*",
    "*.txt",
    "*.model",
    "merges*",
    "vocab*",
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


def _download(weights: str) -> Path:
    """The snapshot of a hub id, from the hub's cache where it is there or HF_HUB_OFFLINE is set."""
    name, _, revision = weights.partition("@")
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError

    try:
        return Path(snapshot_download(name, revision=revision or None, allow_patterns=NEEDED))
    except (OSError, HFValidationError) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0][:160]
    command = f"hf download {name}" + (f" --revision {revision}" if revision else "")
    raise UserError(
        f"cannot get `{weights}` from the model hub: {reason}",
        remedy=f"where the hub is reachable run `{command} --local-dir models/"
        f"{name.rpartition('/')[2]}`, put that folder here, and name it instead",
    )


def weight_files(weights: str, folder: Path) -> list[Path]:
    """The safetensors files in `folder`, each with a whole header; raises `UserError`."""
    files = sorted(folder.glob("model*.safetensors"))
    for file in files:
        _check_whole(file)
    if files:
        return files
    pickled = sorted(folder.glob("*.bin"))
    if pickled:
        raise UserError(
            f"the weights of `{weights}` are pickled ({pickled[0].name}); we read safetensors only",
            where=str(folder),
            remedy='convert a copy that you trust: python -c "from transformers import AutoModel, '
            "AutoTokenizer; [kind.from_pretrained('OLD').save_pretrained('NEW') "
            'for kind in (AutoModel, AutoTokenizer)]"',
        )
    raise UserError(
        f"`{weights}` has no weights",
        where=str(folder),
        remedy="put model.safetensors beside config.json",
    )


def _check_whole(file: Path) -> None:
    """Refuse a file that is cut off or no safetensors; only its header is read."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, framework="pt"):
            pass
    except (SafetensorError, OSError) as error:
        raise UserError(
            f"{file.name} cannot be read: {str(error).splitlines()[0]}",
            where=str(file),
            remedy="copy or download it again",
        ) from None


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
    stamps = [(path, path.stat().st_size, path.stat().st_mtime_ns) for path in there]
    lines = [f"{path.name} {_file_digest(path, size, time)}" for path, size, time in stamps]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


@functools.lru_cache(maxsize=256)
def _file_digest(path: Path, size: int, modified: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
