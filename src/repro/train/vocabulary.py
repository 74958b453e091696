"""A WordPiece vocabulary, trained on the text that the encoders are pre-trained on."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Annotated

from pydantic import Field
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

from repro.params import Params

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
COVERED = 0.9995  # share of all characters whose own pieces are in the vocabulary


class Vocabulary(Params):
    """WordPiece as in BERT: lower-case, accents stripped, Chinese characters apart."""

    size: Annotated[int, Field(ge=64, le=1_000_000)] = 8000


def train(documents: list[str], params: Vocabulary) -> Tokenizer:
    """A tokenizer with at most `params.size` pieces; the same documents give the same one.

    Left to itself the trainer numbers the inner letters (##a) in an order drawn by chance, and
    breaks ties by number; so they go in as special tokens, and the tokenizer is built again.
    """
    normalizer = normalizers.BertNormalizer(lowercase=True)
    alphabet = _alphabet(documents, normalizer, params.size // 2)
    # The normaliser puts spaces around Chinese characters: they never go on within a word.
    inner = [letter for letter in alphabet if " " not in normalizer.normalize_str(f"a{letter}")]
    draft = _tokenizer({}, normalizer)
    trainer = trainers.WordPieceTrainer(
        vocab_size=params.size,
        min_frequency=2,
        special_tokens=[*SPECIAL, *alphabet, *(f"##{letter}" for letter in inner)],
        limit_alphabet=len(alphabet),
        initial_alphabet=alphabet,
        continuing_subword_prefix="##",
        show_progress=False,
    )
    draft.train_from_iterator(documents, trainer)
    tokenizer = _tokenizer(draft.get_vocab(), normalizer)
    tokenizer.add_special_tokens(SPECIAL)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(token, SPECIAL.index(token)) for token in ("[CLS]", "[SEP]")],
    )
    return tokenizer


def save(tokenizer: Tokenizer, folder: Path, positions: int) -> None:
    """Write tokenizer.json and tokenizer_config.json, as transformers reads them."""
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    config = {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": True,
        "model_max_length": positions,
        **{f"{token[1:-1].lower()}_token": token for token in SPECIAL},
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=1) + "\n", "utf-8")


def _tokenizer(vocabulary: dict[str, int], normalizer: normalizers.Normalizer) -> Tokenizer:
    model = models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100)
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix="##")
    return tokenizer


def _alphabet(documents: list[str], normalizer: normalizers.Normalizer, limit: int) -> list[str]:
    """The most frequent characters, until they cover `COVERED` of the text, at most `limit`."""
    counts: Counter[str] = Counter()
    for document in documents:
        counts.update(normalizer.normalize_str(document))
    del counts[" "]
    alphabet: list[str] = []
    covered, total = 0, counts.total()
    for character, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        if covered >= COVERED * total or len(alphabet) >= limit:
            break
        alphabet.append(character)
        covered += count
    return alphabet
