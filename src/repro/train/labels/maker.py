"""Makes a set of labels, whatever its kind."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import torch

from repro.data.dataset import Dataset
from repro.model import generator
from repro.train.labels import doc2query, extracted, ict, llm, wrong
from repro.train.labels.kinds import Doc2query, Extracted, Ict, Kind, LabelSpec, Llm, Wrong
from repro.train.labels.made import Generate, write

BATCH = 256  # passages at once where no model sets it


def loads(kind: Kind) -> str:
    """The model that a kind loads, by name; "" where it loads none."""
    if isinstance(kind, Doc2query) or (isinstance(kind, Llm) and not kind.endpoint):
        return kind.model
    return ""


def make(
    folder: Path,
    dataset: Dataset,
    spec: LabelSpec,
    device: torch.device,
    report: Callable[[int], None],
) -> None:
    """Make the labels of `spec` in `folder` (see `made.write`); `report` hears how many there are."""
    if isinstance(spec.kind, Wrong):
        wrong.labels(dataset, spec, spec.kind).save(folder)
        return
    batch = spec.kind.batch if isinstance(spec.kind, Doc2query | Llm) else BATCH
    write(folder, dataset, spec, _generate(dataset, spec, device), batch, report)


def _generate(dataset: Dataset, spec: LabelSpec, device: torch.device) -> Generate:
    kind, each, seed = spec.kind, spec.per_passage, spec.seed
    if isinstance(kind, Ict):
        return functools.partial(ict.labels, kind, per_passage=each, seed=seed)
    if isinstance(kind, Extracted):
        return extracted.fit(dataset)
    if isinstance(kind, Llm) and kind.endpoint:
        return functools.partial(llm.Endpoint(kind).labels, per_passage=each, seed=seed)
    assert isinstance(kind, Doc2query | Llm)
    translates = isinstance(kind, Doc2query)
    writer = generator.Generator(kind.model, translates=translates, device=device)
    if isinstance(kind, Doc2query):
        return functools.partial(doc2query.labels, kind, writer, per_passage=each, seed=seed)
    return functools.partial(llm.loaded, kind, writer, per_passage=each, seed=seed)
