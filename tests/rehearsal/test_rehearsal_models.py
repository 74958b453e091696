"""The models of the rehearsal: every named shape, cut in width, under the names and in the files of the hub.

Pins that their sizes keep the order of the real ones, that each way of storing weights loads and fills
the network, that the vocabulary knows the text, and that the models which write labels write words.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from rehearsal import hub, models, writers
from rehearsal.content import Plan, make
from rehearsal.language import COMMON
from rehearsal.models import Shape
from repro.model import pretrained, shapes
from repro.model.encoder import size
from repro.model.generator import Generator

BY_NAME = {shape.name: shape for shape in models.shapes()}
OLD = BY_NAME["google/bert_uncased_L-2_H-512_A-8"]  # safetensors, gamma and beta
PICKLED = BY_NAME["google/bert_uncased_L-4_H-128_A-2"]
ERNIE = BY_NAME["nghuyong/ernie-3.0-nano-zh"]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REPRO_HOME", str(tmp_path / "home"))
    return tmp_path


def laid_out(folder: Path, shape: Shape) -> Path:
    models.repository(folder / shape.name, shape, 1)
    return folder / shape.name


def test_every_named_shape_is_there_in_its_order() -> None:
    for kind, count in (("bert_uncased", 24), ("ernie-3.0", 6), ("multiberts-seed_0-step", 29)):
        names = [name for name in BY_NAME if kind in name]
        assert len(names) == count
        assert set(names) <= set(shapes.known())
    real = {name: shapes.declared_size(name).encoder for name in BY_NAME if "multi" not in name}
    inside = {name: 12 * BY_NAME[name].cut ** 2 + 13 * BY_NAME[name].cut for name in real}
    cut = {name: BY_NAME[name].layers * inside[name] for name in real}
    for family in ("google", "nghuyong"):
        mine = [name for name in real if name.startswith(family)]
        assert sorted(mine, key=cut.__getitem__) == sorted(mine, key=real.__getitem__)


def test_the_shape_is_that_of_the_hub_but_for_the_width(tmp_path: Path) -> None:
    for shape in (OLD, PICKLED, ERNIE):
        config = json.loads((laid_out(tmp_path, shape) / "config.json").read_text())
        real = shapes.declared_config(shape.name)
        for key in ("num_hidden_layers", "num_attention_heads", "max_position_embeddings",
                    "type_vocab_size", "model_type"):  # fmt: skip
            assert config[key] == getattr(real, key)
        assert config["intermediate_size"] == 4 * config["hidden_size"] < real.intermediate_size
        assert real.hidden_size == shape.width


@pytest.mark.parametrize("shape", [OLD, PICKLED, ERNIE], ids=lambda shape: shape.name)
def test_each_way_of_storing_weights_fills_the_network(shape: Shape, tmp_path: Path) -> None:
    folder = laid_out(tmp_path, shape)
    assert (folder / "pytorch_model.bin").is_file() == shape.pickled
    assert (folder / "model.safetensors").is_file() != shape.pickled
    if shape.pickled:
        stored = torch.load(folder / "pytorch_model.bin", weights_only=True)
    else:
        from safetensors.torch import load_file

        stored = load_file(folder / "model.safetensors")
    assert any(name.endswith("gamma") for name in stored) == shape.old
    source = pretrained.load(str(folder))
    network = pretrained.backbone(source)
    key = "embeddings.word_embeddings.weight"
    assert torch.equal(network.state_dict()[key], stored[f"{shape.kind}.{key}"])
    last = f"encoder.layer.{shape.layers - 1}.output.dense.weight"
    assert torch.equal(network.state_dict()[last], stored[f"{shape.kind}.{last}"])
    assert size(source, 768).encoder == sum(
        tensor.numel()
        for name, tensor in stored.items()
        if name.startswith(f"{shape.kind}.encoder.")
    )


@pytest.mark.parametrize(("shape", "language"), [(OLD, "en"), (ERNIE, "zh")])
def test_the_vocabulary_knows_the_text(shape: Shape, language: str, tmp_path: Path) -> None:
    source = pretrained.load(str(laid_out(tmp_path, shape)))
    content = make(Plan(language, 80, {"train": 60}), 1, "x")
    texts = [text for _, _, text in content.passages]
    ids = [i for one in source.tokenizer.encode_batch(texts) for i in one.ids]
    assert ids.count(source.unk_id) / len(ids) < 0.01
    assert source.max_tokens == (2048 if language == "zh" else 512)


def test_weights_are_the_same_every_time(tmp_path: Path) -> None:
    for shape in (OLD, PICKLED):
        first, second = (laid_out(tmp_path / name, shape) for name in "ab")
        for file in first.iterdir():
            assert file.read_bytes() == (second / file.name).read_bytes(), file.name


@pytest.mark.parametrize("translates", [True, False])
def test_writers_write_words(translates: bool, tmp_path: Path) -> None:
    for name in ("model", "again"):
        (writers.t5 if translates else writers.chat)(tmp_path / name, 1)
    for file in (tmp_path / "model").iterdir():
        assert file.read_bytes() == (tmp_path / "again" / file.name).read_bytes(), file.name
    writer = Generator(str(tmp_path / "model"), translates=translates, device=torch.device("cpu"))
    prompts = ["the water of the old town", "a name for each small number"]
    prompts = prompts if translates else [writer.prompted(each) for each in prompts]
    options = {"each": 1, "max_tokens": 12, "top_k": 10, "temperature": 1.0, "seed": 3}
    found = writer.write(prompts, read_tokens=64 if translates else None, **options)
    words = [word for (text,) in found for word in text.split()]
    assert len(words) > 8
    assert sum(word in COMMON for word in words) > 0.8 * len(words)


def test_the_cache_is_what_the_library_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import snapshot_download

    laid_out(tmp_path / "made", PICKLED)
    commit = "0123456789" * 4
    for asked, revision in (([commit], commit), (["v1"], "v1"), ([], None)):
        folder = hub.cache(
            tmp_path / "made", tmp_path / f"cache{len(asked)}", {PICKLED.name: asked}
        )
        found = snapshot_download(
            PICKLED.name, revision=revision, cache_dir=folder, local_files_only=True
        )
        assert {path.name for path in Path(found).iterdir()} == {
            "config.json", "vocab.txt", "pytorch_model.bin",
        }  # fmt: skip


def test_a_repository_of_the_cache_is_read_in_silence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A progress bar on standard error would stand in every executed notebook."""
    from huggingface_hub import constants

    from repro.hub import open_repository

    laid_out(tmp_path / "made", PICKLED)
    cache = hub.cache(tmp_path / "made", tmp_path / "cache", {})
    monkeypatch.delenv("REPRO_HUB_MIRROR", raising=False)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
    repository = open_repository(PICKLED.name, None, "model")
    assert repository.files == ("config.json", "pytorch_model.bin", "vocab.txt")
    (file,) = repository.fetch(["config.json"])
    assert json.loads(file.read_text())["model_type"] == "bert"
    assert capfd.readouterr().err == ""
