"""Pins: the benchmarks of search, start, GPUs and growth run, and ours finds what the peers find.

What --quick measures means nothing, so that of the lines of verdicts those on equal results count alone.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from repro.places import ROOT
from tiny import absent

PEER = ROOT / "build" / "peer"


@pytest.fixture
def bench(tmp_path: Path) -> dict[str, str]:
    """The environment of a benchmark: a home of its own, with the peer that the checkout has."""
    if not (PEER / "repro-stamp").is_file():
        absent("the peers are not there: python benchmarks/peer.py")
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "peer").symlink_to(PEER)
    return os.environ | {"REPRO_HOME": str(tmp_path), "CUDA_VISIBLE_DEVICES": ""}


def printed(environment: dict[str, str], script: str, *options: str) -> str:
    command = [sys.executable, str(ROOT / "benchmarks" / script), *options]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_our_search_finds_what_faiss_and_beir_find(bench: dict[str, str]) -> None:
    lines = printed(bench, "search.py", "--quick").splitlines()
    equal = [line for line in lines if "ours and" in line]
    assert len(equal) == 4
    assert all(line.startswith("met") for line in equal), equal


@pytest.mark.slow
def test_the_start_of_commands_is_measured(bench: dict[str, str]) -> None:
    text = printed(bench, "start.py", "--quick")
    assert "| repro fit TABLE.csv " in text
    assert "met    repro fit, imports of torch" in text


@pytest.mark.slow
def test_without_a_gpu_its_benchmark_says_so_and_ends(bench: dict[str, str]) -> None:
    assert printed(bench, "gpu.py").splitlines() == [
        "benchmarks: there is no GPU here; nothing is measured"
    ]


@pytest.mark.slow
def test_the_benchmark_of_gpus_runs_on_a_cpu(bench: dict[str, str]) -> None:
    options = ["--device", "cpu", "--quick", "--precision", "bfloat16", "--side-by-side", "2"]
    text = printed(bench, "gpu.py", *options)
    assert "| Tiny " in text
    assert "Tiny, 2 processes on one device" in text


@pytest.mark.slow
def test_growth_is_measured(bench: dict[str, str]) -> None:
    text = printed(bench, "growth.py", "--quick")
    assert text.count(", exponent: asked at most") == 8
