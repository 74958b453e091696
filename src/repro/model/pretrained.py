"""The one door to transformers: a pre-trained encoder and its tokenizer, found by name.

A name is `micro/2x64` (shipped with the package), a folder in Hugging Face layout, or a hub id,
optionally with a revision: `org/name@revision`.  Weights come from safetensors only, and no code
that lies beside them is ever run.
"""

from __future__ import annotations

import copy
import functools
import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from repro.model.files import digest, folder_of, tokenizer_files, weight_files
from repro.params import UserError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

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


@functools.cache
def library() -> Any:
    """transformers, without its progress bars and notices (what matters is raised)."""
    import transformers

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    return transformers
