"""What the benchmarks share: apidocs as an encoder sees it, alternating timing, tables, verdicts."""

from __future__ import annotations

import argparse
import functools
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("RAYON_NUM_THREADS", os.environ["OMP_NUM_THREADS"])  # of the tokenizers

import numpy as np
import torch
from numpy.typing import NDArray

from repro.data.dataset import Dataset, load_dataset_params, prepare
from repro.model import files, pretrained
from repro.model.encoder import Encoder, EncoderParams, build
from repro.model.memory import Precision
from repro.model.pretrained import Pretrained
from repro.model.texts import TextParams, Texts
from repro.places import home
from repro.store import Store

SGEMM = 2048  # the matrices of the sgemm rate are SGEMM x SGEMM
WIDTH = 128  # of the vectors
TEMPERATURE = 0.05


def options(doc: str) -> argparse.ArgumentParser:
    """The options that every benchmark has."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--quick", action="store_true", help="see that it runs; figures mean nothing"
    )
    parser.add_argument("--rounds", type=int, help="alternating runs of each (5; --quick: 1)")
    return parser


def rounds(given: argparse.Namespace) -> int:
    """How many alternating runs there are."""
    return given.rounds or (1 if given.quick else 5)


def use_threads(n: int) -> None:
    """Compute with `n` threads, tokenise with as many."""
    torch.set_num_threads(n)
    os.environ["RAYON_NUM_THREADS"] = str(n)  # read when the first text is tokenised


def machine() -> str:
    """What the figures were measured on, in a line."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        name = next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        name = platform.processor() or platform.machine()
    packages = ", ".join(f"{name} {version(name)}" for name in ("torch", "transformers"))
    return f"{name}, {os.cpu_count()} cores, {torch.get_num_threads()} thread(s); {packages}"


# Data and models


@functools.cache
def store() -> Store:
    """The store that `make reproduce` uses."""
    return Store(home() / "runs")


@functools.cache
def apidocs() -> Dataset:
    """The embedded dataset."""
    return prepare(store(), load_dataset_params("apidocs"))


@functools.cache
def source(model: str) -> Pretrained:
    """The shipped encoder `2x128`; where none has that shape, one with random weights.

    `2x128+30522`: with random weights, an embedding of so many tokens and heads of 64, as BERT's.
    """
    name = f"micro/{model}"
    return pretrained.load(name if name in files.names() else str(_random_folder(model)))


def texts(model: str, query_tokens: int, passage_tokens: int, chunk_tokens: int = 8192) -> Texts:
    """apidocs as `model` sees it."""
    of = source(model)
    table = apidocs().tokens(store(), of.tokenizer, of.tokenizer_digest)
    lengths = {"query_tokens": query_tokens, "passage_tokens": passage_tokens}
    return Texts(table, of, TextParams(**lengths, chunk_tokens=chunk_tokens))


def encoder_params(dropout: float = 0.1, precision: Precision = "float32") -> EncoderParams:
    """Cosines over .05, as MultipleNegativesRankingLoss scales them."""
    return EncoderParams(
        projection=WIDTH,
        scoring="cosine",
        temperature=TEMPERATURE,
        dropout=dropout,
        precision=precision,
    )


def encoder(model: str, params: EncoderParams) -> Encoder:
    """An encoder of those weights, its temperature constant as the peer's is."""
    made = build(source(model), params, seed=1)
    with torch.no_grad():
        made.log_scale.fill_(float(np.log(1 / TEMPERATURE)))
    made.log_scale.requires_grad_(False)
    return made


@functools.cache
def _random_folder(model: str) -> Path:
    """A BERT of that shape with random weights and the tokenizer of micro/2x128."""
    import shutil

    from transformers import BertConfig, BertModel

    shape, _, vocabulary = model.partition("+")
    layers, width = (int(part) for part in shape.split("x"))
    of = pretrained.load("micro/2x128")
    folder = scratch() / model
    folder.mkdir()
    for path in of.folder.glob("tokenizer*"):
        shutil.copy(path, folder)
    changed = {
        "hidden_size": width,
        "num_hidden_layers": layers,
        "num_attention_heads": width // (64 if vocabulary else 32),
        "intermediate_size": 4 * width,
        "dtype": "float32",
    }
    if vocabulary:
        changed["vocab_size"] = int(vocabulary)
    config = BertConfig.from_dict({**of.config.to_dict(), **changed})
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        BertModel(config, add_pooling_layer=False).save_pretrained(folder)
    return folder


@functools.cache
def _scratch() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="repro-bench-")


def scratch() -> Path:
    """A folder that ends with this process."""
    return Path(_scratch().name)


# Timing


def seconds(work: Callable[[], object]) -> float:
    """The wall time of `work`."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def alternate(
    contenders: dict[str, Callable[[], float]], n_rounds: int
) -> dict[str, NDArray[np.float64]]:
    """What each contender returns, float64 [n_rounds]; all take part in every round, in order."""
    found: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(n_rounds):
        for name, run in contenders.items():
            found[name].append(run())
    return {name: np.array(values) for name, values in found.items()}


def sgemm_rate(repeats: int = 3) -> Callable[[], float]:
    """Measures the FLOP a second of a float32 matrix product on the CPU."""
    return product_rate(repeats, SGEMM, torch.float32, torch.device("cpu"))


def product_rate(
    repeats: int, size: int, kind: torch.dtype, device: torch.device
) -> Callable[[], float]:
    """Measures the FLOP a second of a product of two square matrices."""
    left, right = torch.rand(2, size, size).to(device, kind)
    torch.mm(left, right)
    waited(device)

    def rate() -> float:
        spent = seconds(lambda: [*(torch.mm(left, right) for _ in range(repeats)), waited(device)])
        return repeats * 2 * size**3 / spent

    return rate


def waited(device: torch.device) -> None:
    """Return when the device has done all that it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


# Tables


@dataclass(frozen=True)
class Asked:
    """A requirement, and what was measured."""

    what: str
    least: float
    measured: NDArray[np.float64]  # one value a round; the median counts
    at_most: bool = False  # `least` is then the most

    def __str__(self) -> str:
        middle = float(np.median(self.measured))
        met = middle <= self.least if self.at_most else middle >= self.least
        sign = "at most" if self.at_most else "at least"
        return (
            f"{'met   ' if met else 'MISSED'} {self.what}: asked {sign} {self.least:g}, "
            f"measured {spread(self.measured)}"
        )


def spread(values: NDArray[np.float64], digits: int = 3) -> str:
    """The median, with the least and the greatest value behind it."""
    middle, low, high = np.median(values), values.min(), values.max()
    if len(values) == 1:
        return f"{middle:.{digits}g}"
    return f"{middle:.{digits}g} ({low:.{digits}g} to {high:.{digits}g})"


def table(columns: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    widths = [max(len(row[i]) for row in [columns, *rows]) for i in range(len(columns))]
    lines = [columns, ["-" * width for width in widths], *rows]
    return "\n".join(
        "| " + " | ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)) + " |"
        for line in lines
    )


def told(row: list[str]) -> list[str]:
    """`row`, printed as soon as it is measured: what is killed later has not lost it."""
    print(" | ".join(row), file=sys.stderr, flush=True)
    return row


def show(
    title: str, columns: list[str], rows: list[list[str]], asked: list[Asked], note: str
) -> None:
    """Print a benchmark's result: the table, what the columns mean, a line per requirement."""
    print(f"\n## {title}\n\n{machine()}\n\n{table(columns, rows)}\n\n{note}\n")
    for each in asked:
        print(each)
    print(flush=True)
