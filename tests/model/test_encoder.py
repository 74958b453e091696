"""Parameter counts against the published table, pooling and scoring against a plain computation."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch
from transformers import BertConfig

from repro.app.study import Study
from repro.model import pretrained
from repro.model.encoder import Encoder, EncoderParams, Size, build, encode, restore, save, size
from repro.model.pretrained import Pretrained
from repro.model.texts import TextParams, Texts

# Layers/width -> encoder, encoder + pooler, DRScale's rule (projection 768), total with pooler:
# the 24 BERT miniatures (google-research/bert; arXiv 1908.08962).
MINIATURES = {
    (2, 128): (396_544, 413_056, 512_128, 4_385_920),
    (4, 128): (793_088, 809_600, 908_672, 4_782_464),
    (6, 128): (1_189_632, 1_206_144, 1_305_216, 5_179_008),
    (8, 128): (1_586_176, 1_602_688, 1_701_760, 5_575_552),
    (10, 128): (1_982_720, 1_999_232, 2_098_304, 5_972_096),
    (12, 128): (2_379_264, 2_395_776, 2_494_848, 6_368_640),
    (2, 256): (1_579_520, 1_645_312, 1_842_688, 9_591_040),
    (4, 256): (3_159_040, 3_224_832, 3_422_208, 11_170_560),
    (6, 256): (4_738_560, 4_804_352, 5_001_728, 12_750_080),
    (8, 256): (6_318_080, 6_383_872, 6_581_248, 14_329_600),
    (10, 256): (7_897_600, 7_963_392, 8_160_768, 15_909_120),
    (12, 256): (9_477_120, 9_542_912, 9_740_288, 17_488_640),
    (2, 512): (6_304_768, 6_567_424, 6_961_408, 22_458_880),
    (4, 512): (12_609_536, 12_872_192, 13_266_176, 28_763_648),
    (6, 512): (18_914_304, 19_176_960, 19_570_944, 35_068_416),
    (8, 512): (25_219_072, 25_481_728, 25_875_712, 41_373_184),
    (10, 512): (31_523_840, 31_786_496, 32_180_480, 47_677_952),
    (12, 512): (37_828_608, 38_091_264, 38_485_248, 53_982_720),
    (2, 768): (14_175_744, 14_766_336, 15_356_928, 38_603_520),
    (4, 768): (28_351_488, 28_942_080, 29_532_672, 52_779_264),
    (6, 768): (42_527_232, 43_117_824, 43_708_416, 66_955_008),
    (8, 768): (56_702_976, 57_293_568, 57_884_160, 81_130_752),
    (10, 768): (70_878_720, 71_469_312, 72_059_904, 95_306_496),
    (12, 768): (85_054_464, 85_645_056, 86_235_648, 109_482_240),
}


@pytest.mark.parametrize(("layers", "width"), MINIATURES)
def test_counts_of_the_24_miniatures_are_exact(layers: int, width: int) -> None:
    config = BertConfig(
        num_hidden_layers=layers,
        hidden_size=width,
        intermediate_size=4 * width,
        num_attention_heads=width // 64,
    )
    source = cast(Pretrained, SimpleNamespace(config=config, name="miniature", width=width))
    counts = size(source, projection=768)
    found = (counts.encoder, counts.encoder_pooler, counts.drscale, counts.total)
    assert found == MINIATURES[layers, width]
    assert counts.encoder == layers * (12 * width**2 + 13 * width)


def test_drscale_counts_in_mebi_are_the_published_sizes() -> None:
    assert MINIATURES[2, 128][2] / 2**20 == pytest.approx(0.488, abs=5e-4)
    assert MINIATURES[12, 768][2] / 2**20 == pytest.approx(82.241, abs=5e-4)


def test_flop_is_six_a_parameter_and_token_plus_attention() -> None:
    counts = Size(1000, 0, 0, 0, layers=2, width=10)
    lengths = np.array([3, 5])
    attention = 3 * 2 * sum(4 * t * t * 10 for t in (3, 5))  # forward and twice back, two layers
    assert counts.train_flop(lengths) == 6 * 1000 * 8 + attention
    assert counts.encode_flop(lengths) == counts.train_flop(lengths) / 3


@pytest.fixture(scope="module")
def source(study: Study) -> Pretrained:
    return study.runs.source(study.profile.models["small"].weights)


def make(source: Pretrained, **params: Any) -> Encoder:
    return build(source, EncoderParams(projection=16, **params), seed=1)


def some_texts(study: Study, source: Pretrained, chunk_tokens: int) -> Texts:
    table = study.dataset.tokens(study.store, source.tokenizer, source.tokenizer_digest)
    params = TextParams(query_tokens=16, passage_tokens=32, chunk_tokens=chunk_tokens)
    return Texts(table, source, params)


@pytest.mark.parametrize("pooling", ["mean", "cls"])
@pytest.mark.parametrize("scoring", ["dot", "cosine"])
def test_chunks_give_what_each_text_gives_alone(
    study: Study, source: Pretrained, pooling: str, scoring: str
) -> None:
    encoder = make(source, pooling=pooling, scoring=scoring)
    texts = some_texts(study, source, 200)
    queries, passages = np.array([5, 1, 7]), np.array([2, 9, 4, 0])
    chunks = texts.chunks(queries, passages)
    assert len(chunks) > 1
    found = encode(encoder, chunks, 7)
    alone = some_texts(study, source, 64)
    none = np.empty(0, dtype=np.int64)
    for row in range(3):
        single = encode(encoder, alone.chunks(queries[[row]], none), 1)
        np.testing.assert_allclose(found[row], single[0], atol=1e-6)
    for row in range(4):
        single = encode(encoder, alone.chunks(none, passages[[row]]), 1)
        np.testing.assert_allclose(found[3 + row], single[0], atol=1e-6)
    lengths = np.linalg.norm(found, axis=1)
    assert np.allclose(lengths, 1, atol=1e-6) == (scoring == "cosine")


def test_mean_pooling_is_the_mean_over_tokens(study: Study, source: Pretrained) -> None:
    encoder = make(source).eval()
    chunk = some_texts(study, source, 10_000).chunks(np.array([3, 4, 5]), np.array([6]))[0]
    with torch.no_grad():
        states, found = encoder.states(chunk), encoder(chunk)
        for row, (first, length) in enumerate(zip(chunk.first(), chunk.lengths, strict=True)):
            by_hand = encoder.projection(states[first : first + length].mean(dim=0))
            torch.testing.assert_close(found[row], by_hand)


def test_dot_keeps_its_scale_and_cosine_learns_it(source: Pretrained) -> None:
    dot, cosine = make(source, scoring="dot", scale=0.5), make(source, scoring="cosine")
    assert dot.scale().item() == pytest.approx(0.5)
    assert not dot.log_scale.requires_grad
    assert cosine.scale().item() == pytest.approx(20.0)
    assert cosine.log_scale.requires_grad


def test_bfloat16_gives_float32_vectors_near_the_others(study: Study, source: Pretrained) -> None:
    chunks = some_texts(study, source, 10_000).chunks(np.array([3, 4]), np.array([6]))
    exact = encode(make(source), chunks, 3)
    reduced = encode(make(source, precision="bfloat16"), chunks, 3)
    assert reduced.dtype == np.float32
    assert 0 < np.abs(exact - reduced).max() < 0.05 * np.abs(exact).max()


def test_weights_are_float32_and_survive_a_file(source: Pretrained, tmp_path: Path) -> None:
    encoder = make(source)
    assert {p.dtype for p in encoder.parameters()} == {torch.float32}
    save(encoder, tmp_path / "weights.safetensors")
    other = build(source, EncoderParams(projection=16), seed=2)
    assert not torch.equal(other.projection.weight, encoder.projection.weight)
    restore(other, tmp_path / "weights.safetensors")
    for name, tensor in encoder.state_dict().items():
        assert torch.equal(tensor, other.state_dict()[name])


def test_a_fresh_projection_follows_the_seed(source: Pretrained) -> None:
    assert pretrained.head(source) is None
    same, other = build(source, EncoderParams(projection=16), 1), make(source)
    assert torch.equal(same.projection.weight, other.projection.weight)
