"""The predicted memory of a step against its measured peak, on a CPU, in a process of its own.

Premise: peak resident memory over that of the same process before the step is the step's own.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import tiny
from repro.model import pretrained
from repro.model.encoder import EncoderParams, size
from repro.model.memory import Footprint

FACTOR = 1.3  # either way
BUFFERS = 100e6  # bytes that a process keeps for products once it has made large ones

STEP = """
import sys
import numpy as np, torch
torch.set_num_threads(1)
from repro.model import pretrained
from repro.model.chunk import Chunk
from repro.model.encoder import EncoderParams, build, encode

folder, tokens, length, precision, what = sys.argv[1:]
tokens, length = int(tokens), int(length)
encoder = build(pretrained.load(folder), EncoderParams(projection=64, precision=precision), 1)
optimizer = torch.optim.AdamW(encoder.parameters(), fused=True)

def chunk(n):
    lengths = np.full(n, length)
    return Chunk.of(np.arange(n), np.full(n * length, 7), lengths, 0, encoder.backbone.config.hidden_size)

def step(n):
    if what == "encoding":
        encode(encoder, [chunk(n)], n)
        return
    optimizer.zero_grad(set_to_none=True)
    encoder(chunk(n)).square().mean().backward()
    optimizer.step()

step(2)  # weights, gradients and moments are there from now on
before = peak()
step(tokens // length)
print(peak() - before)
"""


def measured(folder: Path, tokens: int, length: int, precision: str, what: str) -> float:
    """Bytes of a step over its process before it."""
    arguments = [str(folder), str(tokens), str(length), precision, what]
    found = subprocess.run(
        [sys.executable, "-c", tiny.PEAK + STEP, *arguments],
        capture_output=True,
        text=True,
        check=True,
        env=tiny.environment(),
    )
    return float(found.stdout)


def predicted(folder: Path, tokens: int, length: int, precision: str, what: str) -> float:
    source = pretrained.load(str(folder))
    counts = size(source, EncoderParams(projection=64).projection)
    own = Footprint.of(source.config, counts.total)
    if what == "encoding":
        return own.encoding(tokens, length, cpu=True) - own.encoding(0, length, cpu=True)
    assert precision in ("float32", "bfloat16")
    at = (length, precision, True)
    return own.training(tokens, *at) - own.training(0, *at)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("layers", "width", "tokens", "length"),
    [(2, 128, 16_384, 32), (6, 256, 4096, 64), (3, 256, 8192, 128)],
)
def test_a_training_step_takes_the_memory_that_was_predicted(
    layers: int, width: int, tokens: int, length: int, tmp_path: Path
) -> None:
    folder = tiny.write_bert(tmp_path / "bert", layers=layers, width=width)
    case = (folder, tokens, length, "float32", "training")
    assert 1 / FACTOR < measured(*case) / predicted(*case) < FACTOR


@pytest.mark.slow
def test_reduced_precision_takes_less_and_is_not_underestimated(tmp_path: Path) -> None:
    folder = tiny.write_bert(tmp_path / "bert", layers=4, width=256)
    case = (folder, 8192, 64, "bfloat16", "training")
    assert predicted(*case) < predicted(folder, 8192, 64, "float32", "training")
    assert 0.5 < measured(*case) / (predicted(*case) + BUFFERS) < FACTOR


@pytest.mark.slow
def test_encoding_takes_the_memory_of_one_layer(tmp_path: Path) -> None:
    folder = tiny.write_bert(tmp_path / "bert", layers=4, width=256)
    case = (folder, 16_384, 64, "float32", "encoding")
    assert 0.5 < measured(*case) / (predicted(*case) + BUFFERS) < FACTOR


def test_memory_grows_with_what_it_hangs_on() -> None:
    small = Footprint(parameters=10**6, layers=2, width=128, inner=512, heads=2)
    deep = Footprint(parameters=10**6, layers=4, width=128, inner=512, heads=2)
    at = (180, "float32", False)
    assert deep.training(1000, *at) > 1.8 * (small.training(1000, *at) - 16e6)  # type: ignore[arg-type]
    assert small.training(0, *at) == 16e6  # type: ignore[arg-type]
    assert small.training(1000, 180, "float32", True) > small.training(1000, 180, "float32", False)
    assert small.encoding(1000, 180, False) < small.training(1000, 180, "float32", False)
