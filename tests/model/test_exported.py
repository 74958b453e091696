"""Pins: an exported folder gives, read by plain transformers and by sentence-transformers (where it is
installed, see benchmarks/peer.py), the vectors that our encoder gives; and it says what it cannot."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file

from families import FAMILIES, write_family
from repro.model import exported, pretrained
from repro.model.chunk import Chunk
from repro.model.encoder import Encoder, EncoderParams, build, encode
from repro.model.texts import TextParams
from repro.places import ROOT
from tiny import absent, pair_texts

TEXTS = [text for pair in pair_texts(6) for text in pair]
LENGTHS = TextParams(query_tokens=12, passage_tokens=24)
ABOUT = {"run": "0123abcd", "validation loss": "1.2345 nats"}


def made(folder: Path, family: str, **params: Any) -> tuple[Encoder, pretrained.Pretrained]:
    source = pretrained.load(str(write_family(folder / family, family)))
    return build(source, EncoderParams(projection=10, **params), seed=1), source


def vectors(encoder: Encoder, source: pretrained.Pretrained, most: int = 24) -> NDArray[np.float32]:
    """What our encoder gives for TEXTS, cut to `most` tokens."""
    bare = [
        source.tokenizer.encode(text, add_special_tokens=False).ids[: most - 2] for text in TEXTS
    ]
    ids = [np.array([source.cls_id, *each, source.sep_id]) for each in bare]
    lengths = np.array([len(each) for each in ids])
    rows = np.argsort(lengths, kind="stable")
    tokens = np.concatenate([ids[row] for row in rows])
    chunk = Chunk.of(rows, tokens, lengths[rows], source.pad_id, source.width)
    return encode(encoder, [chunk], len(TEXTS))


def by_hand(folder: Path) -> NDArray[np.float32]:
    """The vectors of TEXTS from the folder's files alone: its modules, one after another."""
    from transformers import AutoModel, AutoTokenizer

    def settings(name: str) -> Any:
        return json.loads((folder / name).read_text("utf-8"))

    kinds = [each["type"].rpartition(".")[2] for each in settings("modules.json")]
    most = settings("sentence_bert_config.json")["document_length"]
    batch = AutoTokenizer.from_pretrained(folder)(
        TEXTS, padding=True, truncation=True, max_length=most, return_tensors="pt"
    )
    network = AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
    with torch.inference_mode():
        states = network(**{k: batch[k] for k in ("input_ids", "attention_mask")})[0]
        mask = batch["attention_mask"][..., None]
        mean = settings("1_Pooling/config.json")["pooling_mode"] == "mean"
        out = (states * mask).sum(1) / mask.sum(1) if mean else states[:, 0]
        weights = load_file(folder / "2_Dense" / "model.safetensors")
        out = out @ weights["linear.weight"].T + weights["linear.bias"]
        if kinds[-1] == "Normalize":
            out = torch.nn.functional.normalize(out, dim=-1)
    assert kinds[:3] == ["Transformer", "Pooling", "Dense"]
    return out.numpy()


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("scoring", ["dot", "cosine"])
def test_the_files_alone_give_the_same_vectors(tmp_path: Path, family: str, scoring: str) -> None:
    pooling = "cls" if family == "roberta" else "mean"
    encoder, source = made(tmp_path, family, scoring=scoring, pooling=pooling)
    exported.export(tmp_path / "out", encoder, source, LENGTHS, ABOUT)
    ours = vectors(encoder, source)
    np.testing.assert_allclose(by_hand(tmp_path / "out"), ours, rtol=0, atol=1e-6)
    assert np.abs(vectors(encoder, source, 12) - ours).max() > 1e-3  # the length matters
    settings = json.loads((tmp_path / "out" / "config_sentence_transformers.json").read_text())
    assert settings["similarity_fn_name"] == scoring
    modes = {each.stat().st_mode for each in (tmp_path / "out").rglob("*") if each.is_file()}
    assert len(modes) == 1  # others read the weights too


def peer() -> Any:
    """sentence-transformers: installed, or in build/peer (benchmarks/peer.py puts it there)."""
    if str(ROOT / "build" / "peer") not in sys.path:
        sys.path.append(str(ROOT / "build" / "peer"))
    try:
        return importlib.import_module("sentence_transformers")
    except ImportError:
        absent("sentence-transformers is not there: python benchmarks/peer.py")


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("scoring", ["dot", "cosine"])
def test_sentence_transformers_gives_the_same_vectors(
    tmp_path: Path, family: str, scoring: str
) -> None:
    library = peer()
    encoder, source = made(tmp_path, family, scoring=scoring)
    exported.export(tmp_path / "out", encoder, source, LENGTHS, ABOUT)
    model = library.SentenceTransformer(str(tmp_path / "out"), device="cpu")
    assert model.max_seq_length == 24
    found = model.encode_document(TEXTS, batch_size=5)
    np.testing.assert_allclose(found, vectors(encoder, source), rtol=0, atol=1e-6)
    np.testing.assert_allclose(model.encode(TEXTS), found, rtol=0, atol=1e-6)
    queries = model.encode_query(TEXTS)
    np.testing.assert_allclose(queries, vectors(encoder, source, 12), rtol=0, atol=1e-6)
    assert np.abs(queries - found).max() > 1e-3
    scores = model.similarity(queries, found).numpy()
    np.testing.assert_allclose(scores, queries @ found.T, rtol=1e-5, atol=1e-5)


def test_readme_says_what_the_files_cannot(tmp_path: Path) -> None:
    encoder, _ = made(tmp_path, "bert", scoring="cosine", temperature=0.04)
    text = exported.readme(encoder, LENGTHS, ABOUT)
    assert "| run | 0123abcd |" in text
    assert "Queries are cut to 12 tokens by `encode_query` alone" in text
    assert "scores of 25 x cosine" in text
    assert "pooler" in text
    alike = LENGTHS.model_copy(update={"query_tokens": 24})
    assert "alone" not in exported.readme(encoder, alike, ABOUT)
    assert "model.encode_query(list_of_queries)" in text
    plain, _ = made(tmp_path, "modernbert", scoring="dot", scale=0.5)
    text = exported.readme(plain, LENGTHS, {})
    assert "scores of 0.5 x dot product" in text
    assert "pooler" not in text


def test_an_export_that_fails_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder, source = made(tmp_path, "bert")

    def fail(*_: Any) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(exported, "readme", fail)
    with pytest.raises(OSError, match="no space"):
        exported.export(tmp_path / "deep" / "out", encoder, source, LENGTHS, ABOUT)
    assert list((tmp_path / "deep").iterdir()) == []
