"""The one door to transformers: a pre-trained encoder and its tokenizer, found by name.

A name is `micro/2x64` (shipped with the package), a folder in Hugging Face layout, or a hub id,
optionally with a revision: `org/name@revision`.  Weights come from safetensors only, and no code
that lies beside them is ever run.
"""

from __future__ import annotations

import copy
import difflib
import functools
import hashlib
import inspect
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from repro.params import UserError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

MICRO = Path(__file__).parent / "micro"
HEAD = "projection.safetensors"
# The names under which the configurations of encoders keep their dropout rates.
DROPOUTS = (
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
    "dropout",
    "attention_dropout",
    "embedding_dropout",
    "mlp_dropout",
)
NEEDED = [
    "config.json",
    "model*.safetensors*",
    "tokenizer*",
    "*.txt",
    "*.model",
    "merges*",
    "vocab*",
]


@dataclass(frozen=True)
class Pretrained:
    """An encoder's configuration and tokenizer; its network is built by `backbone`."""

    name: str
    folder: Path
    config: Any  # transformers.PreTrainedConfig
    tokenizer: Tokenizer  # no truncation, no padding
    cls_id: int
    sep_id: int
    pad_id: int
    unk_id: int | None  # None: a byte-level vocabulary knows every text
    digest: str  # sha256, hex: the configuration, the weights and the head, as files
    tokenizer_digest: str  # sha256, hex: the tokenizer's files

    @property
    def width(self) -> int:
        """Numbers in a token's hidden state."""
        return int(self.config.hidden_size)

    @property
    def max_tokens(self) -> int | None:
        """The longest input, special tokens included; None where there is no limit."""
        positions = getattr(self.config, "max_position_embeddings", None)
        if positions is None:
            return None
        # RoBERTa and its kin count positions from pad_token_id + 1.
        kin = ("roberta", "xlm-roberta", "camembert", "mpnet")
        return positions - (self.pad_id + 1 if self.config.model_type in kin else 0)


def load(weights: str, *, untrained: bool = False) -> Pretrained:
    """The pre-trained encoder named `weights`, without building its network; raises `UserError`.

    `untrained`: a folder with a configuration and a tokenizer will do; its network is then built
    with `random_seed` only.
    """
    folder = folder_of(weights)
    if not (folder / "config.json").is_file():
        raise UserError(
            f"`{weights}` has no config.json",
            where=str(folder),
            remedy="name a folder in Hugging Face layout: config.json, model.safetensors, "
            "tokenizer.json",
        )
    files = [] if untrained else weight_files(weights, folder)
    config, special = _read(weights, folder)
    return Pretrained(
        name=weights,
        folder=folder,
        config=config,
        tokenizer=special.pop("tokenizer"),
        digest=digest([folder / "config.json", *files, folder / HEAD]),
        tokenizer_digest=digest(tokenizer_files(folder)),
        **special,
    )


def names() -> list[str]:
    """The names of the encoders shipped with the package, smallest first."""
    found = [entry.parent.name for entry in MICRO.glob("*/config.json")]

    def width_first(name: str) -> list[int]:
        layers, width, *steps = (int(number) for number in re.findall(r"[0-9]+", name))
        return [width, layers, *steps]

    return [f"micro/{name}" for name in sorted(found, key=width_first)]


def backbone(
    pretrained: Pretrained, *, dropout: float | None = None, random_seed: int | None = None
) -> nn.Module:
    """The network of `pretrained`: no pooler, SDPA attention, float32 weights, in training mode.

    Called with input_ids and attention_mask (int64, n x length; 1 = a token) it returns an object
    whose `last_hidden_state` is float32 (n, length, width).
    `dropout` replaces every dropout rate of the configuration (None keeps them).  `random_seed`
    (from seeds.derive) leaves the weights at their random initialisation, drawn from that seed: the
    untrained control.  torch's global generator is left as it was.
    Raises `UserError` where the weights do not fill the network.
    """
    transformers = library()
    config = copy.deepcopy(pretrained.config)
    if dropout is not None:
        rates = [name for name in DROPOUTS if isinstance(getattr(config, name, None), float | int)]
        if not rates:
            raise UserError(
                f"the configuration of `{pretrained.name}` has no dropout rate that we know",
                where=str(pretrained.folder / "config.json"),
                remedy="leave `dropout` empty to keep the model as it is",
            )
        for name in rates:
            setattr(config, name, dropout)
    options: dict[str, Any] = {"attn_implementation": "sdpa", "dtype": torch.float32}
    network_class = transformers.MODEL_MAPPING[type(config)]
    if "add_pooling_layer" in inspect.signature(network_class.__init__).parameters:
        options["add_pooling_layer"] = (
            False  # untrained here; where it is wanted, it is counted apart
        )
    with torch.random.fork_rng(devices=[]):
        if random_seed is not None:
            torch.random.default_generator.manual_seed(random_seed)
            network = transformers.AutoModel.from_config(config, trust_remote_code=False, **options)
        else:
            network = _filled(transformers, pretrained, config, options)
    wrong = {str(weight.dtype) for weight in network.parameters()} - {"torch.float32"}
    if wrong:
        raise AssertionError(f"weights of {pretrained.name} are {wrong}, not float32")
    module: nn.Module = network.train()
    return module


def head(pretrained: Pretrained) -> dict[str, Tensor] | None:
    """The projection shipped with a micro-encoder, float32; None where there is none.

    `weight` (output width, width) and `bias` (output width,) map the mean of the hidden states to
    the embedding; `log_temperature` () is the natural log of the temperature that divides cosines.
    """
    path = pretrained.folder / HEAD
    if not path.is_file():
        return None
    from safetensors.torch import load_file

    return {name: tensor.float() for name, tensor in load_file(path).items()}


def _filled(transformers: Any, pretrained: Pretrained, config: Any, options: dict[str, Any]) -> Any:
    network, info = transformers.AutoModel.from_pretrained(
        pretrained.folder,
        config=config,
        use_safetensors=True,
        trust_remote_code=False,
        local_files_only=True,
        output_loading_info=True,
        **options,
    )
    faults = sorted(info["missing_keys"]) + sorted(str(key) for key in info["mismatched_keys"])
    if faults:
        raise UserError(
            f"the weights of `{pretrained.name}` leave {len(faults)} tensors empty: {faults[0]}",
            where=str(pretrained.folder),
            remedy="check that config.json and model.safetensors belong together",
        )
    return network


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


def _read(weights: str, folder: Path) -> tuple[Any, dict[str, Any]]:
    """The configuration; the tokenizer and the ids of its special tokens."""
    if not any(path.is_file() for path in tokenizer_files(folder)):
        raise UserError(
            f"`{weights}` has no tokenizer",  # transformers would make an empty one
            where=str(folder),
            remedy="put its tokenizer.json (or vocab.txt) beside config.json",
        )
    transformers = library()
    try:
        config = transformers.AutoConfig.from_pretrained(
            folder, trust_remote_code=False, local_files_only=True
        )
        wrapped = transformers.AutoTokenizer.from_pretrained(
            folder, trust_remote_code=False, local_files_only=True
        )
        fast = copy.deepcopy(wrapped.backend_tokenizer)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ImportError) as error:
        raise UserError(
            f"transformers cannot read `{weights}`: {str(error).strip().splitlines()[0][:200]}",
            where=str(folder),
            remedy="it takes config.json of a known model_type, and tokenizer.json or vocab.txt",
        ) from None
    fast.no_truncation()
    fast.no_padding()
    ids = {
        "cls_id": wrapped.cls_token_id
        if wrapped.cls_token_id is not None
        else wrapped.bos_token_id,
        "sep_id": wrapped.sep_token_id
        if wrapped.sep_token_id is not None
        else wrapped.eos_token_id,
        "pad_id": wrapped.pad_token_id,
    }
    lacking = [name.removesuffix("_id") for name, value in ids.items() if value is None]
    if lacking:
        raise UserError(
            f"the tokenizer of `{weights}` has no {' and no '.join(lacking)} token",
            where=str(folder),
            remedy="name an encoder such as BERT, or add them in tokenizer_config.json",
        )
    return config, {"tokenizer": fast, "unk_id": wrapped.unk_token_id, **ids}


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


@functools.cache
def library() -> Any:
    """transformers, without its progress bars and notices (what matters is raised)."""
    import transformers

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    return transformers
