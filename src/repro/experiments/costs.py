"""What a run and its rankings will cost, as far as it can be told before: FLOPs and steps."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from repro.data.dataset import Dataset
from repro.data.evaluation import SplitName
from repro.measure.evaluate import reading_flop
from repro.train.loop import RunSpec

if TYPE_CHECKING:
    from repro.experiments.effort import Effort
    from repro.experiments.runs import Runs, Trained


def effort(plan: Runs, spec: RunSpec, weights: str) -> Effort:
    """The work of a training run."""
    train, texts, model = spec.train, plan.texts(weights), plan.size(weights)
    queries = texts.query_lengths(np.arange(len(plan.dataset.collection.queries)))
    passages = _passage_lengths(plan, weights, plan.dataset)
    n_passages = train.batch_pairs + train.negatives.count
    a_step = train.batch_pairs * model.train_flop(queries) / len(queries)
    a_step += n_passages * model.train_flop(passages) / len(passages)
    a_reading = reading_flop(model, texts, plan.dataset.evaluation("validation"))
    return plan.estimator.effort(spec, a_step, a_reading)


def reading_share(plan: Runs, run: Trained) -> float:
    """The share of the readings in the seconds of a run."""
    work = effort(plan, run.spec, run.train.inputs["weights"])
    steps = plan.estimator.training(run.spec, replace(work, readings=0))
    return 1 - steps / plan.estimator.training(run.spec, work)


def flop_of_ranking(plan: Runs, weights: str, dataset: Dataset, split: SplitName) -> float:
    """FLOPs of encoding the searched passages and the evaluation set."""
    model, lengths = plan.size(weights), _passage_lengths(plan, weights, dataset)
    share = searched(plan, dataset) / len(lengths)
    test = reading_flop(model, plan.texts(weights, dataset), dataset.evaluation(split))
    return share * model.encode_flop(lengths) + test


def searched(plan: Runs, dataset: Dataset | None = None) -> int:
    """How many passages a ranking searches; of the dataset trained on, or of another."""
    wanted = plan.profile.ranking.passages
    there = len((dataset or plan.dataset).collection.passages)
    return there if wanted == "all" else min(wanted, there)


def _passage_lengths(plan: Runs, weights: str, dataset: Dataset) -> NDArray[np.int64]:
    n_passages = len(dataset.collection.passages)
    return plan.texts(weights, dataset).passage_lengths(np.arange(n_passages))
