"""What a trained encoder retrieves: test entropy and ranking metrics of a run's best checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from repro import seeds
from repro.data.dataset import Dataset
from repro.data.evaluation import EvaluationSet
from repro.files import write_json
from repro.measure import retrieval
from repro.measure.evaluate import pair_entropies
from repro.measure.retrieval import METRICS, ranking_metrics, top_k
from repro.model.encoder import Encoder, encode
from repro.model.texts import Texts
from repro.params import Params

BLOCK = 4096  # passages encoded and scored at once
TOLD = 1_000_000  # passages: before a search of so many or more, its memory is printed


class RankingParams(Params):
    """What is searched, exactly, and how deep."""

    # The whole collection, or a pool of so many passages: the test positives and a random rest
    # (SIGIR'24 searched a pool of one million).
    passages: Annotated[int, Field(ge=1000)] | Literal["all"] = "all"
    depth: Annotated[int, Field(ge=100, le=1000)] = 100


class RankingSpec(Params):
    """Everything that determines the measurement."""

    run: str  # key of the training run
    test: str  # digest of the evaluation set
    tokens: str  # digest of the token table of the collection that is searched
    params: RankingParams


def run(
    spec: RankingSpec,
    encoder: Encoder,
    texts: Texts,
    dataset: Dataset,
    test: EvaluationSet,
    folder: Path,
) -> None:
    """Measure `encoder` on the pairs of `test`; writes metrics.json and test.npy (float64 [m], nats).

    texts, dataset: of the collection that is searched, which need not be the one trained on.
    An encoder whose vectors are not numbers (the run diverged at once) has null for every metric.
    """
    entropies = pair_entropies(encoder, texts, test)
    np.save(folder / "test.npy", entropies, allow_pickle=False)
    if not np.isfinite(entropies).all():
        write_json(folder / "metrics.json", dict.fromkeys(["test_entropy", "searched", *METRICS]))
        return
    queries = np.unique(test.queries)
    judged = dataset.judgements.positives(queries)
    pool = searched(spec.params, dataset, np.unique(judged))
    if len(pool) >= TOLD:
        need = expected_bytes(
            len(queries), len(pool), encoder.projection.out_features, spec.params.depth
        )
        print(f"ranking {len(pool):,} passages: {need / 1e9:.1f} GB at most besides the encoder")
    none = np.empty(0, dtype=np.int64)
    vectors = encode(encoder, texts.chunks(queries, none), len(queries))
    found, _ = top_k(vectors, _vectors(encoder, texts, pool), spec.params.depth)
    ranked = np.where(found >= 0, pool[found], -1)
    metrics: dict[str, Any] = {"test_entropy": float(entropies.mean()), "searched": len(pool)}
    metrics |= ranking_metrics(ranked, [{int(p): 1 for p in row} for row in judged])
    write_json(folder / "metrics.json", metrics)


def expected_bytes(n_queries: int, n_passages: int, width: int, depth: int) -> int:
    """The most that a ranking holds besides the encoder and the mapped token table.

    width: of the vectors.  Eight bytes a passage, for which are searched; the rest is the same for
    any corpus (`repro.measure.retrieval`).
    """
    return retrieval.expected_bytes(n_queries, width, depth, BLOCK) + 8 * n_passages


def searched(
    params: RankingParams, dataset: Dataset, positives: NDArray[np.integer]
) -> NDArray[np.int64]:
    """The passages that are searched, int64, in rising order: all, or positives and a random rest."""
    n_passages = len(dataset.collection.passages)
    if params.passages == "all" or params.passages >= n_passages:
        return np.arange(n_passages)
    others = np.setdiff1d(np.arange(n_passages), positives)
    n_others = max(0, params.passages - len(positives))
    drawn = seeds.stream(dataset.params.seed, "ranking").choice(others, n_others, replace=False)
    return np.sort(np.concatenate([positives.astype(np.int64), drawn]))


def _vectors(
    encoder: Encoder, texts: Texts, pool: NDArray[np.int64]
) -> Iterator[NDArray[np.float32]]:
    """The vectors of the passages in `pool`, block by block."""
    none = np.empty(0, dtype=np.int64)
    for start in range(0, len(pool), BLOCK):
        rows = pool[start : start + BLOCK]
        yield encode(encoder, texts.chunks(none, rows), len(rows))
