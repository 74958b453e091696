"""The one door to transformers: a pre-trained encoder and its tokenizer, found by name.

A name is `micro/2x64` (shipped with the package), a folder in Hugging Face layout, or a hub id,
optionally with a revision: `org/name@revision`.  Weights come from safetensors, or from pickles of
plain tensors (`repro.model.pickled`); whatever their precision, they are float32 here.  No code that
lies beside them is ever run.
"""

from __future__ import annotations

import copy
import functools
import inspect
import json
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from repro.errors import UserError
from repro.model import family, pickled, tensors
from repro.model.files import digest, folder_of, stored_types, tokenizer_files, weight_files

if TYPE_CHECKING:
    from tokenizers import Tokenizer

HEAD = "projection.safetensors"


@dataclass(frozen=True)
class Pretrained:
    """An encoder's configuration and tokenizer; its network is built by `backbone`."""

    name: str
    folder: Path
    weights_folder: Path  # where the weights lie as safetensors
    config: Any  # transformers.PreTrainedConfig
    tokenizer: Tokenizer  # no truncation, no padding
    cls_id: int
    sep_id: int
    pad_id: int
    stored: tuple[str, ...]  # types of the weights in their files: F32, F16, BF16, ...
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
        return family.longest(self.config)


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
    place = pickled.readable(files) if files else folder
    return Pretrained(
        name=weights,
        folder=folder,
        weights_folder=place,
        stored=stored_types(place),
        config=config,
        tokenizer=special.pop("tokenizer"),
        digest=digest([folder / "config.json", *files, folder / HEAD]),
        tokenizer_digest=digest(tokenizer_files(folder)),
        **special,
    )


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
    config = copy.deepcopy(pretrained.config)
    if dropout is not None and not family.set_dropout(config, dropout):
        raise UserError(
            f"the configuration of `{pretrained.name}` has no dropout rate that we know",
            where=str(pretrained.folder / "config.json"),
            remedy="leave `dropout` empty to keep the model as it is",
        )
    with torch.random.fork_rng(devices=[]):
        if random_seed is not None:
            torch.random.default_generator.manual_seed(random_seed)
            network = _empty(config)
        else:
            network = _filled(pretrained, config)
    wrong = {str(weight.dtype) for weight in network.parameters()} - {"torch.float32"}
    if wrong:
        raise AssertionError(f"weights of {pretrained.name} are {wrong}, not float32")
    module: nn.Module = network.train()
    return module


def skeleton(config: Any) -> nn.Module:
    """The network of a configuration without weights and without memory, as `backbone` builds it."""
    with torch.device("meta"):
        return _empty(config)


def has_pooler(config: Any) -> bool:
    """Whether this family has a layer behind its first token, as BERT has; we build none."""
    network_class = library().MODEL_MAPPING[type(config)]
    return "add_pooling_layer" in inspect.signature(network_class.__init__).parameters


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


def save(pretrained: Pretrained, network: Any, folder: Path, max_tokens: int) -> None:
    """Write a network of `pretrained` and its tokenizer into `folder`, in Hugging Face layout."""
    network.save_pretrained(folder)
    for file in folder.glob("*.safetensors"):
        tensors.open_to_others(file)
    own = {"trust_remote_code": False, "local_files_only": True}
    tokenizer = library().AutoTokenizer.from_pretrained(
        pretrained.folder, config=pretrained.config, **own
    )
    tokenizer.model_max_length = max_tokens
    tokenizer.save_pretrained(folder)


def _options(config: Any) -> dict[str, Any]:
    network_class = library().MODEL_MAPPING[type(config)]
    attention = "sdpa" if network_class._supports_sdpa else "eager"  # of MPNet, its only one
    options: dict[str, Any] = {"attn_implementation": attention, "dtype": torch.float32}
    if has_pooler(config):
        options["add_pooling_layer"] = False  # where it is wanted, it is counted apart
    return options


def _empty(config: Any) -> Any:
    model = library().AutoModel
    return model.from_config(config, trust_remote_code=False, **_options(config))


def _filled(pretrained: Pretrained, config: Any) -> Any:
    network, info = library().AutoModel.from_pretrained(
        pretrained.weights_folder,
        config=config,
        use_safetensors=True,
        trust_remote_code=False,
        local_files_only=True,
        output_loading_info=True,
        **_options(config),
    )
    faults = sorted(info["missing_keys"]) + sorted(str(key) for key in info["mismatched_keys"])
    if faults:
        raise UserError(
            f"the weights of `{pretrained.name}` leave {len(faults)} tensors empty: {faults[0]}",
            where=str(pretrained.folder),
            remedy="check that config.json and the weights belong together",
        )
    return network


def _read(weights: str, folder: Path) -> tuple[Any, dict[str, Any]]:
    """The configuration; the tokenizer and the ids of its special tokens."""
    if not any(path.is_file() for path in tokenizer_files(folder)):
        raise UserError(
            f"`{weights}` has no tokenizer",  # transformers would make an empty one
            where=str(folder),
            remedy="put its tokenizer.json (or vocab.txt) beside config.json",
        )
    own = {"trust_remote_code": False, "local_files_only": True}
    try:
        config = _config(folder, own)
        wrapped = library().AutoTokenizer.from_pretrained(folder, config=config, **own)
        fast = copy.deepcopy(wrapped.backend_tokenizer)
        fast.encode("\u2603")  # fails where the vocabulary lacks its own token for what it lacks
    except MemoryError:
        raise
    except Exception as error:  # tokenizers raise no class of their own
        what = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise UserError(
            f"transformers cannot read `{weights}`: {what[:200]}",
            where=str(folder),
            remedy="it takes config.json of a known model_type, and tokenizer.json or vocab.txt",
        ) from None
    family.check(weights, folder, config)
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
    framed = fast.encode("").ids
    if framed and framed != [ids["cls_id"], ids["sep_id"]]:
        raise UserError(
            f"the tokenizer of `{weights}` frames a text by {framed}, not by its first and last token",
            where=str(folder),
            remedy="name an encoder that reads [CLS] text [SEP], or the like",
        )
    return config, {"tokenizer": fast, "unk_id": wrapped.unk_token_id, **ids}


def _config(folder: Path, own: dict[str, Any]) -> Any:
    """The configuration in a folder; one without model_type, as of BERT's first years, is BERT's."""
    read = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    if "model_type" not in read and "type_vocab_size" in read:
        return library().AutoConfig.for_model("bert", **read)
    return library().AutoConfig.from_pretrained(folder, **own)


@functools.cache
def library() -> Any:
    """transformers, without its progress bars and notices (what matters is raised)."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "IProgress not found")  # of tqdm, in a notebook
        import transformers

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    return transformers
