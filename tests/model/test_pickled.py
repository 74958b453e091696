"""Pins: pickled weights become safetensors once, beside the store, and give what they held; the folder
they came from is left alone; what is no plain file of tensors is refused, and never run."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from families import write_family
from repro import hub
from repro.errors import UserError
from repro.model import generator, pickled, pretrained

IDS = torch.arange(5, 25)[None]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REPRO_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A BERT as the hub's first repositories hold it: vocab.txt, config.json, pytorch_model.bin."""
    return write_family(tmp_path / "models" / "bert_uncased", "bert")


def old_names(folder: Path, **options: Any) -> dict[str, Tensor]:
    """Replace the safetensors by a pickle of a whole BERT of 2018; returns what it holds.

    With a prefix, gamma and beta, positions as a buffer, a pooler, and heads whose last layer is the
    embedding.  options: of torch.save; dtype: of the weights.
    """
    from transformers import BertConfig, BertForPreTraining

    dtype = options.pop("dtype", torch.float32)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(4)
        whole = BertForPreTraining(BertConfig.from_pretrained(folder))
        for weights in whole.parameters():
            weights.data.add_(0.02 * torch.randn_like(weights))
    state = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ): weights.to(dtype)
        for name, weights in whole.state_dict().items()
    }
    state["cls.predictions.decoder.weight"] = state["bert.embeddings.word_embeddings.weight"]
    state["bert.embeddings.position_ids"] = torch.arange(64)[None]
    assert "bert.encoder.layer.0.attention.output.LayerNorm.gamma" in state
    torch.save(state, folder / "pytorch_model.bin", **options)
    (folder / "model.safetensors").unlink()
    return state


def read(weights: Path) -> Tensor:
    network = pretrained.backbone(pretrained.load(str(weights)), dropout=0.0).eval()
    assert {p.dtype for p in network.parameters()} == {torch.float32}
    with torch.inference_mode():
        states: Tensor = network(input_ids=IDS, attention_mask=torch.ones_like(IDS))[0]
    return states


def contents(folder: Path) -> dict[str, tuple[int, int]]:
    return {p.name: (p.stat().st_size, p.stat().st_mtime_ns) for p in folder.iterdir()}


@pytest.mark.parametrize("zipped", [True, False], ids=["torch 1.6 on", "before"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_an_old_checkpoint_gives_its_weights_in_float32(
    folder: Path, home: Path, zipped: bool, dtype: torch.dtype
) -> None:
    state = old_names(folder, dtype=dtype, _use_new_zipfile_serialization=zipped)
    before = contents(folder)
    source = pretrained.load(str(folder))
    kinds = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16"}
    assert source.stored == (kinds[dtype],)
    network = pretrained.backbone(source)
    named = {f"bert.{name}": weights for name, weights in network.named_parameters()}
    assert len(named) == 5 + 2 * 16
    for name, weights in named.items():
        old = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        )
        assert weights.dtype == torch.float32
        assert torch.equal(weights, state[old].float())
    assert contents(folder) == before
    (converted,) = (home / "runs" / "converted").iterdir()
    assert {path.name for path in converted.iterdir()} == {"model.safetensors", "about.json"}
    about = json.loads((converted / "about.json").read_text())
    assert about["from"] == {"pytorch_model.bin": hub.file_sha256(folder / "pytorch_model.bin")}
    weights_of_it = (converted / "model.safetensors").stat().st_size
    assert weights_of_it < (folder / "pytorch_model.bin").stat().st_size + 20_000  # tied ones once


def test_it_is_converted_once_and_again_where_it_was_damaged(
    folder: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old_names(folder)
    expected, load, loads = read(folder), torch.load, []
    monkeypatch.setattr(torch, "load", lambda *a, **k: loads.append(a) or load(*a, **k))
    assert torch.equal(read(folder), expected)
    assert not loads
    (file,) = (home / "runs" / "converted").glob("*/model.safetensors")
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    assert torch.equal(read(folder), expected)
    assert len(loads) == 1
    shutil.copytree(folder, folder.with_name("elsewhere"))
    assert torch.equal(read(folder.with_name("elsewhere")), expected)
    assert len(loads) == 1  # the same file under another name


def test_the_digest_is_that_of_the_file_and_not_of_the_conversion(folder: Path, home: Path) -> None:
    old_names(folder)
    before = pretrained.load(str(folder)).digest
    shutil.rmtree(home)
    assert pretrained.load(str(folder)).digest == before
    torch.save({"bert.x": torch.zeros(1)}, folder / "pytorch_model.bin")
    assert pretrained.load(str(folder)).digest != before


def test_safetensors_go_first_and_nothing_is_converted(folder: Path, home: Path) -> None:
    expected = read(folder)
    (folder / "pytorch_model.bin").write_bytes(b"not looked at")
    assert torch.equal(read(folder), expected)
    assert not (home / "runs" / "converted").exists()


def test_parts_are_joined_and_a_missing_one_is_named(folder: Path) -> None:
    state = old_names(folder)
    (folder / "pytorch_model.bin").rename(folder / "all.bin")
    whole = folder.with_name("whole")
    shutil.copytree(folder, whole)
    (whole / "all.bin").rename(whole / "pytorch_model.bin")
    names = [f"pytorch_model-0000{i}-of-00002.bin" for i in (1, 2)]
    where = {key: names[i % 2] for i, key in enumerate(state)}
    for name in names:
        torch.save({k: v for k, v in state.items() if where[k] == name}, folder / name)
    index = {"metadata": {}, "weight_map": where}
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps(index))
    assert torch.equal(read(folder), read(whole))
    (folder / names[1]).unlink()
    with pytest.raises(UserError, match=f"{names[1]} is missing, one of 2 parts"):
        pretrained.load(str(folder))


class Evil:
    """Runs a command where it is read by pickle."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, (f"touch {self.path}",)


def _plain(content: Any, file: Path) -> None:
    file.write_bytes(pickle.dumps(content))


def _old(content: Any, file: Path) -> None:
    torch.save(content, file, _use_new_zipfile_serialization=False)


@pytest.mark.parametrize("write", [torch.save, _old, _plain], ids=["zip", "old", "plain pickle"])
@pytest.mark.parametrize("among", [True, False], ids=["among weights", "alone"])
def test_a_pickle_that_would_run_code_is_refused_and_not_run(
    folder: Path, tmp_path: Path, write: Callable[[Any, Path], None], among: bool
) -> None:
    mark, file = tmp_path / "it-ran", folder / "pytorch_model.bin"
    (folder / "model.safetensors").unlink()
    write({"w": torch.zeros(2), "evil": Evil(mark)} if among else Evil(mark), file)
    with pytest.raises(UserError) as caught:
        pretrained.load(str(folder))
    assert caught.value.where == str(file)
    assert "might run code" in str(caught.value)
    assert "safetensors" in caught.value.remedy
    assert "weights_only" not in str(caught.value)  # torch's advice to read it all the same
    assert not mark.exists()
    if write is not _old:
        with file.open("rb") as opened:  # the premise: read by a careless reader, it runs
            torch.load(opened, weights_only=False) if write is torch.save else pickle.load(opened)  # noqa: S301
        assert mark.exists()


@pytest.mark.parametrize(
    "content",
    [b"", b"PK\x03\x04 cut off", b"version https://git-lfs.github.com/spec/v1\n", b"<html></html>"],
    ids=["empty", "cut off", "pointer", "page"],
)
def test_what_is_no_pickle_is_refused_by_name(folder: Path, content: bytes) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(content)
    with pytest.raises(UserError, match=r"pytorch_model\.bin") as caught:
        pretrained.load(str(folder))
    assert caught.value.remedy


@pytest.mark.parametrize("keep", [100, -100])
def test_a_file_that_is_cut_off_is_refused(folder: Path, home: Path, keep: int) -> None:
    old_names(folder)
    file = folder / "pytorch_model.bin"
    file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(UserError, match=r"pytorch_model\.bin"):
        pretrained.load(str(folder))
    assert not (home / "runs" / "converted").exists()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ({"epoch": 3, "state_dict": {"w": torch.zeros(1)}}, "no named weights .but epoch"),
        ([torch.zeros(1)], "no named weights"),
        ({"w": torch.zeros(3, dtype=torch.int8)}, "w in pytorch_model.bin is .*int8: quantised"),
    ],
)
def test_other_contents_are_refused(folder: Path, content: Any, says: str) -> None:
    (folder / "model.safetensors").unlink()
    torch.save(content, folder / "pytorch_model.bin")
    with pytest.raises(UserError, match=says):
        pretrained.load(str(folder))


def test_quantised_safetensors_are_refused_too(folder: Path) -> None:
    from safetensors.torch import load_file, save_file

    state = load_file(folder / "model.safetensors")
    name = "encoder.layer.0.attention.self.query.weight"
    save_file({**state, name: state[name].to(torch.int8)}, folder / "model.safetensors")
    with pytest.raises(UserError, match=f"{name} in model.safetensors is I8: quantised"):
        pretrained.load(str(folder))


def test_weights_of_other_libraries_are_named(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "tf_model.h5")
    with pytest.raises(UserError, match=r"no weights that we read \(but tf_model\.h5"):
        pretrained.load(str(folder))


def test_other_pickles_are_not_taken_for_weights(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "training_args.bin")
    with pytest.raises(UserError, match="has no weights"):
        pretrained.load(str(folder))


def test_memory_that_is_shared_in_part_is_copied(tmp_path: Path) -> None:
    from safetensors.torch import load_file

    whole = torch.arange(12.0)
    torch.save({"a": whole[:6], "b": whole[4:], "c": whole[:6]}, tmp_path / "pytorch_model.bin")
    place = pickled.readable([tmp_path / "pytorch_model.bin"])
    found = load_file(place / "model.safetensors")
    assert found.keys() == {"a", "b"}
    assert torch.equal(found["b"], whole[4:])


def test_a_generator_writes_the_same_from_a_pickle(tmp_path: Path) -> None:
    from transformers import T5Config, T5ForConditionalGeneration

    folder = tmp_path / "t5"
    source = write_family(tmp_path / "words", "bert")
    shape = {"d_model": 16, "num_layers": 1, "num_heads": 2, "d_ff": 16, "d_kv": 8}
    config = T5Config(vocab_size=60, decoder_start_token_id=0, **shape)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = T5ForConditionalGeneration(config)
    network.save_pretrained(folder)
    pretrained.library().AutoTokenizer.from_pretrained(source).save_pretrained(folder)

    def written() -> list[list[str]]:
        made = generator.Generator(str(folder), translates=True, device=torch.device("cpu"))
        return made.write(
            ["ka lo mi", "zo te"], each=2, max_tokens=6, top_k=0, temperature=1.0,
            read_tokens=None, seed=1,
        )  # fmt: skip

    expected = written()
    torch.save(network.state_dict(), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    assert written() == expected
    assert any(text for each in expected for text in each)
