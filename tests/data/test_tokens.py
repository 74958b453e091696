"""Pins: the table holds what the tokenizer gives, batches are padded right, strange text is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from made import collect, word_tokenizer
from tokenizers import Tokenizer

from repro.data import tokenising, tokens
from repro.data.collection import Collection
from repro.data.dataset import Dataset
from repro.data.text import words
from repro.data.tokens import Tokens, TokenTable, tokenise, write_table
from repro.errors import UserError
from repro.store import Store

CLS, SEP, PAD = 2, 3, 0


@pytest.fixture(scope="module")
def some(apidocs: Dataset) -> Collection:
    """The first pairs of the embedded collection."""
    first = np.arange(len(apidocs.collection.passages)) < 3000
    return apidocs.collection.keep(first, first, {})


@pytest.fixture(scope="module")
def tokenizer(some: Collection) -> Tokenizer:
    """Knows the words of the queries whole, all others by their letters."""
    letters = sorted({letter for text in some.passages for letter in text.lower()})
    whole = [word for text in some.queries for word in words(text)]
    return word_tokenizer([*letters, *(f"##{letter}" for letter in letters), *whole])


@pytest.fixture(scope="module")
def table(
    some: Collection, tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory
) -> TokenTable:
    folder = tmp_path_factory.mktemp("tokens")
    write_table(folder, some, tokenizer)
    return TokenTable.load(folder)


def test_the_table_equals_direct_tokenisation(
    some: Collection, tokenizer: Tokenizer, table: TokenTable
) -> None:
    for part, texts in ((table.queries, some.queries), (table.passages, some.passages)):
        assert len(part) == len(texts)
        for index in [*range(0, len(texts), 97), len(texts) - 1]:
            ids = part.ids[part.offsets[index] : part.offsets[index + 1]]
            direct = tokenizer.encode(texts[index], add_special_tokens=False).ids
            assert ids.tolist() == direct[: tokens.MAX_IDS]


def test_the_table_is_mapped_and_its_unknown_share_small(table: TokenTable) -> None:
    assert isinstance(table.passages.ids.base, np.memmap)
    assert table.passages.ids.dtype == np.int32
    assert table.passages.offsets.dtype == np.int64
    assert 0 <= table.unknown_share < tokens.MAX_UNKNOWN


def test_the_callers_tokenizer_is_left_as_it_is(tmp_path: Path) -> None:
    own = word_tokenizer(["a", "b"])
    own.enable_truncation(1)
    own.enable_padding(length=7)
    before = own.to_str()
    write_table(tmp_path, collect([("a b a", "b a")]), own)
    assert own.to_str() == before
    assert TokenTable.load(tmp_path).queries.ids.tolist() == [4, 5, 4]


def test_long_texts_are_cut_at_the_stated_length(tmp_path: Path) -> None:
    write_table(tmp_path, collect([("a", "b " * 700)]), word_tokenizer(["a", "b"]))
    assert TokenTable.load(tmp_path).passages.offsets.tolist() == [0, 512]
    assert '"texts_cut": 1' in (tmp_path / "tokens.json").read_text()


def test_batches_of_texts_give_the_same_table(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["a b", "", "b", "a a a", "b b"]
    whole = tokenise(word_tokenizer(["a", "b"]), texts)
    monkeypatch.setattr(tokenising, "BATCH", 2)
    parts = tokenise(word_tokenizer(["a", "b"]), texts)
    assert whole.ids.tolist() == parts.ids.tolist() == [4, 5, 5, 4, 4, 4, 5, 5]
    assert whole.offsets.tolist() == parts.offsets.tolist() == [0, 2, 2, 3, 6, 8]


def test_texts_stand_one_after_another_between_their_special_tokens() -> None:
    three = Tokens(np.array([11, 12, 13, 21, 31, 32], np.int32), np.array([0, 3, 4, 4, 6]))
    ids = three.flat(np.array([1, 0, 2]), 10, CLS, SEP)
    assert ids.tolist() == [2, 21, 3, 2, 11, 12, 13, 3, 2, 3]
    assert ids.dtype == np.int64
    assert three.lengths(np.array([1, 0, 2]), 10).tolist() == [3, 5, 2]
    assert [three.cut(most) for most in (5, 4, 3)] == [0, 1 / 4, 2 / 4]  # of texts of 3, 1, 0, 2


def test_a_text_is_cut_at_max_tokens_and_keeps_its_end() -> None:
    two = Tokens(np.array([11, 12, 13, 21], np.int32), np.array([0, 3, 4]))
    assert two.flat(np.array([0, 1]), 4, CLS, SEP).tolist() == [2, 11, 12, 3, 2, 21, 3]
    assert two.lengths(np.array([0, 1]), 4).tolist() == [4, 3]
    with pytest.raises(UserError, match="max_tokens is 2"):
        two.flat(np.array([0]), 2, CLS, SEP)


def test_no_texts_have_no_tokens() -> None:
    one = Tokens(np.array([1], np.int32), np.array([0, 1]))
    assert one.flat(np.array([], int), 8, CLS, SEP).shape == (0,)


def test_text_that_the_vocabulary_does_not_know_is_refused(tmp_path: Path) -> None:
    twenty = " ".join("a" * 19)
    write_table(
        tmp_path / "just", collect([(f"{twenty} 三", f"{twenty} 四")]), word_tokenizer(["a"])
    )
    assert TokenTable.load(tmp_path / "just").unknown_share == pytest.approx(0.05)
    with pytest.raises(UserError, match=r"53\.\d% of the tokens of small are unknown") as caught:
        write_table(
            tmp_path, collect([("开发 a", f"{'a ' * 6} 开发三四五六")]), word_tokenizer(["a"])
        )
    assert "repro pretrain --dataset small" in caught.value.remedy


def test_the_digest_follows_the_ids(tmp_path: Path) -> None:
    digests = []
    for index, (text, vocabulary) in enumerate(
        [("b", "ab"), ("b", "ab"), ("a", "ab"), ("b", "ba")]
    ):
        write_table(tmp_path / str(index), collect([("a", text)]), word_tokenizer(list(vocabulary)))
        digests.append(TokenTable.load(tmp_path / str(index)).digest)
    assert digests[0] == digests[1]
    assert len(set(digests)) == 3


def test_another_tokenizer_has_another_place_in_the_store(apidocs: Dataset, tmp_path: Path) -> None:
    store = Store(tmp_path)
    small = Dataset(
        apidocs.params, collect([("a", "b")]), np.zeros(1, np.int32), apidocs.splits, {}, {}
    )
    small.tokens(store, word_tokenizer(["a", "b"]), "one")
    small.tokens(store, word_tokenizer(["b", "a"]), "two")
    small.tokens(store, word_tokenizer(["b", "a"]), "two")
    assert len(list((tmp_path / "tokens").glob("*/manifest.json"))) == 2
