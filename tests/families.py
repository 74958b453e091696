"""Tiny random encoders of each family, each with its own kind of tokenizer, in the hub's layout."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from tiny import SYLLABLES

PARTS = [*SYLLABLES, *"0123456789"]
PIECES = [*PARTS, *(f"##{part}" for part in PARTS)]
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
BERT = {**SMALL, "intermediate_size": 48, "max_position_embeddings": 64}
ROBERTA = {**BERT, "max_position_embeddings": 66, "pad_token_id": 1, "bos_token_id": 0}


def word_pieces(folder: Path) -> int:
    """vocab.txt and nothing else, as BERT's first repositories had it; the size of the vocabulary."""
    return _write_words(folder, ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *PIECES])


def mpnet_pieces(folder: Path) -> int:
    """Word pieces between <s> and </s>."""
    tokens = ["<s>", "<pad>", "</s>", "[UNK]", "<mask>"]
    names = ("cls", "pad", "sep", "unk", "mask")
    config = {f"{name}_token": token for name, token in zip(names, tokens, strict=True)}
    _write_json(folder / "tokenizer_config.json", {**config, "tokenizer_class": "MPNetTokenizer"})
    return _write_words(folder, [*tokens, *PIECES])


def byte_pairs(folder: Path) -> int:
    """vocab.json and merges.txt over bytes, as RoBERTa's."""
    vocabulary, merges = _bytes(SPECIAL)
    _write_json(folder / "vocab.json", vocabulary)
    lines = ["#version: 0.2", *(f"{left} {right}" for left, right in merges)]
    (folder / "merges.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return len(vocabulary)


def framed_byte_pairs(folder: Path) -> int:
    """tokenizer.json over bytes between [CLS] and [SEP], as ModernBERT's."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    special = ["[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]"]
    vocabulary, merges = _bytes(special)
    made = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        special_tokens=[(token, vocabulary[token]) for token in ("[CLS]", "[SEP]")],
    )
    names = ("cls", "pad", "sep", "unk", "mask")
    tokens = {f"{name}_token": token for name, token in zip(names, special, strict=True)}
    PreTrainedTokenizerFast(tokenizer_object=made, **tokens).save_pretrained(folder)
    return len(vocabulary)


def unigrams(folder: Path) -> int:
    """tokenizer.json of the kind that SentencePiece makes, as XLM-RoBERTa's."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    pieces = [*SPECIAL[:4], "▁", *PARTS, *(f"▁{part}" for part in PARTS), "<mask>"]
    made = Tokenizer(models.Unigram([(p, -1.0 - i / 99) for i, p in enumerate(pieces)], unk_id=3))
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.post_processor = processors.RobertaProcessing(
        ("</s>", 2), ("<s>", 0), trim_offsets=False, add_prefix_space=False
    )
    names = ("bos", "pad", "eos", "unk", "mask")
    tokens = {f"{name}_token": token for name, token in zip(names, SPECIAL, strict=True)}
    tokens |= {"cls_token": "<s>", "sep_token": "</s>"}
    PreTrainedTokenizerFast(tokenizer_object=made, **tokens).save_pretrained(folder)
    return len(pieces)


# model_type, its configuration, its tokenizer.
FAMILIES: dict[str, tuple[str, dict[str, Any], Callable[[Path], int]]] = {
    "bert": ("bert", BERT, word_pieces),
    "bert-relu": ("bert", {**BERT, "hidden_act": "relu"}, word_pieces),
    "roberta": ("roberta", {**ROBERTA, "type_vocab_size": 1}, byte_pairs),
    "xlm-roberta": ("xlm-roberta", {**ROBERTA, "type_vocab_size": 1}, unigrams),
    "ernie": (
        "ernie",
        {**BERT, "type_vocab_size": 4, "use_task_id": True, "task_type_vocab_size": 3},
        word_pieces,
    ),
    "modernbert": (
        "modernbert",
        {
            **BERT,
            "num_hidden_layers": 4,
            "local_attention": 8,
            "cls_token_id": 0,
            "pad_token_id": 1,
            "sep_token_id": 2,
            "bos_token_id": 0,
            "eos_token_id": 2,
        },
        framed_byte_pairs,
    ),
    "distilbert": (
        "distilbert",
        {"dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 48, "max_position_embeddings": 64},
        word_pieces,
    ),
    "mpnet": ("mpnet", ROBERTA, mpnet_pieces),
    "electra": ("electra", {**BERT, "embedding_size": 16}, word_pieces),
}


def write_family(folder: Path, name: str) -> Path:
    """A random encoder of that family in `folder`: config.json, model.safetensors, its tokenizer."""
    from transformers import AutoConfig, AutoModel

    model_type, shape, tokenizer = FAMILIES[name]
    folder.mkdir(parents=True, exist_ok=True)
    config = AutoConfig.for_model(model_type, **shape, vocab_size=tokenizer(folder))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = AutoModel.from_config(config)
        for weights in network.parameters():  # wide enough for so narrow a network, biases too
            weights.data.add_(0.1 * torch.randn_like(weights))
        network.save_pretrained(folder)
    return folder


def _bytes(special: list[str]) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """A vocabulary over bytes in which the two-letter syllables are one token; its merges."""
    from tokenizers import pre_tokenizers

    merges = [(part[0], part[1]) for part in SYLLABLES if len(part) == 2]
    merges += [("Ġ", left + right) for left, right in merges]
    joined = [left + right for left, right in merges]
    tokens = [*special, *sorted(pre_tokenizers.ByteLevel.alphabet()), *joined]
    return {token: i for i, token in enumerate(tokens)}, merges


def _write_words(folder: Path, words: list[str]) -> int:
    (folder / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    return len(words)


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")
