"""What a trained encoder retrieves: test entropy and ranking metrics of a run's best checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from repro.data.dataset import Dataset
from repro.measure.evaluate import pair_entropies
from repro.measure.retrieval import ranking_metrics, top_k
from repro.model.encoder import Encoder, encode
from repro.model.texts import Texts
from repro.params import Params
from repro.store import write_json

BLOCK = 4096  # passages encoded and scored at once


class RankingParams(Params):
    """How deep the exact search over the whole collection goes."""

    depth: Annotated[int, Field(ge=100, le=1000)] = 100


class RankingSpec(Params):
    """Everything that determines the measurement."""

    run: str  # key of the training run
    test: str  # digest of the test set
    params: RankingParams


def run(spec: RankingSpec, encoder: Encoder, texts: Texts, dataset: Dataset, folder: Path) -> None:
    """Measure `encoder` on the test pairs; writes metrics.json and test.npy (float64 [m], nats).

    Every passage of the collection is searched.  Source of the metrics: `measure.retrieval`.
    """
    test = dataset.evaluation("test")
    entropies = pair_entropies(encoder, texts, test)
    queries = np.unique(test.queries)
    none = np.empty(0, dtype=np.int64)
    vectors = encode(encoder, texts.chunks(queries, none), len(queries))
    ranked, _ = top_k(vectors, _passages(encoder, texts, dataset), spec.params.depth)
    metrics: dict[str, Any] = {"test_entropy": float(entropies.mean())}
    judged = dataset.judgements.positives(queries)
    metrics |= ranking_metrics(ranked, [{int(p): 1 for p in row} for row in judged])
    np.save(folder / "test.npy", entropies)
    write_json(folder / "metrics.json", metrics)


def _passages(encoder: Encoder, texts: Texts, dataset: Dataset) -> Any:
    """The vectors of the collection's passages, block by block."""
    none = np.empty(0, dtype=np.int64)
    n_passages = len(dataset.collection.passages)
    for start in range(0, n_passages, BLOCK):
        rows = np.arange(start, min(start + BLOCK, n_passages))
        yield encode(encoder, texts.chunks(none, rows), len(rows))
