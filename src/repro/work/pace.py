"""How fast this machine is: a short measurement of each kind of work, per model, under full load.

As many processes as a sweep has workers measure at once, because two busy cores are slower than
one.  The result is kept under the machine, the number of workers and the code that was measured.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import multiprocessing
import os
import platform
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from repro.files import digest, write_json
from repro.process import one_thread
from repro.store import Store
from repro.train.loop import RunSpec
from repro.work.local import WorkersParams, workers
from repro.work.queue import Task

SECONDS = 35.0  # of measuring, all models together; the start of the processes comes on top
MEASURED_ROOMS = ("data", "measure", "model", "train", "work")
GUESS = 1 / 3.5e10  # seconds a FLOP of one core on the micro family (docs/performance.md)
GUESS_EACH = 0.015  # seconds a step that no FLOP explains, on the same cores


@dataclass(frozen=True)
class Rates:
    """Seconds of the work of one model on one worker: a FLOP of each kind, and what is fixed."""

    step: float = GUESS
    reading: float = GUESS
    ranking: float = GUESS
    keep: float = 0.0  # a reading: writing weights and resume state
    start: float = 0.0  # a run: loading, building, optimiser
    each: float = 0.0  # a step beside its FLOPs; none where `step` was measured on whole steps


@dataclass(frozen=True)
class Pace:
    """The rates of the models that were measured, and what a sweep costs beside its runs."""

    models: dict[str, Rates]  # by `model_key`
    boot: float = 0.0  # seconds until a worker takes its first task
    search: float = 0.0  # seconds of a ranking that no encoder takes
    at: str = ""  # UTC, ISO 8601; "" where nothing was measured

    def of(self, spec: RunSpec) -> Rates:
        """The rates of a run's model; of a model not measured, the mean over those that were."""
        key = model_key(spec)
        if key in self.models or not self.models:
            return self.models.get(key, Rates(each=GUESS_EACH))
        names = [field.name for field in dataclasses.fields(Rates)]
        means = {
            name: float(np.mean([getattr(each, name) for each in self.models.values()]))
            for name in names
        }
        return Rates(**means)


def model_key(spec: RunSpec) -> str:
    """Digest of what the speed of a run hangs on, beside the number of FLOPs."""
    train = spec.train
    return digest({
        "weights": spec.weights,
        "encoder": spec.encoder.model_dump(mode="json"),
        "texts": spec.texts.model_dump(mode="json"),
        "batch": train.batch_pairs,
        "negatives": train.negatives.model_dump(mode="json"),
        "step_tokens": train.step_tokens,
    })  # fmt: skip


def place(folder: Path, params: WorkersParams) -> Path:
    """The file that keeps the pace of this machine with this code and so many workers."""
    about = {
        "machine": [platform.node(), platform.machine(), os.cpu_count()],
        "workers": workers(params),
        "device": params.device,
        "code": code(),
    }
    return folder / f"{digest(about)}.json"


def load(path: Path) -> Pace:
    """The pace kept in a file; an empty one where there is none, or it cannot be read."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        models = {key: Rates(**rates) for key, rates in kept.pop("models").items()}
        return Pace(models=models, **kept)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return Pace({})


def calibrate(
    store: Store,
    runs: list[tuple[Task, int]],
    params: WorkersParams,
    path: Path,
    seconds: float = SECONDS,
) -> Pace:
    """Measure the models of these training tasks and add them to what `path` keeps.

    runs: one task a model, and how many passages its ranking searches.
    """
    n, context = workers(params), multiprocessing.get_context("spawn")
    barrier = context.Barrier(n)
    with (
        one_thread(),
        ProcessPoolExecutor(n, mp_context=context, initializer=_meet, initargs=(barrier,)) as pool,
    ):
        measure = functools.partial(_measure, store.root, runs, params.device, seconds, time.time())
        found = list(pool.map(measure, range(n)))
    means = np.mean([each["models"] for each in found], axis=0).tolist()  # [model][kind]
    models = {
        model_key(RunSpec.model_validate(task.spec)): Rates(*means[i])
        for i, (task, _) in enumerate(runs)
    }
    pace = Pace(
        {**load(path).models, **models},
        boot=float(np.mean([each["boot"] for each in found])),
        search=float(np.mean([each["search"] for each in found])),
        at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, dataclasses.asdict(pace))
    return pace


@functools.cache
def code() -> str:
    """Digest of the rooms whose speed is measured, and of the version of torch."""
    import torch

    package = Path(__file__).parents[1]
    paths = sorted(path for room in MEASURED_ROOMS for path in (package / room).rglob("*.py"))
    lines = [hashlib.sha256(path.read_bytes()).hexdigest() for path in paths]
    return hashlib.sha256("\n".join([torch.__version__, *lines]).encode()).hexdigest()


_BARRIER: Any = None


def _meet(barrier: Any) -> None:
    global _BARRIER
    _BARRIER = barrier


def _measure(
    root: Path, runs: list[tuple[Task, int]], device: str, seconds: float, began: float, worker: int
) -> dict[str, Any]:
    """What one process measures: rates [model][kind], in the order of `Rates`; boot and search."""
    from repro.work.makers import Makers

    makers = Makers(Store(root), device)
    makers.parts(RunSpec.model_validate(runs[0][0].spec), runs[0][0].inputs)
    boot = time.time() - began
    _BARRIER.wait(timeout=300)
    rates: dict[int, list[float]] = {}
    for turn in range(len(runs)):
        index = (worker + turn) % len(runs)  # each process begins with another model
        rates[index] = _rates(makers, runs[index][0], seconds / len(runs))
    task, passages = runs[0]
    _, _, dataset = makers.parts(RunSpec.model_validate(task.spec), task.inputs)
    return {
        "models": [rates[index] for index in range(len(runs))],
        "boot": boot,
        "search": _search(RunSpec.model_validate(task.spec), dataset, passages),
    }


def _rates(makers: Any, task: Task, seconds: float) -> list[float]:
    """The rates of one model, in the order of `Rates`, measured in about so many seconds."""
    from repro.model.encoder import encode, save, size
    from repro.train import checkpoint
    from repro.train.loop import Trainer

    spec = RunSpec.model_validate(task.spec)
    began = time.perf_counter()
    encoder, texts, dataset = makers.parts(spec, task.inputs)
    counts = size(texts.source, spec.encoder.projection)
    trainer = Trainer(spec, encoder, counts, texts, dataset)
    start = time.perf_counter() - began

    def steps(trainer: Trainer, slot: float) -> float:
        trainer.step()  # the first one warms up
        flop, begun = trainer.flop, time.perf_counter()
        while trainer.flop == flop or time.perf_counter() - begun < slot:
            if trainer.done >= trainer.spec.max_steps:
                trainer.done = 0  # the same batches again
            trainer.step()
        return (time.perf_counter() - begun) / (trainer.flop - flop)

    # A first look with a small batch: where a whole step takes too long, it must do.
    small = Trainer(_smaller(spec), encoder, counts, texts, dataset)
    step = steps(small, 0.0)
    share = spec.train.batch_pairs / small.spec.train.batch_pairs
    if 2 * step * small.flop / small.done * share < 0.5 * seconds:
        step = steps(trainer, 0.5 * seconds)

    evaluation = dataset.evaluation("validation")
    none = np.empty(0, dtype=np.int64)

    def encoding(queries: Any, passages: Any) -> float:
        n_texts = len(queries) + len(passages)
        lengths = np.concatenate([texts.query_lengths(queries), texts.passage_lengths(passages)])
        begun = time.perf_counter()
        encode(encoder, texts.chunks(queries, passages), n_texts)
        return (time.perf_counter() - begun) / counts.encode_flop(lengths)

    def of_reading(n: int) -> float:
        share = n / (len(evaluation.queries) + len(evaluation.passages))
        n_queries = max(1, round(share * len(evaluation.queries)))
        return encoding(
            evaluation.queries[:n_queries], evaluation.passages[: max(1, n - n_queries)]
        )

    pool = np.random.default_rng(0).permutation(len(dataset.collection.passages))
    n_texts = len(evaluation.queries) + len(evaluation.passages)
    reading = _growing(of_reading, n_texts, 0.2 * seconds)
    ranking = _growing(lambda n: encoding(none, pool[:n]), min(len(pool), 4096), 0.2 * seconds)
    with tempfile.TemporaryDirectory(dir=makers.store.root) as folder:
        begun = time.perf_counter()
        save(encoder, Path(folder) / "best.safetensors")
        checkpoint.write(Path(folder), encoder, trainer.optimizer, np.zeros(1), {})
        keep = time.perf_counter() - begun
    return [step, reading, ranking, keep, start]


def _smaller(spec: RunSpec) -> RunSpec:
    """The run with an eighth of its batch and negatives, at least two of each."""
    train, negatives = spec.train, spec.train.negatives
    batch = max(2, train.batch_pairs // 8)
    count = min(negatives.count, max(2, negatives.count // 8))
    fewer = negatives.model_copy(update={"count": count})
    changed = train.model_copy(update={"batch_pairs": batch, "negatives": fewer})
    return spec.model_copy(update={"train": changed})


def _growing(measure: Callable[[int], float], most: int, seconds: float) -> float:
    """The rate over the largest number of texts for which there is time, doubling from 64."""
    n, begun = min(64, most), time.perf_counter()
    rate = measure(n)
    while n < most and 3 * (time.perf_counter() - begun) < seconds:
        n = min(2 * n, most)
        rate = measure(n)
    return rate


def _search(spec: RunSpec, dataset: Any, passages: int) -> float:
    """Seconds of the search and the metrics of a ranking, on vectors drawn at random."""
    from repro.measure.retrieval import ranking_metrics, top_k

    random = np.random.default_rng(0)
    queries = np.unique(dataset.evaluations.get("test", dataset.evaluation("validation")).queries)
    width, rows = spec.encoder.projection, min(passages, 8192)
    vectors = random.standard_normal((len(queries), width), dtype=np.float32)
    block = random.standard_normal((rows, width), dtype=np.float32)
    begun = time.perf_counter()
    found, _ = top_k(vectors, iter([block]), 100)
    searched = time.perf_counter() - begun
    judged = dataset.judgements.positives(queries)
    begun = time.perf_counter()
    ranking_metrics(found, [{int(p): 1 for p in row} for row in judged])
    return searched * passages / rows + time.perf_counter() - begun
