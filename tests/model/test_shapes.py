"""Pins: the counts of known hub ids against published tables, without network, files or weights."""

from __future__ import annotations

import re

import pytest
import torch
import transformers
from test_encoder import MINIATURES

from repro.model import shapes
from repro.model.encoder import Size

# Layers, width -> encoder, encoder + pooler, DRScale's rule (projection 768): ERNIE 3.0 Chinese.
ERNIE = {
    "xbase": (20, 1024, 251_924_480, 252_974_080, 253_761_280),
    "base": (12, 768, 85_054_464, 85_645_056, 86_235_648),
    "medium": (6, 768, 42_527_232, 43_117_824, 43_708_416),
    "mini": (6, 384, 10_646_784, 10_794_624, 11_090_304),
    "micro": (4, 384, 7_097_856, 7_245_696, 7_541_376),
    "nano": (4, 312, 4_688_736, 4_786_392, 5_026_776),
}
# Parameters of a checkpoint without language head, as its publishers and libraries state them.
TOTALS = {
    "google-bert/bert-base-uncased": 109_482_240,
    "google-bert/bert-base-chinese": 102_267_648,
    "FacebookAI/roberta-base": 124_645_632,
    "FacebookAI/roberta-large": 355_359_744,
    "distilbert/distilbert-base-uncased": 66_362_880,
    "microsoft/mpnet-base": 109_486_464,
    "answerdotai/ModernBERT-base": 149_014_272,
}


def declared(hub_id: str) -> Size:
    found = shapes.declared_size(hub_id)
    assert found is not None
    return found


@pytest.mark.parametrize(("layers", "width"), MINIATURES)
def test_the_24_miniatures_by_their_ids(layers: int, width: int) -> None:
    for hub_id in (
        f"google/bert_uncased_L-{layers}_H-{width}_A-{width // 64}",
        f"gaunernst/bert-L{layers}-H{width}-uncased",
    ):
        size = declared(hub_id)
        counts = (size.encoder, size.encoder_pooler, size.drscale, size.total)
        assert counts == MINIATURES[layers, width]
        assert (size.layers, size.width) == (layers, width)


def test_there_are_24_miniatures_and_four_names() -> None:
    google = [each for each in shapes.known() if each.startswith("google/bert_uncased_L-")]
    assert len(google) == 24 == len(MINIATURES)
    for name, at in {
        "tiny": (2, 128),
        "mini": (4, 256),
        "small": (4, 512),
        "medium": (8, 512),
    }.items():
        assert declared(f"gaunernst/bert-{name}-uncased").total == MINIATURES[at][3]


@pytest.mark.parametrize("name", ERNIE)
def test_ernie_by_its_ids(name: str) -> None:
    layers, width, encoder, pooler, drscale = ERNIE[name]
    size = declared(f"nghuyong/ernie-3.0-{name}-zh")
    assert (size.layers, size.width) == (layers, width)
    assert (size.encoder, size.encoder_pooler, size.drscale) == (encoder, pooler, drscale)
    task_types = 3 if name == "base" else 16
    rows = 40_000 + 2048 + 4 + task_types + 2  # words, positions, types, task types, the norm
    assert size.total == pooler + rows * width


def test_multiberts_are_25_seeds_and_29_checkpoints_of_five() -> None:
    ids = [each for each in shapes.known() if each.startswith("google/multiberts-")]
    steps = [each for each in ids if "step" in each]
    assert (len(ids), len(steps)) == (25 + 145, 145)
    assert all(re.fullmatch(r"google/multiberts-seed_[0-4]-step_\d+k", each) for each in steps)
    assert {"google/multiberts-seed_0-step_0k", "google/multiberts-seed_4-step_2000k"} <= set(steps)
    assert "google/multiberts-seed_0-step_220k" not in steps
    for each in (ids[0], steps[-1]):
        assert declared(each).total == MINIATURES[12, 768][3]


@pytest.mark.parametrize("hub_id", TOTALS)
def test_totals_of_often_named_encoders(hub_id: str) -> None:
    assert declared(hub_id).total == TOTALS[hub_id]


def test_a_revision_is_ignored_and_a_stranger_is_none() -> None:
    pinned = "google/bert_uncased_L-2_H-128_A-2@30b0a37"
    assert shapes.declared_size(pinned) == declared(pinned.partition("@")[0])
    assert shapes.declared_size("org/name") is None
    assert shapes.declared_size("micro/2x64") is None


def test_the_width_of_the_projection_is_counted_in_one_rule_only() -> None:
    wide, narrow = (
        shapes.declared_size("google/bert_uncased_L-2_H-128_A-2", width) for width in (768, 128)
    )
    assert wide is not None
    assert narrow is not None
    assert wide.drscale - narrow.drscale == (768 - 128) * (128 + 1)
    assert (wide.encoder, wide.total) == (narrow.encoder, narrow.total)


def test_counting_takes_no_memory_and_leaves_torchs_generator() -> None:
    before = torch.random.get_rng_state()
    assert declared("nghuyong/ernie-3.0-xbase-zh").total > 290e6
    assert torch.equal(torch.random.get_rng_state(), before)


def test_writers_of_labels_have_the_parameters_of_their_configurations() -> None:
    configs = {
        "castorini/doc2query-t5-base-msmarco": transformers.T5Config(
            vocab_size=32_128, d_model=768, d_kv=64, d_ff=3072, num_layers=12, num_heads=12
        ),
        "Qwen/Qwen2.5-0.5B-Instruct": transformers.Qwen2Config(
            vocab_size=151_936, hidden_size=896, intermediate_size=4864, num_hidden_layers=24,
            num_attention_heads=14, num_key_value_heads=2, tie_word_embeddings=True,
        ),
    }  # fmt: skip
    kinds = (transformers.T5ForConditionalGeneration, transformers.Qwen2ForCausalLM)
    for (name, config), kind in zip(configs.items(), kinds, strict=True):
        with torch.device("meta"):
            model = kind(config)
        assert sum(each.numel() for each in model.parameters()) == shapes.WRITERS[name][0]
    assert set(configs) == set(shapes.WRITERS)
    assert shapes.writer_bytes("Qwen/Qwen2.5-0.5B-Instruct@abc") == 2 * 494_032_768
    assert shapes.writer_bytes("org/name") is None
