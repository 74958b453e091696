"""Grids with a known answer, and where the reference tables are."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from repro.laws.shapes import Array
from repro.laws.table import Table

# Encoder parameters of BERT Tiny, Mini, Small, Medium, Base; 5,000 to 320,000 pairs in doublings.
MODELS = np.array([396_544, 3_159_040, 12_609_536, 25_219_072, 85_054_464], dtype=float)
SIZES = 5_000.0 * 2.0 ** np.arange(7)


def grid(models: Array = MODELS, sizes: Array = SIZES) -> tuple[Array, Array]:
    """N and D of every cell, models in the outer loop."""
    n, d = np.meshgrid(models, sizes, indexing="ij")
    return n.ravel(), d.ravel()


def sigir_v2(n: Array, d: Array) -> Array:
    """The joint law of SIGIR'24, version 2."""
    return np.asarray(((3.6e4 / n) ** (0.56 / 1.31) + 7.1e3 / d) ** 1.31 + 0.03)


def mael_law(n: Array, d: Array) -> Array:
    """The product law of the MAEL paper, with the constant that its two printed cells imply."""
    return np.asarray(100.0 * n**-0.161 * d**-0.206)


def noisy(loss: Array, seed: int, sd: float = 0.02) -> Array:
    """Losses with log-normal noise."""
    return loss * np.exp(sd * np.random.default_rng(seed).normal(size=loss.shape))


def reference(name: str) -> Path:
    """A file of the reference data, or a skipped test."""
    folder = os.environ.get("REPRO_REFERENCE_DATA")
    if not folder:
        pytest.skip("REPRO_REFERENCE_DATA is not set: public tables are not shipped")
    return Path(folder) / name


def chinchilla(drop: int = 5) -> Table:
    """The Chinchilla points that Epoch AI read off, without the `drop` highest losses."""
    import pandas as pd

    frame = pd.read_csv(reference("chinchilla_epoch/svg_extracted_data.csv"))
    frame = frame.sort_values("loss").iloc[: len(frame) - drop].sort_index()
    n = frame["Model Size"].to_numpy()
    return Table(frame["loss"].to_numpy(), n, frame["Training FLOP"].to_numpy() / (6 * n))
