"""What a study needs of a device: hours, memory, disk and downloads; and what cannot fit is refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from repro.app import refuse
from repro.data.dataset import Dataset
from repro.errors import UserError
from repro.experiments import costs, transfer
from repro.experiments.doors import is_declared
from repro.experiments.labels import writers
from repro.measure.ranking import BLOCK
from repro.model.memory import Footprint
from repro.model.shapes import writer_bytes
from repro.work.devices import Device

if TYPE_CHECKING:
    from repro.app.study import Study
    from repro.experiments.budget import Budget
    from repro.experiments.runs import Runs, Trained

BEST_BYTES = 4  # a parameter: the weights at the minimum, float32
RESUME_BYTES = 12  # a parameter, while a run goes on: weights and two moments
WORKER_BYTES = 600e6  # Python, torch and transformers, as measured on Linux
CONTEXT_BYTES = (
    1e9  # of a GPU: a guess at its context and at what the allocator leaves between tensors
)
ID_BYTES = 4  # a token in the token table
LONGER = 1.25  # tokens of the longest step over those of a usual one


def hours(found: Budget, device: Device, precision: str) -> dict[str, float]:
    """Experiment -> hours of one device: steps, readings and rankings at the rate that is assumed."""
    rate = 3600 * device.rate(precision)
    return {name: (line.flop + line.reading_flop) / rate for name, line in found.lines.items()}


def memory(study: Study, runs: Sequence[Trained], device: Device | None) -> dict[str, float]:
    """Peak bytes of one run's training and of its ranking, of the run that needs most.

    Raises `UserError` where a device has less, with the step that would fit.
    """
    cpu = device is None or device.memory is None
    beside = WORKER_BYTES if cpu else CONTEXT_BYTES
    needs = {name: beside + need for name, need in _needs(study.runs, runs, cpu).items()}
    if device is not None and device.memory is not None:
        for name, need in needs.items():
            if need > device.memory:
                raise _too_much(study, name, need, device)
    return needs


def _needs(plan: Runs, runs: Sequence[Trained], cpu: bool) -> dict[str, float]:
    training, ranking = [0.0], [0.0]
    texts, precision = plan.profile.texts, plan.profile.encoder.precision
    longest = max(texts.query_tokens, texts.passage_tokens)
    chunk = max(texts.chunk_tokens, longest)
    for run in _distinct_steps(runs):
        own = footprint(plan, run.train.inputs["weights"])
        training.append(own.training(held_tokens(plan, run), longest, precision, cpu))
        if run.ranking is not None:
            n = len(plan.base.evaluation("test").queries)
            width = plan.profile.encoder.projection
            search = 4 * (BLOCK * (n + width) + n * width) + 12 * n * plan.profile.ranking.depth
            ranking.append(own.encoding(chunk, longest, cpu) + search)
    return {"training": max(training), "ranking": max(ranking)}


def held_tokens(plan: Runs, run: Trained) -> float:
    """Tokens whose graph is held at once, of the longest step: all of them, or those of a chunk."""
    spec, text = run.spec, plan.text_cost(run.train.inputs["weights"])
    n_queries, n_passages = costs.texts_of_step(plan, spec)
    usual = n_queries * text.query_tokens + n_passages * text.passage_tokens
    limits = spec.texts.query_tokens, spec.texts.passage_tokens
    most = min(LONGER * usual, n_queries * limits[0] + n_passages * limits[1])
    if most <= spec.train.step_tokens:
        return most
    sometimes = spec.train.step_tokens if usual / LONGER < spec.train.step_tokens else 0
    return max(min(spec.texts.chunk_tokens, most), sometimes)


def footprint(plan: Runs, weights: str) -> Footprint:
    """What the memory of a model hangs on."""
    source = plan.source(weights)
    projection = (source.width + 1) * plan.profile.encoder.projection
    return Footprint.of(source.config, plan.size(weights).total + projection)


def downloads(study: Study, runs: Sequence[Trained]) -> list[dict[str, Any]]:
    """What is not on this machine: name, kind and bytes (None: not known; of a model 4 a parameter)."""
    found = [
        {"name": each.params.name, "kind": "dataset", "bytes": each.params.declared.bytes}
        for each in _datasets(study, runs)
        if each.params.declared is not None and not each.is_here
    ]
    weights = {run.train.inputs["weights"] for run in runs}
    found += [
        {"name": name, "kind": "model", "bytes": 4 * study.runs.size(name).total}
        for name in sorted(weights)
        if is_declared(study.runs.source(name).digest)
    ]
    lacking = [name for name in writers(study.profile) if is_declared(study.doors.writer(name))]
    return found + [
        {"name": name, "kind": "model", "bytes": writer_bytes(name)} for name in lacking
    ]


def disk(study: Study, runs: Sequence[Trained], workers: int) -> dict[str, float]:
    """Bytes on disk: weights kept, resume state of the runs under way, of models not here their files
    (twice, as if none came in safetensors and each were converted), of data not here its texts, in
    about what was downloaded, and its tokens."""
    totals = [study.runs.size(run.train.inputs["weights"]).total for run in runs]
    lacking = [each for each in downloads(study, runs) if each["kind"] == "model"]
    texts = tokens = 0.0
    for each in _datasets(study, runs):
        if each.is_here or each.params.declared is None:
            continue
        texts += each.params.declared.bytes
        vocabularies = {
            study.runs.source(run.train.inputs["weights"]).tokenizer_digest for run in runs
        }
        declared, counts = each.params.declared, each.collection.counts
        n_tokens = counts["queries"] * declared.query_tokens
        n_tokens += counts["passages"] * declared.passage_tokens
        tokens += ID_BYTES * n_tokens * len(vocabularies)
    return {
        "weights": float(BEST_BYTES * sum(totals)),
        "resume": float(RESUME_BYTES * workers * max(totals)),
        "models": float(sum(2 * (each["bytes"] or 0) for each in lacking)),
        "texts": texts,
        "tokens": tokens,
    }


def _datasets(study: Study, runs: Sequence[Trained]) -> list[Dataset]:
    """The datasets of a study: its own, its targets where runs are measured there, those of transfer."""
    found = [study.dataset]
    if any(run.targets for run in runs):
        found += [dataset for dataset, _ in study.runs.targets.values()]
    if study.profile.transfer:
        found += [plan.dataset for plan in transfer.plans(study.runs)]
    return list({each.params.name: each for each in found}.values())


def _distinct_steps(runs: Sequence[Trained]) -> list[Trained]:
    """A run for each model and set of training parameters: others of the same take the same memory."""
    found: dict[tuple[Any, ...], Trained] = {}
    for run in runs:
        negatives = run.spec.train.negatives
        found.setdefault((run.model, negatives.sharing, run.ranking is None), run)
    return list(found.values())


def _too_much(study: Study, name: str, need: float, device: Device) -> UserError:
    assert device.memory is not None
    key, remedy = {
        "training": (
            ("train", "step_tokens"),
            "lower train.step_tokens and texts.chunk_tokens: a step of more tokens than the first is "
            "embedded in chunks of the second, with the same numbers (or name a larger device)",
        ),
        "ranking": (("texts", "chunk_tokens"), "lower texts.chunk_tokens, or name a larger device"),
    }[name]
    return UserError(
        f"{name} needs about {need / 1e9:.0f} GB at its peak; {device.name} has "
        f"{device.memory / 1e9:.0f}",
        where=refuse.key_place(study, *key),
        remedy=remedy,
    )
