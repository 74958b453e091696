"""Where a study takes its data and models from: what lies here or is downloaded, or what is declared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from repro.data.dataset import Dataset, DatasetParams, prepare
from repro.data.declared import declared_dataset
from repro.model import files, generator, pretrained, shapes
from repro.model.pretrained import Pretrained
from repro.store import Store


@dataclass(frozen=True)
class Doors:
    """The three doors: a prepared dataset, a pre-trained model, and the digest of a model that writes."""

    dataset: Callable[[Store, DatasetParams], Dataset] = prepare
    model: Callable[[str], Pretrained] = pretrained.load
    writer: Callable[[str], str] = generator.digest


def is_declared(digest: str) -> bool:
    """Whether a digest stands for what is only declared."""
    return digest.startswith("declared ")


def _dataset(store: Store, params: DatasetParams) -> Dataset:
    return prepare(store, params) if params.source.here() else declared_dataset(params)


def _model(weights: str) -> Pretrained:
    config = None if files.here(weights) else shapes.declared_config(weights)
    if config is None:
        return pretrained.load(weights)
    none: Any = None
    special: dict[str, Any] = {"cls_id": 0, "sep_id": 0, "pad_id": 0, "unk_id": None, "stored": ()}
    name = f"declared {weights}"
    tokens = f"declared vocabulary of {config.vocab_size}"
    return Pretrained(
        weights, Path(), Path(), config, none, **special, digest=name, tokenizer_digest=tokens
    )


def _writer(model: str) -> str:
    return generator.digest(model) if files.here(model) else f"declared {model}"


# For plans alone: what is not on this machine is taken as declared, and no network is asked.
DECLARED = Doors(_dataset, _model, _writer)
