"""How each kind of task is made; a worker has one such object, which keeps what it loaded."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import torch

from repro.data.dataset import Dataset, DatasetParams, prepare
from repro.data.evaluation import SplitName
from repro.data.tuning import tuning_view
from repro.errors import UserError
from repro.measure import ranking
from repro.measure.ranking import RankingSpec
from repro.model import pretrained
from repro.model.encoder import Encoder, build, restore, size
from repro.model.texts import Texts
from repro.store import Store
from repro.train import loop
from repro.train.labels import maker
from repro.train.labels.kinds import LabelSpec
from repro.train.labels.made import LabelSet
from repro.train.labels.view import labelled
from repro.train.loop import Report, RunSpec
from repro.train.pause import Pause
from repro.work.queue import Task


class Makers:
    """Makes the results of tasks on one device."""

    def __init__(self, store: Store, device: str, pause: Pause | None = None) -> None:
        self.store, self.device = store, pick_device(device)
        self.pause = pause or Pause()
        if self.device.type == "cpu":
            torch.set_num_threads(1)  # bit for bit the same whatever the number of workers

    def make(self, task: Task, folder: Path, report: Report) -> None:
        """Make the result of `task` in `folder`; `report` hears how far it is.

        Raises `repro.store.Spoilt` where data were changed on disk while they were in use.
        """

        def heard(flop: float, note: str) -> None:
            self.store.confirm()  # before the run keeps anything that it made from them
            report(flop, note)

        if task.kind == "train":
            self._train(task, folder, heard)
        elif task.kind == "measure":
            self._measure(task, folder)
        elif task.kind == "labels":
            dataset = self._dataset(json.dumps(task.inputs["dataset"], sort_keys=True))
            spec = LabelSpec.model_validate(task.inputs["labels"])
            maker.make(folder, dataset, spec, self.device, lambda n: heard(n, f"{n:,} labels"))
        else:
            raise ValueError(f"there is no maker for `{task.kind}`")

    def forget(self) -> None:
        """Drop the data that were loaded, so that they are looked at anew."""
        self._dataset.cache_clear()

    def _train(self, task: Task, folder: Path, report: Report) -> None:
        spec = RunSpec.model_validate(task.spec)
        encoder, texts, dataset = self.parts(spec, task.inputs)
        counts = size(texts.source, spec.encoder.projection)
        loop.run(spec, encoder, counts, texts, dataset, folder, report, self.pause)

    def _measure(self, task: Task, folder: Path) -> None:
        spec = RankingSpec.model_validate(task.spec)
        found = self.store.find("train", spec.run, again=True)
        if found is None:
            raise FileNotFoundError(f"the run train/{spec.run} is not in the store")
        encoder, texts, dataset = self.parts(
            RunSpec.model_validate(task.inputs["run"]), task.inputs
        )
        restore(encoder, found / "best.safetensors")
        split: SplitName = "test"
        if target := task.inputs.get("target"):
            dataset = self._dataset(json.dumps(target["dataset"], sort_keys=True))
            table = dataset.tokens(
                self.store, texts.source.tokenizer, texts.source.tokenizer_digest
            )
            texts, split = Texts(table, texts.source, texts.params), target["set"]
        ranking.run(spec, encoder, texts, dataset, dataset.evaluation(split), folder)

    def parts(self, spec: RunSpec, inputs: dict[str, Any]) -> tuple[Encoder, Texts, Dataset]:
        """The encoder at its start, texts and data of a run, checked against its digests."""
        source = pretrained.load(inputs["weights"])
        text = json.dumps(inputs["dataset"], sort_keys=True)
        labels = json.dumps(inputs.get("labels", {}), sort_keys=True)
        dataset = self._dataset(text, inputs.get("view", ""), labels)
        table = dataset.tokens(self.store, source.tokenizer, source.tokenizer_digest)
        found = {"weights": source.digest, "tokens": table.digest, "splits": dataset.splits.digest}
        if spec.own_negatives:
            found["own_negatives"] = dataset.own_digest
        for name, digest in found.items():
            if digest != getattr(spec, name):
                raise UserError(
                    f"the {name.replace('_', ' ')} changed while the sweep ran (digest {digest[:12]})",
                    remedy="start the sweep again",
                )
        encoder = build(source, spec.encoder, spec.seed).to(self.device)
        return encoder, Texts(table, source, spec.texts), dataset

    @functools.lru_cache(maxsize=4)  # noqa: B019 (one object a worker)
    def _dataset(self, text: str, view: str = "", labels: str = "{}") -> Dataset:
        dataset = prepare(self.store, DatasetParams.model_validate(json.loads(text)))
        if view == "tuning":
            return tuning_view(dataset)
        if spec := json.loads(labels):
            folder = self.store.find("labels", self.store.key("labels", spec))
            if folder is None:
                raise FileNotFoundError("the labels of this run are not in the store")
            return labelled(dataset, LabelSet.load(folder))
        return dataset


def pick_device(name: str) -> torch.device:
    """The device of that name; `auto` is CUDA where there is one, else the CPU."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    there = {
        "cpu": True,
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
    }
    if not there[name]:
        raise UserError(
            f"there is no {name} device here", remedy="set execute.device to auto or cpu"
        )
    return torch.device(name)


def device_name(device: torch.device) -> str:
    """The device for a record: its kind, and for a GPU its name."""
    if device.type != "cuda":
        return device.type
    return f"cuda ({torch.cuda.get_device_name(device)})"
