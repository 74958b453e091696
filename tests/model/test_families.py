"""Each family of encoders, tiny and random, with its own kind of tokenizer.

Pins: a text's vector is the one that transformers gives for the text itself (ids, frame, cut, positions,
types, masks); counts and FLOPs against an independent count; the longest text that a network reads;
dropout everywhere; chunked gradients exact; a cell of a grid trains.  Others are refused by name.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from families import FAMILIES, write_family
from repro.app import refuse
from repro.app.study import Study
from repro.errors import UserError
from repro.model import packed, pretrained
from repro.model.chunk import Chunk
from repro.model.encoder import Encoder, EncoderParams, build, encode, size
from repro.model.infonce import backward, infonce, same_dropout
from repro.model.pretrained import Pretrained
from repro.work.makers import Makers

each_family = pytest.mark.parametrize("name", FAMILIES)
N = 12  # texts that are compared


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("families")
    return {name: write_family(root / name, name) for name in FAMILIES}


@pytest.fixture(scope="module")
def study(
    folders: dict[str, Path], study_file: Path, tmp_path_factory: pytest.TempPathFactory
) -> Study:
    """One study whose models are one of each family."""
    profile = json.loads(study_file.read_text())
    profile["models"] = {
        name: {"weights": str(folder), "lr": 1e-3} for name, folder in folders.items()
    }
    profile["grid"] = {"models": list(folders), "sizes": [160]}
    profile["encoder"] |= {"dropout": 0.0}
    profile["curve"] |= {"max_steps": 80, "least_passes": 8}
    file = study_file.with_name("families.yaml")
    file.write_text(json.dumps(profile))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REPRO_HOME", str(tmp_path_factory.mktemp("home")))
        opened = Study(file)
        assert len(opened.planned()) == len(FAMILIES)
        return opened


def of(study: Study, name: str) -> Pretrained:
    return study.runs.source(study.profile.models[name].weights)


def made(study: Study, name: str, **other: Any) -> Encoder:
    return build(of(study, name), EncoderParams(projection=16, **other), seed=1)


def chunks_of(study: Study, name: str) -> list[Chunk]:
    """Chunks over the first queries and passages, those of 32 tokens cut."""
    texts = study.runs.texts(study.profile.models[name].weights)
    return texts.chunks(np.arange(N), np.arange(N))


@each_family
@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_vectors_are_those_of_transformers_on_the_texts(
    study: Study, name: str, pooling: str
) -> None:
    from transformers import AutoModel, AutoTokenizer

    source = of(study, name)
    encoder = made(study, name, pooling=pooling)
    found = encode(encoder, chunks_of(study, name), 2 * N)
    plain = AutoModel.from_pretrained(source.folder, dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(source.folder)
    collection = study.dataset.collection
    lengths = []
    for texts, most, rows in (
        (list(collection.queries[:N]), 16, found[:N]),
        (list(collection.passages[:N]), 32, found[N:]),
    ):
        batch = tokenizer(
            texts, padding=True, truncation=True, max_length=most, return_tensors="pt"
        )
        batch.pop("token_type_ids", None)
        with torch.inference_mode():
            states = plain(**batch).last_hidden_state
            mask = batch["attention_mask"][..., None].float()
            pooled = states[:, 0] if pooling == "cls" else (states * mask).sum(1) / mask.sum(1)
            expected = encoder.projection(pooled)
        np.testing.assert_allclose(rows, expected.numpy(), rtol=0, atol=2e-6)
        lengths += mask.sum((1, 2)).tolist()
    assert min(lengths) < max(lengths) == 32  # some are padded, some are cut
    assert np.abs(found - found.mean(0)).max() > 0.01


@each_family
def test_only_bert_takes_the_fast_way(study: Study, name: str) -> None:
    assert packed.supports(made(study, name).backbone) == (name == "bert")


@each_family
def test_counts_are_those_of_the_whole_network(study: Study, name: str) -> None:
    from transformers import AutoModel

    source = of(study, name)
    whole = dict(AutoModel.from_config(source.config).named_parameters())
    pooler = sum(p.numel() for name, p in whole.items() if name.startswith("pooler."))
    inside = sum(
        p.numel()
        for name, p in whole.items()
        if not name.startswith("pooler.") and "embedding" not in name
    )
    counts = size(source, projection=16)
    assert counts.total == sum(p.numel() for p in whole.values())
    assert (counts.encoder, counts.encoder_pooler) == (inside, inside + pooler)
    assert counts.drscale == inside + pooler + 32 * 16 + 16
    assert (pooler > 0) == (name not in ("modernbert", "distilbert", "electra"))
    of_a_layer = 4 * (32 * 32 + 32) + 2 * (32 * 48) + 48 + 32 + 2 * 2 * 32
    by_hand = {
        "modernbert": 4 * (4 * 32 * 32 + 3 * 32 * 48 + 2 * 32),  # two gated, no bias; the first
        # layer has no norm before attention, but one stands behind the last
        "mpnet": 2 * of_a_layer + 32 * 2,  # a bias of attention by distance and head
    }
    assert counts.encoder == by_hand.get(name, 2 * of_a_layer)


@each_family
@pytest.mark.parametrize("length", [5, 40])
def test_flop_is_that_of_the_matrix_products(study: Study, name: str, length: int) -> None:
    """Counted by torch in a forward pass with eager attention: its matrices, and attention."""
    from transformers import AutoModel

    source = of(study, name)
    whole = AutoModel.from_config(source.config, attn_implementation="eager").eval()
    if hasattr(whole, "pooler"):
        whole.pooler = None
    ids = torch.full((1, length), 5)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        whole(input_ids=ids, attention_mask=torch.ones_like(ids))
    counted = counter.get_total_flops()
    counts = size(source, projection=16)
    inside = {n: p for n, p in whole.named_parameters() if "embedding" not in n}
    vectors = sum(p.numel() for p in inside.values() if p.ndim == 1)
    vectors += sum(p.numel() for n, p in inside.items() if "relative_attention_bias" in n)
    ours = counts.encode_flop(np.array([length])) - 2 * length * vectors
    if name == "electra":
        ours += 2 * length * 16 * 32  # from the width of its embeddings, which are not counted
    if name == "modernbert":
        near = sum(abs(i - j) <= 4 for i in range(length) for j in range(length))
        ours += 2 * 4 * 32 * (length**2 - near)  # two local layers, which torch computes whole
        assert (near < length**2) == (length == 40)
        assert (counts.local_layers, counts.reach) == (2, 4)
    assert ours == counted


@each_family
def test_the_longest_text_is_read_and_one_more_token_is_not(study: Study, name: str) -> None:
    source = of(study, name)
    assert source.max_tokens == 64
    network = pretrained.backbone(source).eval()

    def read(length: int) -> Tensor:
        ids = torch.full((1, length), 7)
        with torch.inference_mode():
            states: Tensor = network(input_ids=ids, attention_mask=torch.ones_like(ids))[0]
        return states

    assert read(64).shape == (1, 64, 32)
    if name != "modernbert":  # its positions are angles; the limit is that of its training
        with pytest.raises((IndexError, RuntimeError)):
            read(65)


@each_family
def test_dropout_is_set_wherever_the_family_has_it(study: Study, name: str) -> None:
    source = of(study, name)
    network = pretrained.backbone(source, dropout=0.25)
    rates = {module.p for module in network.modules() if isinstance(module, torch.nn.Dropout)}
    functional = {
        module.attention_dropout
        for module in network.modules()
        if isinstance(getattr(module, "attention_dropout", None), float)
    }
    assert rates == {0.25}
    assert functional <= {0.25}
    ids = torch.arange(5, 21)[None]

    def once(dropout: float) -> Tensor:
        states: Tensor = pretrained.backbone(source, dropout=dropout)(input_ids=ids)[0]
        return states

    assert torch.equal(once(0.0), once(0.0))
    assert not torch.equal(once(0.25), once(0.25))


@each_family
@pytest.mark.parametrize("dropout", [0.0, 0.2])
def test_chunked_gradients_are_exact(study: Study, name: str, dropout: float) -> None:
    encoder = made(study, name, dropout=dropout, scoring="cosine").double()
    chunks = chunks_of(study, name)
    assert len(chunks) > 2
    order = torch.from_numpy(np.concatenate([chunk.rows for chunk in chunks]))

    def loss(vectors: Tensor) -> Tensor:
        scores = encoder.scale() * vectors[:N] @ vectors[N:].T
        return infonce(scores, torch.arange(N), torch.ones(N, N, dtype=torch.bool)).mean()

    def gradients(cached: bool) -> tuple[float, dict[str, Tensor]]:
        encoder.zero_grad()
        embed = same_dropout(lambda i: encoder(chunks[i]), 3, torch.device("cpu"))
        value = float(backward(embed, len(chunks), order, loss, cached=cached))
        return value, {
            n: p.grad.clone() for n, p in encoder.named_parameters() if p.grad is not None
        }

    (whole, full), (in_parts, chunked) = gradients(False), gradients(True)
    assert whole == pytest.approx(in_parts, abs=1e-12)
    assert full.keys() == chunked.keys()
    assert len(full) > 20
    for weight, gradient in full.items():
        torch.testing.assert_close(chunked[weight], gradient, rtol=0, atol=1e-10)


@pytest.mark.slow
@each_family
def test_a_cell_of_a_grid_trains(study: Study, name: str, tmp_path: Path) -> None:
    run = next(run for run in study.planned() if run.model == name)
    Makers(study.store, "cpu").make(run.train, tmp_path, lambda flop, note: None)
    summary = json.loads((tmp_path / "summary.json").read_text())
    loss = pd.read_parquet(tmp_path / "curve.parquet")["train_loss"]
    assert loss.iloc[-2:].mean() < loss.iloc[:2].mean() - 0.2
    assert summary["state"] in ("turned", "plateau", "censored")
    counts = size(of(study, name), study.profile.encoder.projection)
    assert summary["n_encoder"] == counts.encoder


def test_texts_longer_than_a_family_reads_are_refused(study: Study) -> None:
    texts = study.profile.texts.model_copy(update={"passage_tokens": 65})
    other = study.changed("long", profile=study.profile.model_copy(update={"texts": texts}))
    with pytest.raises(UserError, match="reads 64 tokens at the most"):
        refuse.models(other)


@pytest.mark.parametrize(
    ("model_type", "shape", "says"),
    [
        ("gpt2", {"n_embd": 16, "n_layer": 1, "n_head": 2}, "no family whose"),
        ("t5", {"d_model": 16, "num_layers": 1, "num_heads": 2, "d_ff": 16}, "no family whose"),
        ("bert", {"is_decoder": True}, "left to right"),
        ("albert", {"hidden_size": 16, "num_attention_heads": 2}, "no family whose"),
    ],
)
def test_what_is_no_encoder_of_ours_is_refused_by_name(
    folders: dict[str, Path], tmp_path: Path, model_type: str, shape: dict[str, Any], says: str
) -> None:
    from transformers import AutoConfig

    AutoConfig.for_model(model_type, **shape).save_pretrained(tmp_path)
    (tmp_path / "vocab.txt").write_bytes((folders["bert"] / "vocab.txt").read_bytes())
    config = {"tokenizer_class": "BertTokenizer"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    with pytest.raises(UserError, match=says) as caught:
        pretrained.load(str(tmp_path), untrained=True)
    assert f"model_type {model_type}" in str(caught.value)
    assert "modernbert" in caught.value.remedy


def test_a_tokenizer_that_frames_texts_otherwise_is_refused(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    import shutil

    shutil.copytree(folders["modernbert"], tmp_path, dirs_exist_ok=True)
    file = tmp_path / "tokenizer.json"
    about = json.loads(file.read_text("utf-8"))
    about["post_processor"]["single"] = about["post_processor"]["single"][:2]  # no [SEP]
    file.write_text(json.dumps(about), "utf-8")
    with pytest.raises(UserError, match="frames a text by"):
        pretrained.load(str(tmp_path))


def test_a_configuration_without_model_type_is_berts(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    """As of the first repositories; the name of the folder must not decide, as it once did."""
    import shutil

    folder = tmp_path / "albert-and-roberta"
    shutil.copytree(folders["bert"], folder)
    config = json.loads((folder / "config.json").read_text())
    for name in ("model_type", "architectures", "transformers_version"):
        config.pop(name, None)
    (folder / "config.json").write_text(json.dumps(config))
    source = pretrained.load(str(folder))
    assert source.config.model_type == "bert"
    ids = torch.arange(5, 21)[None]
    states = [
        pretrained.backbone(each, dropout=0.0)(input_ids=ids)[0]
        for each in (source, pretrained.load(str(folders["bert"])))
    ]
    assert torch.equal(*states)
