"""What a run and its rankings will cost, as far as it can be told before: FLOPs and steps."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
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


def effort(plan: Runs, spec: RunSpec, weights: str, own_lr: float | None = None) -> Effort:
    """The work of a training run; own_lr: the rate at which models like it take the usual passes."""
    text = plan.text_cost(weights)
    n_queries, n_passages = texts_of_step(plan, spec)
    a_step = n_queries * text.query_flop + n_passages * text.passage_flop
    return plan.estimator.effort(spec, a_step, plan.reading_flop(weights), own_lr)


def flop_of_reading(plan: Runs, weights: str) -> float:
    """FLOPs of measuring a model on the validation pairs once."""
    validation = plan.dataset.evaluation("validation")
    return reading_flop(plan.size(weights), plan.texts(weights), validation)


def texts_of_step(plan: Runs, spec: RunSpec) -> tuple[int, float]:
    """How many queries and passages a step embeds; of passages that are drawn anew the distinct ones."""
    batch, drawn = spec.train.batch_pairs, float(spec.train.negatives.count)
    if spec.train.negatives.sharing == "query":
        pool = len(plan.dataset.splits.pool)
        drawn = -pool * math.expm1(batch * math.log1p(-min(drawn / pool, 1 - 1e-12)))
    return batch, batch * (1 + spec.train.negatives.own) + drawn


@dataclass(frozen=True)
class TextCost:
    """The mean over a collection's texts: training FLOPs and tokens of a query, and of a passage."""

    query_flop: float
    passage_flop: float
    query_tokens: float
    passage_tokens: float

    @classmethod
    def of(cls, plan: Runs, weights: str) -> TextCost:
        """What the texts of the dataset trained on cost a model."""
        texts, model = plan.texts(weights).in_training(), plan.size(weights)
        queries = texts.query_lengths(np.arange(len(plan.dataset.collection.queries)))
        passages = _passage_lengths(plan, weights, plan.dataset)
        return cls(
            model.train_flop(queries) / len(queries),
            model.train_flop(passages) / len(passages),
            float(queries.mean()),
            float(passages.mean()),
        )


def effort_of(plan: Runs, run: Trained) -> Effort:
    """The work of a run."""
    own_lr = plan.profile.models[run.model].lr
    return effort(plan, run.spec, run.train.inputs["weights"], own_lr)


def reading_share(plan: Runs, run: Trained) -> float:
    """The share of the readings in the seconds of a run."""
    work = effort_of(plan, run)
    steps = plan.estimator.training(run.spec, replace(work, readings=0))
    return 1 - steps / plan.estimator.training(run.spec, work)


def flop_of_ranking(plan: Runs, weights: str, dataset: Dataset, split: SplitName) -> float:
    """FLOPs of encoding the searched passages and the evaluation set; `plan` keeps them."""
    where = weights, dataset.evaluation(split).digest
    if where not in plan.rankings:
        model, lengths = plan.size(weights), _passage_lengths(plan, weights, dataset)
        share = searched(plan, dataset) / len(lengths)
        test = reading_flop(model, plan.texts(weights, dataset), dataset.evaluation(split))
        plan.rankings[where] = share * model.encode_flop(lengths) + test
    return plan.rankings[where]


def searched(plan: Runs, dataset: Dataset | None = None) -> int:
    """How many passages a ranking searches; of the dataset trained on, or of another."""
    wanted = plan.profile.ranking.passages
    there = len((dataset or plan.dataset).collection.passages)
    return there if wanted == "all" else min(wanted, there)


def _passage_lengths(plan: Runs, weights: str, dataset: Dataset) -> NDArray[np.int64]:
    n_passages = len(dataset.collection.passages)
    return plan.texts(weights, dataset).passage_lengths(np.arange(n_passages))
