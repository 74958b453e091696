"""Pins: how encoders are found by name, what a missing one says, float32, digests, Hugging Face
layout of the shipped micro-encoders, and that their log and README agree with their configuration."""

from __future__ import annotations

import csv
import json
import math
import re
import shutil
from pathlib import Path

import pytest
import torch

from repro.errors import UserError
from repro.model import files, pretrained

SHIPPED = files.names()
SMALLEST = SHIPPED[0]


def mean_state(network: torch.nn.Module, ids: list[int]) -> torch.Tensor:
    with torch.inference_mode():
        tokens = torch.tensor([ids])
        output = network.eval()(input_ids=tokens, attention_mask=torch.ones_like(tokens))
    return output.last_hidden_state.mean(dim=1)


def copy_of(name: str, folder: Path) -> Path:
    shutil.copytree(pretrained.load(name).folder, folder)
    return folder


def test_all_sizes_are_shipped_smallest_first() -> None:
    assert SHIPPED[:1] == ["micro/1x32"]
    sizes = ("1x32", "1x64", "2x64", "1x128", "2x128", "4x128")
    assert {f"micro/{size}" for size in sizes} <= set(SHIPPED)
    assert len([name for name in SHIPPED if name.startswith("micro/2x64")]) >= 5  # checkpoints


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_weights_are_small_finite_and_load_as_float32(name: str) -> None:
    source = pretrained.load(name)
    network = pretrained.backbone(source)
    weights = list(network.parameters())
    assert {weight.dtype for weight in weights} == {torch.float32}
    assert all(bool(torch.isfinite(weight).all()) for weight in weights)
    assert (
        max(float(weight.detach().abs().max()) for weight in weights) < 100
    )  # far from fp16's end
    assert network.config._attn_implementation == "sdpa"
    assert getattr(network, "pooler", None) is None


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_folders_load_with_plain_transformers(name: str) -> None:
    from transformers import AutoModel, AutoTokenizer

    source = pretrained.load(name)
    plain = AutoModel.from_pretrained(source.folder, dtype=torch.float32, add_pooling_layer=False)
    ids = AutoTokenizer.from_pretrained(source.folder)("List the network interfaces.")["input_ids"]
    assert ids == source.tokenizer.encode("List the network interfaces.").ids
    assert torch.equal(mean_state(plain, ids), mean_state(pretrained.backbone(source), ids))


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_size_is_layers_by_width_with_a_projection(name: str) -> None:
    source, head = pretrained.load(name), pretrained.head(pretrained.load(name))
    layers, width = (int(part) for part in re.findall(r"\d+", name)[:2])
    assert (source.config.num_hidden_layers, source.config.hidden_size) == (layers, width)
    assert source.config.num_attention_heads * 32 == width
    assert head is not None
    assert head["weight"].shape == (128, width)
    assert head["bias"].shape == (128,)
    assert {tensor.dtype for tensor in head.values()} == {torch.float32}
    assert 1 / math.exp(head["log_temperature"]) <= 100.0 + 1e-3


def test_shipped_sizes_share_one_vocabulary() -> None:
    assert len({pretrained.load(name).tokenizer_digest for name in SHIPPED}) == 1


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_log_and_readme_agree_with_the_configuration(name: str) -> None:
    source = pretrained.load(name)
    about = json.loads((source.folder / "pretraining.json").read_text("utf-8"))
    rows = list(csv.DictReader((source.folder / "log.csv").open(encoding="utf-8")))
    training = about["recipe"]["training"]
    _, *kept = source.folder.name.split("-")  # of a checkpoint: the step it was kept at
    steps = int(kept[0]) if kept else training["steps"]
    assert steps - training["log_every"] < int(rows[-1]["step"]) <= steps
    assert source.tokenizer.get_vocab_size() == source.config.vocab_size
    assert source.config.max_position_embeddings == about["recipe"]["shape"]["positions"]
    readme = (files.MICRO / "README.md").read_text("utf-8")
    line = next(line for line in readme.splitlines() if line.startswith(f"| {source.folder.name} "))
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    weights = sum(w.numel() for w in pretrained.backbone(source).parameters())
    assert cells[1] == f"{weights:,}"
    assert cells[2] == f"{steps:,}"
    entropy = rows[-1]["held_out_entropy"]
    assert (cells[3] == "") == (entropy == "")
    assert float(cells[3] or 0) == pytest.approx(float(entropy or 0), abs=0.006)


def test_tokenizer_round_trip_without_truncation_or_padding() -> None:
    tokenizer = pretrained.load(SMALLEST).tokenizer
    text = "returns the name of the virtual network " * 60
    encoded = tokenizer.encode(text)
    assert len(encoded.ids) > 400
    assert tokenizer.decode(encoded.ids).split() == text.split()
    assert tokenizer.padding is None
    assert tokenizer.truncation is None


def test_special_tokens_frame_a_text() -> None:
    source = pretrained.load(SMALLEST)
    ids = source.tokenizer.encode("a name").ids
    assert (ids[0], ids[-1]) == (source.cls_id, source.sep_id)
    assert source.tokenizer.encode("𓀀").ids[1] == source.unk_id
    assert source.max_tokens == source.config.max_position_embeddings


def test_a_folder_gives_the_same_as_the_name(tmp_path: Path) -> None:
    by_name = pretrained.load(SMALLEST)
    by_folder = pretrained.load(str(copy_of(SMALLEST, tmp_path / "copy")))
    assert (by_folder.digest, by_folder.tokenizer_digest) == (
        by_name.digest,
        by_name.tokenizer_digest,
    )


@pytest.mark.parametrize("keep", [0, 4, 200, -1])
def test_weights_that_are_cut_off_are_refused_by_name(tmp_path: Path, keep: int) -> None:
    folder = copy_of(SMALLEST, tmp_path / "copy")
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(UserError, match="safetensors cannot be read") as error:
        pretrained.load(str(folder))
    assert error.value.where == str(file)


def test_digest_follows_weights_and_head_but_not_the_log(tmp_path: Path) -> None:
    folder = copy_of(SMALLEST, tmp_path / "copy")
    before = pretrained.load(str(folder)).digest
    (folder / "log.csv").write_text("changed")
    assert pretrained.load(str(folder)).digest == before
    for name in ("model.safetensors", pretrained.HEAD):
        content = bytearray((folder / name).read_bytes())
        content[-1] ^= 1
        (folder / name).write_bytes(content)
        after = pretrained.load(str(folder)).digest
        assert after != before
        before = after


def test_dropout_is_set_and_random_control_is_seeded() -> None:
    source = pretrained.load(SMALLEST)
    rates = {
        m.p
        for m in pretrained.backbone(source, dropout=0.3).modules()
        if isinstance(m, torch.nn.Dropout)
    }
    assert rates == {0.3}
    state = torch.random.get_rng_state()
    first, again = (pretrained.backbone(source, random_seed=5) for _ in range(2))
    assert torch.equal(torch.random.get_rng_state(), state)  # nobody else's stream was moved
    trained = pretrained.backbone(source)
    weights = [n.get_input_embeddings().weight for n in (first, again, trained)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_vocab_txt_alone_is_a_tokenizer(tmp_path: Path) -> None:
    folder = copy_of(SMALLEST, tmp_path / "copy")
    pieces = json.loads((folder / "tokenizer.json").read_text("utf-8"))["model"]["vocab"]
    (folder / "tokenizer.json").unlink()
    (folder / "vocab.txt").write_text(
        "\n".join(sorted(pieces, key=pieces.__getitem__)) + "\n", "utf-8"
    )
    text = "Deletes the backup policy, if any."
    expected = pretrained.load(SMALLEST).tokenizer.encode(text).ids
    assert pretrained.load(str(folder)).tokenizer.encode(text).ids == expected


def test_a_bert_with_pooler_and_language_head_fills_the_backbone(tmp_path: Path) -> None:
    from transformers import BertConfig, BertForPreTraining

    folder = copy_of(SMALLEST, tmp_path / "copy")
    (folder / pretrained.HEAD).unlink()
    shape = pretrained.load(SMALLEST).config
    config = BertConfig(
        vocab_size=shape.vocab_size,
        hidden_size=48,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=96,
    )
    whole = BertForPreTraining(config)
    whole.save_pretrained(folder)
    source = pretrained.load(str(folder))
    assert pretrained.head(source) is None
    expected = mean_state(whole.bert, [2, 9, 8, 3])
    assert torch.equal(mean_state(pretrained.backbone(source, dropout=0.0), [2, 9, 8, 3]), expected)


@pytest.mark.parametrize(
    ("weights", "says"),
    [
        ("micro/2x65", "did you mean `micro/2x64`"),
        ("./no/such/folder", "no model folder"),
        ("/no/such/folder", "no model folder"),
        ("a/b/c", "no model folder"),
    ],
)
def test_a_missing_name_is_a_user_error(weights: str, says: str) -> None:
    with pytest.raises(UserError, match=re.escape(says)):
        pretrained.load(weights)


def test_a_hub_id_that_cannot_be_had_says_what_to_download(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(UserError) as caught:
        pretrained.load("org/name@v1")
    assert "hf download org/name --revision v1 --local-dir models/name" in str(caught.value)


@pytest.mark.parametrize(
    ("gone", "says"),
    [
        ("config.json", "has no config.json"),
        ("model.safetensors", "has no weights"),
        ("tokenizer.json", "has no tokenizer"),
    ],
)
def test_an_incomplete_folder_is_a_user_error(tmp_path: Path, gone: str, says: str) -> None:
    folder = copy_of(SMALLEST, tmp_path / "copy")
    (folder / gone).unlink()
    (folder / "tokenizer_config.json").unlink()
    with pytest.raises(UserError, match=says):
        pretrained.load(str(folder))


def test_weights_of_another_shape_are_a_user_error(tmp_path: Path) -> None:
    folder = copy_of(SMALLEST, tmp_path / "copy")
    config = json.loads((folder / "config.json").read_text("utf-8"))
    (folder / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 2}), "utf-8")
    with pytest.raises(UserError, match="empty"):
        pretrained.backbone(pretrained.load(str(folder)))


def test_code_beside_weights_is_not_run(tmp_path: Path) -> None:
    folder = copy_of(SMALLEST, tmp_path / "copy")
    (folder / "evil.py").write_text("raise SystemExit('it ran')\n")
    config = json.loads((folder / "config.json").read_text("utf-8"))
    config |= {"model_type": "evil", "auto_map": {"AutoConfig": "evil.Evil", "AutoModel": "evil.M"}}
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    with pytest.raises(UserError, match="cannot read"):
        pretrained.load(str(folder))
