"""Models that write labels, as the hub has them: a T5 that was trained to write queries, and a chat model.

Cut in width, depth and vocabulary; random weights, under which only whole words are likely.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rehearsal.language import COMMON
from repro.seeds import derive

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def t5(folder: Path, seed: int) -> None:
    """A sequence-to-sequence model, its weights pickled, with a unigram vocabulary."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import T5Config, T5ForConditionalGeneration

    pieces = ["<pad>", "</s>", "<unk>", *(f"\u2581{word}" for word in COMMON)]
    pieces += ["\u2581", *"abcdefghijklmnopqrstuvwxyz0123456789.,?"]
    tokenizer = Tokenizer(models.Unigram([(p, -float(i)) for i, p in enumerate(pieces)], unk_id=2))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)]
    )
    config = T5Config(
        vocab_size=len(pieces), d_model=48, d_kv=4, d_ff=192, num_layers=2, num_heads=12,
        pad_token_id=0, eos_token_id=1, initializer_factor=4.0,
    )  # fmt: skip
    config.decoder_start_token_id = 0
    special = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    _save(folder, tokenizer, {"tokenizer_class": "T5Tokenizer", **special})
    network = _random(T5ForConditionalGeneration, config, derive(seed, "rehearsal", "t5"))
    with torch.no_grad():
        network.get_input_embeddings().weight[3 + len(COMMON) :] *= 0.02  # letters are unlikely
    config.save_pretrained(folder)
    _pickle(network, folder)


def chat(folder: Path, seed: int) -> None:
    """A causal model with a byte-level vocabulary and a template of conversations."""
    import torch
    from safetensors.torch import save_file
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import Qwen2Config, Qwen2ForCausalLM

    pieces = sorted(pre_tokenizers.ByteLevel.alphabet()) + [f"\u0120{word}" for word in COMMON]
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    tokenizer = Tokenizer(models.BPE({piece: i for i, piece in enumerate(pieces)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(special)
    config = Qwen2Config(
        vocab_size=len(pieces) + len(special), hidden_size=56, intermediate_size=112,
        num_hidden_layers=2, num_attention_heads=14, num_key_value_heads=2,
        max_position_embeddings=32768, tie_word_embeddings=True, eos_token_id=len(pieces) + 2,
        bos_token_id=len(pieces), dtype="bfloat16",
    )  # fmt: skip
    words = {"eos_token": special[2], "pad_token": special[0], "chat_template": TEMPLATE}
    _save(folder, tokenizer, {"tokenizer_class": "Qwen2Tokenizer", **words})
    network = _random(Qwen2ForCausalLM, config, derive(seed, "rehearsal", "chat"))
    with torch.no_grad():
        table = network.get_input_embeddings().weight
        table.mul_(50)
        table[:256] *= 0.02  # bytes are unlikely beside words
    tensors = network.to(torch.bfloat16).state_dict()
    del tensors["lm_head.weight"]  # tied
    config.save_pretrained(folder)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def _random(kind: Any, config: Any, seed: int) -> Any:
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return kind(config).eval()


def _save(folder: Path, tokenizer: Any, about: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    text = json.dumps(about, indent=2, sort_keys=True) + "\n"
    (folder / "tokenizer_config.json").write_text(text, encoding="utf-8")


def _pickle(network: Any, folder: Path) -> None:
    import torch

    torch.save(dict(network.state_dict()), folder / "pytorch_model.bin")
