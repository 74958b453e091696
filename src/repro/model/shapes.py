"""Known hub ids and their shapes, so that models are counted without network, files or weights.

Sources: google-research/bert (arXiv 1908.08962), google-research/language (MultiBERTs, arXiv
2106.16163), PaddleNLP's ERNIE configurations, and the configurations of the other repositories.
What a repository really holds is what counts in a run: `repro.model.encoder.size` reads its config.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from repro.model import pretrained
from repro.model.encoder import Size, size_of

Shape = Mapping[str, Any]  # model_type, and what differs from the defaults of its configuration
# Models that write labels: parameters, and bytes of each in the repository's file.
WRITERS = {
    "castorini/doc2query-t5-base-msmarco": (222_903_552, 4),
    "Qwen/Qwen2.5-0.5B-Instruct": (494_032_768, 2),
}


def declared_size(hub_id: str, projection: int = 768) -> Size | None:
    """The counts of the model behind a known hub id (a revision is ignored); None: not known."""
    config = declared_config(hub_id)
    return None if config is None else size_of(config, projection)


def declared_config(hub_id: str) -> Any | None:
    """The transformers configuration of a known hub id (a revision is ignored); None: not known."""
    shape = known().get(hub_id.partition("@")[0])
    if shape is None:
        return None
    return pretrained.library().AutoConfig.for_model(**shape)


def writer_bytes(hub_id: str) -> int | None:
    """What is downloaded of a known writer of labels (a revision is ignored); None: not known."""
    found = WRITERS.get(hub_id.partition("@")[0])
    return None if found is None else found[0] * found[1]


def known() -> dict[str, Shape]:
    """All hub ids that are known, and their shapes."""
    return {**_miniatures(), **_multiberts(), **_ernie(), **_single()}


def _bert(layers: int, width: int, **other: Any) -> Shape:
    """Heads of 64, a four times wider inner layer, 30,522 word pieces, 512 positions."""
    return {
        "model_type": "bert",
        "num_hidden_layers": layers,
        "hidden_size": width,
        "num_attention_heads": width // 64,
        "intermediate_size": 4 * width,
        **other,
    }


def _miniatures() -> dict[str, Shape]:
    """The 24 of Google, and other conversions of the same."""
    found = {}
    for width in (128, 256, 512, 768):
        for layers in range(2, 13, 2):
            shape = _bert(layers, width)
            found[f"google/bert_uncased_L-{layers}_H-{width}_A-{width // 64}"] = shape
            found[f"gaunernst/bert-L{layers}-H{width}-uncased"] = shape
    named = {"tiny": (2, 128), "mini": (4, 256), "small": (4, 512), "medium": (8, 512)}
    return found | {f"gaunernst/bert-{name}-uncased": _bert(*at) for name, at in named.items()}


def multiberts_steps() -> list[int]:
    """The pre-training steps, in thousands, at which seeds 0 to 4 of MultiBERTs were kept."""
    return [*range(0, 201, 20), *range(300, 2001, 100)]


def _multiberts() -> dict[str, Shape]:
    ids = [f"google/multiberts-seed_{seed}" for seed in range(25)]
    ids += [f"{each}-step_{step}k" for each in ids[:5] for step in multiberts_steps()]
    return dict.fromkeys(ids, _bert(12, 768))


def _ernie() -> dict[str, Shape]:
    """ERNIE 3.0: the sizes differ in their task types too, which total counts."""
    sizes = {
        "xbase": (20, 1024, 16, 16),
        "base": (12, 768, 12, 3),
        "medium": (6, 768, 12, 16),
        "mini": (6, 384, 12, 16),
        "micro": (4, 384, 12, 16),
        "nano": (4, 312, 12, 16),
    }
    return {
        f"nghuyong/ernie-3.0-{name}-zh": {
            "model_type": "ernie",
            "vocab_size": 40_000,
            "num_hidden_layers": layers,
            "hidden_size": width,
            "num_attention_heads": heads,
            "intermediate_size": 4 * width,
            "max_position_embeddings": 2048,
            "type_vocab_size": 4,
            "use_task_id": True,
            "task_type_vocab_size": task_types,
        }
        for name, (layers, width, heads, task_types) in sizes.items()
    }


def _single() -> dict[str, Shape]:
    """Encoders that are often named."""
    roberta = {
        "vocab_size": 50_265,
        "max_position_embeddings": 514,
        "type_vocab_size": 1,
        "layer_norm_eps": 1e-5,
    }
    large = {"num_hidden_layers": 24, "hidden_size": 1024, "num_attention_heads": 16}
    return {
        "google-bert/bert-base-uncased": _bert(12, 768),
        "google-bert/bert-large-uncased": _bert(24, 1024),
        "google-bert/bert-base-chinese": _bert(12, 768, vocab_size=21_128),
        "FacebookAI/roberta-base": {"model_type": "roberta", **roberta},
        "FacebookAI/roberta-large": {
            "model_type": "roberta",
            **roberta,
            **large,
            "intermediate_size": 4096,
        },
        "distilbert/distilbert-base-uncased": {"model_type": "distilbert"},
        "microsoft/mpnet-base": {
            "model_type": "mpnet",
            "max_position_embeddings": 514,
            "layer_norm_eps": 1e-5,
        },
        "answerdotai/ModernBERT-base": {"model_type": "modernbert"},
        "answerdotai/ModernBERT-large": {
            "model_type": "modernbert",
            "num_hidden_layers": 28,
            "hidden_size": 1024,
            "num_attention_heads": 16,
            "intermediate_size": 2624,
        },
    }
