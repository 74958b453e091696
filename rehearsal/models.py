"""Encoders as the hub has them: every named shape, its head width and vocabulary cut, random weights.

Some repositories hold `pytorch_model.bin`, some `model.safetensors`; tensors are called as the
converted TensorFlow checkpoints call them: `bert.` before all, gamma and beta in layer norms, the
heads of pre-training beside the encoder, positions kept as a buffer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rehearsal.language import ASKING, COMMON, SYLLABLES, ZH_ASKING, ZH_COMMON, ZH_KEYS
from repro.seeds import stream

HEAD = {64: 4, 32: 3, 26: 2}  # head width -> what it is cut to, so that sizes keep their order
STEPS = [*range(0, 201, 20), *range(300, 2001, 100)]  # thousands, of MultiBERTs


@dataclass(frozen=True)
class Shape:
    """A repository: its id, and the sizes before the cut."""

    name: str
    kind: str  # bert or ernie
    layers: int
    width: int
    heads: int
    pickled: bool  # pytorch_model.bin, no safetensors
    old: bool  # gamma and beta in layer norms

    @property
    def cut(self) -> int:
        """The width that is written."""
        return self.heads * HEAD[self.width // self.heads]


def shapes() -> list[Shape]:
    """The 24 BERT miniatures, ERNIE 3.0 and the checkpoints of MultiBERTs (FACTS E1 to E3)."""
    found = [
        Shape(
            f"google/bert_uncased_L-{layers}_H-{width}_A-{width // 64}",
            "bert", layers, width, width // 64, pickled=layers % 4 == 0, old=width > 256,
        )
        for width in (128, 256, 512, 768)
        for layers in (2, 4, 6, 8, 10, 12)
    ]  # fmt: skip
    ernie = {
        "xbase": (20, 1024, 16), "base": (12, 768, 12), "medium": (6, 768, 12),
        "mini": (6, 384, 12), "micro": (4, 384, 12), "nano": (4, 312, 12),
    }  # fmt: skip
    found += [
        Shape(f"nghuyong/ernie-3.0-{name}-zh", "ernie", *sizes, pickled=True, old=False)
        for name, sizes in ernie.items()
    ]
    names = [f"google/multiberts-seed_{seed}" for seed in range(5)]
    names += [f"google/multiberts-seed_0-step_{step}k" for step in STEPS]
    return [*found, *(Shape(name, "bert", 12, 768, 12, pickled=True, old=False) for name in names)]


def repository(folder: Path, shape: Shape, seed: int) -> None:
    """config.json, vocab.txt and the weights; ERNIE has a tokenizer_config.json as well."""
    folder.mkdir(parents=True, exist_ok=True)
    words = vocabulary(shape.kind)
    (folder / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    config = _config(shape, len(words))
    _json(folder / "config.json", config)
    if shape.kind == "ernie":
        options = {"do_lower_case": True, "tokenizer_class": "BertTokenizer"}
        _json(folder / "tokenizer_config.json", options)
    draw = stream(seed, "rehearsal", "weights", shape.name)
    tensors = {name: _fill(name, size, draw) for name, size in _tensors(shape, config)}
    positions = config["max_position_embeddings"]
    tensors[f"{shape.kind}.embeddings.position_ids"] = np.arange(positions)[None]
    if shape.old:
        tensors = {_old(name): tensor for name, tensor in tensors.items()}
    _weights(folder, tensors, pickled=shape.pickled)


def vocabulary(kind: str) -> list[str]:
    """The word pieces: BERT's special ones where BERT has them, ERNIE's where ERNIE has them."""
    latin = [*"abcdefghijklmnopqrstuvwxyz0123456789"]
    marks = [*".,;:?!'\"-()\u00e2\u00a9\u00ef\u00af\u2019"]
    whole = sorted({*COMMON, *" ".join(ASKING).split(), "also"} - {*latin})
    parts = sorted({*SYLLABLES} - {*whole})
    pieces = [*latin, *(f"##{part}" for part in latin), *marks]
    if kind == "bert":
        unused = [f"[unused{number}]" for number in range(99)]
        special = ["[PAD]", *unused, "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        ends = sorted({*SYLLABLES} | {"also"})
        return [*special, *pieces, *whole, *parts, *(f"##{part}" for part in ends)]
    characters = sorted({*ZH_COMMON, *ZH_KEYS, *"".join(ZH_ASKING), *"\u4e5f\u662f\u3002\uff0c"})
    return ["[PAD]", "[CLS]", "[SEP]", "[MASK]", *characters, *pieces, "[UNK]"]


def _config(shape: Shape, words: int) -> dict[str, Any]:
    """What config.json says; no more than the repositories say."""
    found = {
        "architectures": ["BertForPreTraining" if shape.kind == "bert" else "ErnieForMaskedLM"],
        "model_type": shape.kind,
        "attention_probs_dropout_prob": 0.1,
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1,
        "hidden_size": shape.cut,
        "initializer_range": 0.02,
        "intermediate_size": 4 * shape.cut,
        "max_position_embeddings": 512,
        "num_attention_heads": shape.heads,
        "num_hidden_layers": shape.layers,
        "type_vocab_size": 2,
        "vocab_size": words,
    }
    if shape.kind == "ernie":
        tasks = {"use_task_id": True, "task_type_vocab_size": 3, "type_vocab_size": 4}
        found |= {"max_position_embeddings": 2048, "layer_norm_eps": 1e-5, **tasks}
    return found


def _tensors(shape: Shape, config: dict[str, Any]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Name and size of each tensor of the checkpoint, heads of pre-training included."""
    width, inner, words = config["hidden_size"], config["intermediate_size"], config["vocab_size"]
    start = f"{shape.kind}."

    def linear(name: str, out: int, into: int) -> Iterator[tuple[str, tuple[int, ...]]]:
        yield f"{name}.weight", (out, into)
        yield f"{name}.bias", (out,)

    def norm(name: str) -> Iterator[tuple[str, tuple[int, ...]]]:
        yield f"{name}.LayerNorm.weight", (width,)
        yield f"{name}.LayerNorm.bias", (width,)

    tables = {"word": words, "position": config["max_position_embeddings"]}
    tables["token_type"] = config["type_vocab_size"]
    if config.get("use_task_id"):
        tables["task_type"] = config["task_type_vocab_size"]
    for name, rows in tables.items():
        yield f"{start}embeddings.{name}_embeddings.weight", (rows, width)
    yield from norm(f"{start}embeddings")
    for layer in range(shape.layers):
        here = f"{start}encoder.layer.{layer}."
        for part in ("query", "key", "value"):
            yield from linear(f"{here}attention.self.{part}", width, width)
        yield from linear(f"{here}attention.output.dense", width, width)
        yield from norm(f"{here}attention.output")
        yield from linear(f"{here}intermediate.dense", inner, width)
        yield from linear(f"{here}output.dense", width, inner)
        yield from norm(f"{here}output")
    yield from linear(f"{start}pooler.dense", width, width)
    yield from linear("cls.predictions.transform.dense", width, width)
    yield from norm("cls.predictions.transform")
    yield "cls.predictions.bias", (words,)
    yield from linear("cls.seq_relationship", 2, width)


def _fill(name: str, size: tuple[int, ...], draw: np.random.Generator) -> np.ndarray:
    """Ones and zeros for a layer norm, zeros for other biases, else normal numbers."""
    if name.endswith("LayerNorm.weight"):
        return np.ones(size, np.float32)
    if len(size) == 1:
        return np.zeros(size, np.float32)
    scale = 1.0 if "embeddings" in name else size[-1] ** -0.5
    if "position" in name or "type" in name:
        scale = 0.1
    return (scale * draw.standard_normal(size)).astype(np.float32)


def _old(name: str) -> str:
    return name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
        "LayerNorm.bias", "LayerNorm.beta"
    )


def _weights(folder: Path, tensors: dict[str, np.ndarray], *, pickled: bool) -> None:
    import torch
    from safetensors.torch import save_file

    found = {name: torch.from_numpy(tensor) for name, tensor in tensors.items()}
    if pickled:
        torch.save(found, folder / "pytorch_model.bin")
    else:
        save_file(found, folder / "model.safetensors", metadata={"format": "pt"})


def _json(path: Path, data: dict[str, Any]) -> None:
    path.write_text(json.dumps(data, indent=2, sort_keys=True) + "\n", encoding="utf-8")
