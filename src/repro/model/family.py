"""What a configuration tells of an encoder: whether its family is known, its longest text, its dropout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from repro.errors import UserError

# The families whose vectors, counts, FLOPs and longest text are compared with transformers' own
# (tests/model/test_families.py, test_family.py): model_type.
KNOWN = (
    "bert", "camembert", "data2vec-text", "deberta-v2", "distilbert", "electra", "ernie", "eurobert",
    "megatron-bert", "modernbert", "mpnet", "nomic_bert", "roberta", "roberta-prelayernorm",
    "xlm-roberta", "xlm-roberta-xl",
)  # fmt: skip

# Of these, the ones whose positions begin behind the id of padding.
FROM_PAD = (
    "camembert", "data2vec-text", "mpnet", "roberta", "roberta-prelayernorm", "xlm-roberta",
    "xlm-roberta-xl",
)  # fmt: skip

# The names under which configurations keep the dropout rates of the encoder.
DROPOUTS = (
    "hidden_dropout_prob", "attention_probs_dropout_prob", "dropout", "attention_dropout",
    "embedding_dropout", "mlp_dropout",
)  # fmt: skip


def check(weights: str, folder: Path, config: Any) -> None:
    """Refuse what is no encoder of a family that is known; raises `UserError`."""
    fault = ""
    if config.model_type not in KNOWN:
        fault = "is of no family whose vectors and counts were compared with transformers' own"
    elif getattr(config, "is_decoder", False):
        fault = "reads from left to right (is_decoder)"
    if fault:
        raise UserError(
            f"`{weights}` {fault} (model_type {config.model_type})",
            where=str(folder / "config.json"),
            remedy=f"name an encoder of one of these: {', '.join(KNOWN)}",
        )


def longest(config: Any) -> int | None:
    """The most tokens that a network of this configuration reads; None where there is no limit."""
    positions: int | None = getattr(config, "max_position_embeddings", None)
    if positions is not None and config.model_type in FROM_PAD:
        return positions - (config.pad_token_id + 1)
    return positions


def set_dropout(config: Any, rate: float) -> list[str]:
    """Set every dropout rate of the encoder, and return their names."""
    names = [name for name in DROPOUTS if isinstance(getattr(config, name, None), float | int)]
    for name in names:
        setattr(config, name, rate)
    return names
