"""From a profile to runs: specs, tasks, and the rows that finished runs give."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from repro.data.dataset import Dataset, load_dataset_params
from repro.data.evaluation import SplitName
from repro.data.targets import out_of_domain
from repro.experiments import costs
from repro.experiments.doors import Doors
from repro.experiments.effort import Effort
from repro.experiments.estimate import Estimator
from repro.experiments.profile import Profile
from repro.measure.ranking import RankingSpec
from repro.model import pretrained
from repro.model.encoder import Size, size
from repro.model.texts import Texts
from repro.store import Store
from repro.train.labels.made import LabelSet
from repro.train.labels.view import labelled
from repro.train.loop import RunSpec
from repro.work.queue import Task


@dataclass(frozen=True)
class Trained:
    """One training run and, if asked for, rankings by its best checkpoint: on the test pairs, and
    out of domain (target -> task)."""

    model: str
    pairs: int
    seed: int
    spec: RunSpec
    train: Task
    ranking: Task | None = None
    targets: Mapping[str, Task] = field(default_factory=dict)

    @property
    def tasks(self) -> tuple[Task, ...]:
        """What is to be made, in order."""
        own = (self.train,) if self.ranking is None else (self.train, self.ranking)
        return (*own, *self.targets.values())


class Runs:
    """The runs of one profile on one dataset, over one store; under its own labels, or under `labels`."""

    def __init__(
        self,
        profile: Profile,
        dataset: Dataset,
        store: Store,
        estimator: Estimator | None = None,
        doors: Doors | None = None,
    ) -> None:
        self.profile, self.dataset, self.store = profile, dataset, store
        self.estimator, self.doors = estimator or Estimator(), doors or Doors()
        self.base = dataset  # measured on
        self.labels: dict[str, Any] = {}  # name, spec, about; where they are not the dataset's own
        self._under: dict[str, Runs] = {}
        self.rankings: dict[tuple[str, str], float] = {}  # FLOPs, see `costs.flop_of_ranking`

    def trained(
        self,
        model: str,
        *,
        pairs: int,
        seed: int = 0,
        lr: float | None = None,
        train: Mapping[str, Any] | None = None,
        subset_seed: int | None = None,
        dropout_seed: int | None = None,
        weights: str | None = None,
        ranked: bool = True,
        targets: bool = False,
    ) -> Trained:
        """The run of `model` on `pairs` pairs; `seed` is added to the profile's run seed.

        lr, weights, train (fields of `TrainParams`): other than those of the profile.  subset_seed,
        dropout_seed: see `RunSpec`.  ranked: measured on the test pairs.  targets: measured on each
        target that the dataset declares.
        """
        profile = self.profile
        weights = weights or profile.models[model].weights
        asked = profile.train.model_copy(update=dict(train or {}))
        spec = RunSpec(
            weights=self.source(weights).digest,
            tokens=self.texts(weights).table.digest,
            splits=self.dataset.splits.digest,
            validation=self.dataset.evaluation("validation").digest,
            pairs=pairs,
            seed=profile.seed + seed,
            subset_seed=subset_seed,
            dropout_seed=dropout_seed,
            lr=profile.models[model].lr if lr is None else lr,
            lr_reference=profile.lr_reference,
            encoder=profile.encoder,
            texts=profile.texts,
            train=asked,
            own_negatives=self.dataset.own_digest if asked.negatives.own else None,
            curve=profile.curve,
        )
        inputs = {"weights": weights, "dataset": self.dataset.params.model_dump(mode="json")}
        if self.dataset.view:
            inputs["view"] = self.dataset.view
        if self.labels:
            inputs["labels"] = self.labels["spec"]
        label = f"{model} D={pairs:,} seed {spec.seed}"
        label += f" lr {lr:.3g}" if lr is not None else ""
        label += "".join(f" {name} {value}" for name, value in (train or {}).items())
        for name, other in (("subset", subset_seed), ("dropout", dropout_seed)):
            label += f" {name} {other}" if other is not None else ""
        label += f" on {self.labels['name']} labels" if self.labels else ""
        label += f" from {weights}" if weights != profile.models[model].weights else ""
        work = costs.effort(self, spec, weights, profile.models[model].lr)
        seconds = self.estimator.training(spec, work)
        task = Task(
            "train",
            spec.model_dump(mode="json"),
            label,
            work.train_flop,
            inputs,
            seconds=seconds,
            parameters=self.size(weights).total,
        )
        measure = functools.partial(self._ranking, spec, task, work)
        ranking = measure(self.base, "test", "test" if self.labels else "") if ranked else None
        places = self.targets if targets else {}
        others = {name: measure(*where, name) for name, where in places.items()}
        return Trained(model, pairs, spec.seed, spec, task, ranking, others)

    @functools.cached_property
    def targets(self) -> dict[str, tuple[Dataset, SplitName]]:
        """Dataset and evaluation set of each target that the dataset declares."""
        declared = self.dataset.params.targets
        found = out_of_domain(self.store, self.dataset.params, self.doors.dataset)
        return {name: (dataset, declared[name].set) for name, dataset, _ in found}

    def _ranking(
        self,
        spec: RunSpec,
        train: Task,
        work: Effort,
        dataset: Dataset,
        split: SplitName,
        target: str = "",
    ) -> Task:
        """The measurement of a run's best checkpoint on an evaluation set of `dataset`."""
        key, weights = self.store.key("train", train.spec), train.inputs["weights"]
        ranking = RankingSpec(
            run=key,
            test=dataset.evaluation(split).digest,
            tokens=self.texts(weights, dataset).table.digest,
            params=self.profile.ranking,
        )
        inputs = {**train.inputs, "run": train.spec}
        if target:
            about = dataset.params.model_dump(mode="json")
            inputs["target"] = {"dataset": about, "set": split}
        flop = costs.flop_of_ranking(self, weights, dataset, split)
        return Task(
            "measure",
            ranking.model_dump(mode="json"),
            f"ranking of {train.label}" + (f" on {target}" if target else ""),
            flop,
            inputs,
            after=("train", key),
            seconds=self.estimator.ranking(spec, work, flop),
            parameters=train.parameters,
        )

    @functools.lru_cache(maxsize=16)  # noqa: B019 (one object a study)
    def on(self, dataset: str) -> Runs:
        """The runs of the same profile on another dataset, by its name or file."""
        prepared = self.doors.dataset(self.store, load_dataset_params(dataset))
        return Runs(self.profile, prepared, self.store, self.estimator, self.doors)

    def under(self, name: str, key: str) -> Runs | None:
        """The runs of the same profile under other labels, by their name and key; None: not made yet."""
        folder = None if key in self._under else self.store.find("labels", key)
        if folder is None:
            return self._under.get(key)
        made = LabelSet.load(folder)
        dataset = labelled(self.dataset, made)
        found = Runs(self.profile, dataset, self.store, self.estimator, self.doors)
        spec = json.loads((folder / "spec.json").read_text(encoding="utf-8"))["spec"]
        found.base, found.labels = self.dataset, {"name": name, "spec": spec, "about": made.about}
        self._under[key] = found
        return found

    @functools.lru_cache(maxsize=256)  # noqa: B019
    def source(self, weights: str) -> pretrained.Pretrained:
        """The pre-trained model behind a name."""
        return self.doors.model(weights)

    @functools.lru_cache(maxsize=256)  # noqa: B019
    def size(self, weights: str) -> Size:
        """The parameter counts of a model."""
        return size(self.source(weights), self.profile.encoder.projection)

    @functools.lru_cache(maxsize=256)  # noqa: B019
    def text_cost(self, weights: str) -> costs.TextCost:
        """What the texts of the dataset cost a model."""
        return costs.TextCost.of(self, weights)

    @functools.lru_cache(maxsize=256)  # noqa: B019
    def reading_flop(self, weights: str) -> float:
        """FLOPs of measuring a model on the validation pairs once."""
        return costs.flop_of_reading(self, weights)

    def row(self, run: Trained) -> dict[str, Any] | None:
        """The table row of a run of which everything asked for is there, else None.

        Columns of the ranking (test_entropy, mrr10 and the other metrics) only where it was asked for.
        """
        summary = self.summary(run.train)
        metrics = self._metrics(run.ranking) if run.ranking else {}
        if summary is None or metrics is None:
            return None
        spec, size = run.spec, self.size(run.train.inputs["weights"])
        return {
            "model": run.model,
            **size.as_dict(),
            "n_drscale_mebi": size.drscale * 1e6 / 2**20,  # SIGIR'24's "0.5M to 82M" (FACTS A3)
            "d": run.pairs,
            "seed": run.seed,
            "lr": spec.lr,
            "batch": spec.train.batch_pairs,
            "negatives": spec.train.negatives.count,
            "weight_decay": spec.train.weight_decay,
            "decayed": spec.train.decayed,
            "subset_seed": spec.subset_seed,
            "dropout_seed": spec.dropout_seed,
            "weights": run.train.inputs["weights"],
            **{
                name: summary.get(name)
                for name in (
                    "zero_shot", "mael", "mael_se", "steps", "lr_steps", "sum_lr", "flop", "tokens",
                    "at_first", "state", "seconds",
                )
            },
            **metrics,
            "run": self.store.key("train", run.train.spec),
        }  # fmt: skip

    def target_rows(self, run: Trained) -> list[dict[str, Any]] | None:
        """A row a target: its name, and the metrics of `row` there; None where one is not there yet."""
        rows = []
        for name, task in run.targets.items():
            metrics = self._metrics(task)
            if metrics is None:
                return None
            rows.append({"target": name, **metrics})
        return rows

    def _metrics(self, ranking: Task) -> dict[str, Any] | None:
        folder = self._folder(ranking)
        if folder is None:
            return None
        found: dict[str, Any] = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
        return found

    def summary(self, train: Task) -> dict[str, Any] | None:
        """The summary of a finished training (state, MAEL, S, FLOPs, seconds), else None.

        `at_first`: the lowest reading is the first one, so that S is an upper bound.
        """
        folder = self._folder(train)
        if folder is None:
            return None
        found: dict[str, Any] = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
        loss = pd.read_parquet(folder / "curve.parquet", columns=["loss"])["loss"].to_numpy()
        lowest = np.min(loss[np.isfinite(loss)], initial=np.inf)
        return {**found, "at_first": bool(loss[0] == lowest < np.inf)}

    def curve(self, run: Trained) -> pd.DataFrame | None:
        """The validation curve of a finished run, with the columns that name it."""
        folder = self._folder(run.train)
        if folder is None:
            return None
        frame = pd.read_parquet(folder / "curve.parquet")
        frame.insert(0, "model", run.model)
        frame.insert(1, "d", run.pairs)
        frame.insert(2, "seed", run.seed)
        return frame

    def pair_losses(self, run: Trained) -> NDArray[np.float64] | None:
        """The loss of each validation pair at the minimum, float64 [m], nats."""
        folder = self._folder(run.train)
        return None if folder is None else np.load(folder / "validation.npy", allow_pickle=False)

    def _folder(self, task: Task) -> Path | None:
        return self.store.find(task.kind, self.store.key(task.kind, task.spec))

    def texts(self, weights: str, dataset: Dataset | None = None) -> Texts:
        """The tokens of the dataset trained on, or of another, as a model reads them."""
        source = self.source(weights)
        table = (dataset or self.dataset).tokens(
            self.store, source.tokenizer, source.tokenizer_digest
        )
        return Texts(table, source, self.profile.texts)
