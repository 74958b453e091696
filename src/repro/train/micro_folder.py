"""The folder of a pre-trained micro-encoder: Hugging Face layout, and the projection beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from safetensors.torch import save as serialize
from tokenizers import Tokenizer

from repro.files import write_bytes, write_json
from repro.model import pretrained
from repro.model.encoder import Encoder
from repro.train import vocabulary
from repro.train.crops import PAD

LOG_COLUMNS = ("step", "mlm_loss", "contrastive_loss", "lr", "held_out_entropy")


def lay_out(
    folder: Path, tokenizer: Tokenizer, *, layers: int, width: int, heads: int, positions: int
) -> None:
    """Write config.json and the tokenizer's files: all that `pretrained` needs but the weights."""
    folder.mkdir(parents=True, exist_ok=True)
    config = {
        "architectures": ["BertModel"],
        "model_type": "bert",
        "vocab_size": tokenizer.get_vocab_size(),
        "hidden_size": width,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": 4 * width,
        "hidden_act": "gelu",
        "max_position_embeddings": positions,
        "type_vocab_size": 1,
        "hidden_dropout_prob": 0.1,
        "attention_probs_dropout_prob": 0.1,
        "initializer_range": 0.02,
        "layer_norm_eps": 1e-12,
        "pad_token_id": PAD,
        "dtype": "float16",
    }
    write_json(folder / "config.json", config)
    vocabulary.save(tokenizer, folder, positions)


def fill(folder: Path, encoder: Encoder, log: list[dict[str, Any]], about: dict[str, Any]) -> None:
    """Write weights and projection in half precision, log.csv, and pretraining.json last."""
    weights = {
        name: tensor.detach().half().contiguous()
        for name, tensor in encoder.backbone.state_dict().items()
    }
    write_bytes(folder / "model.safetensors", serialize(weights, metadata={"format": "pt"}))
    projection = {
        "weight": encoder.projection.weight.detach().half(),
        "bias": encoder.projection.bias.detach().half(),
        "log_temperature": -encoder.log_scale.detach(),
    }
    write_bytes(folder / pretrained.HEAD, serialize(projection))
    lines = [",".join(LOG_COLUMNS)]
    for row in log:  # losses in nats; the lr of the row's last step
        cells = [row.get(name) for name in LOG_COLUMNS]
        lines.append(",".join("" if cell is None else f"{cell:.6g}" for cell in cells))
    write_bytes(folder / "log.csv", ("\n".join(lines) + "\n").encode())
    write_json(folder / "pretraining.json", about)
