"""Folders of models, damaged: configuration, tokenizer, weights in safetensors and in pickles."""

from __future__ import annotations

import json
import os
import pickle
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

from fuzz.damage import DEEP, damaged
from fuzz.harness import REFUSED, Fuzz, attempt
from repro.model import files, pickled, pretrained
from repro.model.files import FLOATS
from tiny import write_bert


def test_safetensors(fuzz: Fuzz) -> None:
    file = fuzz.folder / "model.safetensors"
    from safetensors.torch import save

    bases = [
        save({"a": torch.zeros(2, 3), "b": torch.ones(2, dtype=torch.float16)}, {"format": "pt"}),
        save({"embeddings.position_ids": torch.arange(4), "w": torch.ones(1)}),
        save({"w": torch.ones(2, dtype=torch.int8)}),
    ]

    def check(data: bytes) -> bool:
        file.write_bytes(data)
        found = attempt(lambda: files.weight_files("org/name", fuzz.folder), file)
        if found is REFUSED:
            return False
        assert set(files.stored_types(fuzz.folder)) <= set(FLOATS)
        return True

    fuzz(damaged(bases), check, share=0.4)


def test_indices_of_weights_in_parts(fuzz: Fuzz) -> None:
    from safetensors.torch import save_file

    parts = [f"model-0000{part}-of-00002.safetensors" for part in (1, 2)]
    for part in parts:
        save_file({"w": torch.ones(1)}, fuzz.folder / part)
    index = fuzz.folder / "model.safetensors.index.json"
    whole = json.dumps({"weight_map": dict(zip("ab", parts, strict=True))}).encode()

    def check(data: bytes) -> bool:
        index.write_bytes(data)
        found = attempt(lambda: files.weight_files("org/name", fuzz.folder), fuzz.folder)
        return found is not REFUSED

    fuzz(damaged([whole, whole, whole, b'{"weight_map":' + b'{"a":' * DEEP]), check, share=0.1)


class Touch:
    """What a hostile pickle may hold: a call."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


def test_pickled_weights(fuzz: Fuzz) -> None:
    file, ran = fuzz.folder / "pytorch_model.bin", fuzz.folder / "ran"
    bases = []
    for content in (
        {"a": torch.zeros(2, 3), "b": torch.ones(2, dtype=torch.float16)},
        {"a": torch.ones(1), "x": Touch(ran)},
        [torch.ones(1)],
    ):
        for new in (True, False):
            torch.save(content, file, _use_new_zipfile_serialization=new)
            bases.append(file.read_bytes())
    bases.append(pickle.dumps({"a": Touch(ran)}))

    def check(data: bytes) -> bool:
        file.write_bytes(data)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = attempt(lambda: pickled._tensors(file), file)
        assert not ran.exists(), "a pickle has run code"
        return found is not REFUSED

    fuzz(damaged(bases), check, share=0.3)


@pytest.mark.parametrize(
    "name", ["config.json", "tokenizer.json", "tokenizer_config.json", "vocab.txt"]
)
def test_configurations_and_tokenizers(name: str, fuzz: Fuzz) -> None:
    folder = write_bert(fuzz.folder / "bert")
    if name == "vocab.txt":
        (folder / "tokenizer.json").unlink()
    whole = (folder / name).read_bytes()

    def check(data: bytes) -> bool:
        (folder / name).write_bytes(data)
        found = attempt(lambda: pretrained.load(str(folder), untrained=True), folder)
        if found is REFUSED:
            return False
        assert found.tokenizer.encode("kalo").ids is not None
        return isinstance(found.width, int)

    fuzz(damaged([whole]), check, share=0.05)
