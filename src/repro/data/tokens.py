"""The token table: every text of a collection as ids, made once, memory-mapped."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from repro.data import arrays, tokenising
from repro.data.collection import Collection
from repro.data.text import words
from repro.errors import UserError

RULES = 1  # raise it when the table changes on purpose
MAX_IDS = 512  # ids kept of a text: more than any encoder here reads
MAX_UNKNOWN = 0.05  # a larger share of unknown tokens means the wrong vocabulary


TOKENS_A_WORD = 1.3  # of English under a vocabulary of 30,522 word pieces, about: for plans alone
_PARTS = ("queries", "passages")
_NAMES = [f"{part}_{array}" for part in _PARTS for array in ("ids", "offsets")]


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

    def cut(self, max_tokens: int) -> float:
        """The share of the texts that `flat` cuts."""
        return float((np.diff(self.offsets) > max_tokens - 2).mean()) if len(self) else 0.0

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

    Memory does not grow with the collection; an interrupted call goes on where it was
    (`repro.data.tokenising`).  Raises `UserError` where more than one token in twenty is unknown.
    """
    own = Tokenizer.from_str(tokenizer.to_str())  # truncation is a state of the object
    own.no_padding()
    own.enable_truncation(MAX_IDS)
    unknown_token = unknown_id(own)
    unknown = total = cut = 0
    for name in _PARTS:
        with (
            arrays.Writer(folder, f"{name}_ids", np.int32) as all_ids,
            arrays.Writer(folder, f"{name}_offsets", np.int64) as offsets,
        ):
            offsets.add([0])
            texts, title = getattr(collection, name), f"tokens of the {name} of {collection.name}"
            for ids, length in tokenising.shards(folder / "shards" / name, texts, own, title):
                offsets.add(all_ids.size + np.cumsum(length, dtype=np.int64))
                all_ids.add(ids)
                cut += int((length == MAX_IDS).sum())
                unknown += 0 if unknown_token is None else int((ids == unknown_token).sum())
            total += all_ids.size
    share = unknown / max(total, 1)
    shutil.rmtree(folder / "shards")
    if share > MAX_UNKNOWN:
        raise UserError(
            f"{share:.1%} of the tokens of {collection.name} are unknown to this vocabulary",
            remedy=other_models(collection.name, collection.language),
        )
    about: dict[str, Any] = {"unknown_share": share, "tokens": total, "texts_cut": cut}
    about |= {"digest": arrays.file_digest(folder, _NAMES)}
    (folder / "tokens.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


def other_models(name: str, language: str) -> str:
    """What to do where a vocabulary does not know the text of the dataset `name`."""
    return (
        f"build vocabulary and weights from its text, `repro pretrain --dataset {name}` (its name or "
        f"file), or name a model for the language {language!r} under `models:` in the profile"
    )


def tokenise(tokenizer: Tokenizer, texts: Sequence[str]) -> Tokens:
    """`texts` as ids without special tokens, under the tokenizer's own truncation."""
    ids, length = tokenising.encode(tokenizer, texts)
    return Tokens(ids, np.concatenate([[0], np.cumsum(length, dtype=np.int64)]))


def by_words(collection: Collection) -> TokenTable:
    """The lengths that the texts of `collection` have at 1.3 tokens a word, and no ids: for plans."""
    parts = {}
    for name in _PARTS:
        counts = np.array([len(words(text)) for text in getattr(collection, name)], float)
        lengths = np.clip(np.rint(TOKENS_A_WORD * counts), 1, MAX_IDS).astype(np.int64)
        parts[name] = Tokens(np.empty(0, np.int32), np.concatenate([[0], np.cumsum(lengths)]))
    return TokenTable(**parts, unknown_share=0.0, digest=f"words of {collection.digest}")


def ranges(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """int64 [sum of lengths]: start, start + 1, ..., of each length, one after another."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total) + np.repeat(np.asarray(starts) - (ends - lengths), lengths)


def _mapped(folder: Path, name: str) -> np.ndarray:
    """A plain view of the map: numpy indexes it several times as fast as its memmap class."""
    return np.asarray(arrays.load(folder, name, mapped=True))


def unknown_id(tokenizer: Tokenizer) -> int | None:
    """The id of the token that stands for all that the vocabulary does not know, if there is one."""
    model = json.loads(tokenizer.to_str())["model"]
    if model.get("unk_token") is not None:
        return tokenizer.token_to_id(model["unk_token"])
    return model.get("unk_id")
