"""Collections small enough to see through, and a tokenizer to go with them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from repro.data.collection import Collection, Records, assemble


def collect(
    pairs: Sequence[tuple[str, str]], groups: Sequence[str] | None = None, name: str = "small"
) -> Collection:
    """A collection of (query, passage) texts; the same text is one query, one passage."""
    queries = list(dict.fromkeys(query for query, _ in pairs))
    passages = list(dict.fromkeys(passage for _, passage in pairs))
    group = dict(zip((passage for _, passage in pairs), groups or [""] * len(pairs), strict=True))
    records = Records(
        queries=[(f"q{index}", text) for index, text in enumerate(queries)],
        passages=[(f"p{index}", text, group[text]) for index, text in enumerate(passages)],
        judgements=[(f"q{queries.index(q)}", f"p{passages.index(p)}") for q, p in pairs],
    )
    return assemble(name, "en", records)


def random_collection(seed: int, n_queries: int, n_passages: int, n_pairs: int) -> Collection:
    """Random judgements between random texts, in sixty groups; some passages have none."""
    random = np.random.default_rng(seed)
    pairs = random.integers([0, 0], [n_queries, n_passages], size=(n_pairs, 2)).tolist()
    texts = [" ".join(f"w{word}" for word in random.integers(0, 40, 6)) for _ in range(n_passages)]
    records = Records(
        queries=[(f"q{i}", f"query {i % max(n_queries - 2, 1)}") for i in range(n_queries)],
        passages=[(f"p{i}", text, f"g{i % 60}") for i, text in enumerate(texts)],
        judgements=[(f"q{query}", f"p{passage}") for query, passage in pairs],
    )
    return assemble("random", "en", records)


def word_tokenizer(words: Sequence[str]) -> Tokenizer:
    """A WordPiece tokenizer that knows these words whole, and nothing else."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    vocabulary = {word: index for index, word in enumerate(dict.fromkeys([*special, *words]))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer
