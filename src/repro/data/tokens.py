"""The token table: every text of a collection as ids, made once, memory-mapped."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from repro.data import arrays
from repro.data.collection import Collection
from repro.params import UserError

RULES = 1  # raise it when the table changes on purpose
MAX_IDS = 512  # ids kept of a text: more than any encoder here reads
BATCH = 2048  # texts tokenised at once: bounds the memory
MAX_UNKNOWN = 0.05  # a larger share of unknown tokens means the wrong vocabulary


_PARTS = ("queries", "passages")


@dataclass(frozen=True)
class Tokens:
    """Texts as ids: those of text i are `ids[offsets[i]:offsets[i + 1]]`, without special tokens.

    `ids` int32 [n_ids], `offsets` int64 [n_texts + 1]; both may be memory-mapped.
    """

    ids: np.ndarray
    offsets: np.ndarray

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def lengths(self, indices: np.ndarray, max_tokens: int) -> np.ndarray:
        """int64 [n]: how many tokens `flat` gives each text, the two special ones included."""
        raw = self.offsets[indices + 1] - self.offsets[indices]
        return np.minimum(raw, max_tokens - 2) + 2

    def flat(self, indices: np.ndarray, max_tokens: int, cls_id: int, sep_id: int) -> np.ndarray:
        """int64 [sum of lengths]: cls, the text, sep, of one text after another.

        No text has more than `max_tokens` tokens, the special ones included: it is cut.
        """
        if max_tokens < 3:
            raise UserError(f"max_tokens is {max_tokens}", remedy="3 or more: cls, a token, sep")
        length = self.lengths(indices, max_tokens)
        ends = np.cumsum(length)
        out = np.empty(int(ends[-1]) if len(ends) else 0, np.int64)
        out[ranges(ends - length + 1, length - 2)] = self.ids[
            ranges(self.offsets[indices], length - 2)
        ]
        out[ends - length] = cls_id
        out[ends - 1] = sep_id
        return out


@dataclass(frozen=True)
class TokenTable:
    """The tokens of a collection's queries and passages, by their indices there."""

    queries: Tokens
    passages: Tokens
    unknown_share: float  # of all tokens
    digest: str

    @classmethod
    def load(cls, folder: Path) -> TokenTable:
        """The table that `write_table` wrote, left on disk until it is touched."""
        about = json.loads((folder / "tokens.json").read_text(encoding="utf-8"))
        parts = {
            name: Tokens(*(_mapped(folder, f"{name}_{part}") for part in ("ids", "offsets")))
            for name in _PARTS
        }
        return cls(**parts, unknown_share=about["unknown_share"], digest=about["digest"])


def write_table(folder: Path, collection: Collection, tokenizer: Tokenizer) -> None:
    """Tokenise `collection` and write the table; the tokenizer is left as it is.

    Raises `UserError` where more than one token in twenty is unknown.
    """
    own = Tokenizer.from_str(tokenizer.to_str())  # truncation is a state of the object
    own.no_padding()
    own.enable_truncation(MAX_IDS)
    unknown_id = _unknown_id(own)
    found: dict[str, np.ndarray] = {}
    unknown = total = 0
    for name in _PARTS:
        tokens = tokenise(own, getattr(collection, name))
        found |= {f"{name}_ids": tokens.ids, f"{name}_offsets": tokens.offsets}
        total += len(tokens.ids)
        unknown += 0 if unknown_id is None else int((tokens.ids == unknown_id).sum())
    share = unknown / max(total, 1)
    if share > MAX_UNKNOWN:
        raise UserError(
            f"{share:.1%} of the tokens of {collection.name} are unknown to this vocabulary",
            remedy=f"build vocabulary and weights from its text, `repro pretrain --dataset "
            f"{collection.name}`, or name a model for the language {collection.language!r}",
        )
    arrays.save(folder, found)
    cut = sum(int((np.diff(found[f"{name}_offsets"]) == MAX_IDS).sum()) for name in _PARTS)
    about: dict[str, Any] = {"unknown_share": share, "tokens": total, "texts_cut": cut}
    about |= {"digest": arrays.digest(found)}
    (folder / "tokens.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


def tokenise(tokenizer: Tokenizer, texts: Sequence[str]) -> Tokens:
    """`texts` as ids without special tokens, under the tokenizer's own truncation."""
    parts = [np.empty(0, np.int32)]
    lengths: list[int] = []
    for start in range(0, len(texts), BATCH):
        batch = list(texts[start : start + BATCH])
        rows = [one.ids for one in tokenizer.encode_batch_fast(batch, add_special_tokens=False)]
        lengths += [len(row) for row in rows]
        parts.append(np.fromiter((each for row in rows for each in row), np.int32))
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return Tokens(np.concatenate(parts), offsets)


def ranges(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """int64 [sum of lengths]: start, start + 1, ..., of each length, one after another."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total) + np.repeat(np.asarray(starts) - (ends - lengths), lengths)


def _mapped(folder: Path, name: str) -> np.ndarray:
    """A plain view of the map: numpy indexes it several times as fast as its memmap class."""
    return np.asarray(arrays.load(folder, name, mapped=True))


def _unknown_id(tokenizer: Tokenizer) -> int | None:
    model = json.loads(tokenizer.to_str())["model"]
    if model.get("unk_token") is not None:
        return tokenizer.token_to_id(model["unk_token"])
    return model.get("unk_id")
