"""What is a label worth?  One model on labels of several kinds: the runs of notebook 05, and their tables.

The dataset's own labels are the grid's cells.  Labels of another kind are made first, each set once, and
the runs on them are known only then.  Answers: `label_answers`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field, ValidationInfo, field_validator

from repro.errors import UserError
from repro.experiments import section
from repro.model.files import folder_of
from repro.params import Params, distinct, rising
from repro.train.labels import maker
from repro.train.labels.kinds import ONCE, Kind, LabelSpec
from repro.train.loop import TrainParams
from repro.work.queue import Task

if TYPE_CHECKING:
    from repro.experiments.profile import Profile
    from repro.experiments.runs import Runs, Trained

# Seconds that a label takes, roughly, on a CPU; a served model's is the endpoint's affair.
SECONDS = {"ict": 1e-3, "extracted": 1e-3, "wrong": 1e-3, "doc2query": 0.3, "llm": 1.0}


class LabelsParams(Params):
    """Which kinds are compared, on which model and data sizes."""

    model: str
    kinds: Annotated[
        dict[Annotated[str, Field(pattern="^[a-z0-9][a-z0-9_-]{0,40}$")], Kind], Field(min_length=1)
    ]
    sizes: Annotated[list[Annotated[int, Field(ge=2)]], Field(min_length=2)]  # D, pairs
    seeds: Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)] = [0]
    # What labels are made from: the passages of the judged pairs, in their order, so that kinds are
    # compared on the same passages; or any passages that training may see.
    passages: Literal["positives", "random"] = "positives"
    per_passage: Annotated[int, Field(ge=1, le=100)] = 1

    _rising = field_validator("sizes")(rising)
    _distinct = field_validator("seeds")(distinct)

    @field_validator("per_passage")
    @classmethod
    def _several(cls, n: int, info: ValidationInfo) -> int:
        once = [name for name, kind in info.data.get("kinds", {}).items() if kind.kind in ONCE]
        if n > 1 and once:
            raise ValueError(
                f"`{once[0]}` gives one label a passage\n  remedy: per_passage: 1, or drop that kind"
            )
        return n

    def check(self, rates: Mapping[str, float], train: TrainParams) -> None:
        """Refuse what the profile's models, name -> learning rate, or its training cannot run."""
        section.check("labels", {"model": [self.model]}, self.sizes, rates, train)

    def later(self) -> str:
        """The runs that follow from the labels, in words."""
        n = len(self.kinds) * len(self.sizes) * len(self.seeds)
        return f"after the labels of {', '.join(self.kinds)} are made: {n} runs on them"


def specs(plan: Runs) -> dict[str, LabelSpec]:
    """Kind -> what determines its labels; raises `UserError` where a model that writes them lacks."""
    asked = plan.profile.labels
    if asked is None:
        return {}
    own = plan.dataset.params.labels
    if own in asked.kinds:
        raise UserError(
            f"labels.kinds has a `{own}`, which is what the dataset's own labels are called",
            remedy="call it otherwise",
        )
    return {
        name: LabelSpec(
            collection=plan.dataset.collection.digest,
            splits=plan.dataset.splits.digest,
            kind=kind,
            generator=plan.doors.writer(model) if (model := maker.loads(kind)) else "",
            passages=asked.passages,
            per_passage=asked.per_passage,
            sizes=asked.sizes if kind.kind == "wrong" else asked.sizes[-1:],
            seed=plan.profile.seed,
        )
        for name, kind in asked.kinds.items()
    }


def writers(profile: Profile) -> list[str]:
    """The models that write labels, by name."""
    kinds = profile.labels.kinds.values() if profile.labels else []
    return sorted({model for kind in kinds if (model := maker.loads(kind))})


def models(profile: Profile) -> set[Path]:
    """The folders of the models that write labels."""
    return {folder_of(model) for model in writers(profile)}


def tasks(plan: Runs) -> list[Task]:
    """What makes the labels, a task a kind."""
    about = plan.dataset.params.model_dump(mode="json")
    return [
        Task(
            "labels",
            spec.determined(),
            f"{name} labels",
            float(spec.count),
            {"dataset": about, "labels": spec.model_dump(mode="json")},
            seconds=spec.count * SECONDS[spec.kind.kind],
        )
        for name, spec in specs(plan).items()
    ]


def plans(plan: Runs) -> dict[str, Runs]:
    """Kind -> the runs under its labels: the dataset's own first, then those whose labels are made."""
    if plan.profile.labels is None:
        return {}
    found = {plan.dataset.params.labels: plan}
    for name, spec in specs(plan).items():
        other = plan.under(name, plan.store.key("labels", spec.determined()))
        if other is not None:
            found[name] = other
    return found


def runs(plan: Runs) -> list[Trained]:
    """The runs of the experiment that are known by now."""
    return [run for own in _by_kind(plan).values() for run in own]


def stand_ins(plan: Runs) -> list[Trained]:
    """Runs that cost what those on labels not yet made will: own labels, a few pairs fewer."""
    asked = plan.profile.labels
    if asked is None:
        return []
    least, known = plan.profile.train.batch_pairs, plans(plan)
    return [
        plan.trained(asked.model, pairs=max(least, d - 1 - k), seed=seed, ranked=False)
        for k, name in enumerate(asked.kinds)
        if name not in known
        for d in asked.sizes
        for seed in asked.seeds
    ]


def _by_kind(plan: Runs) -> dict[str, list[Trained]]:
    asked = plan.profile.labels
    return {
        name: [
            own.trained(asked.model, pairs=d, seed=seed, ranked=False)
            for d in asked.sizes
            for seed in asked.seeds
        ]
        for name, own in plans(plan).items()
        if asked
    }


def table(plan: Runs) -> pd.DataFrame:
    """One row a finished run, see `Runs.row`; with the kind of its labels."""
    rows = [
        {"kind": name, **row}
        for name, own in _by_kind(plan).items()
        for run in own
        if (row := plan.row(run)) is not None
    ]
    return pd.DataFrame(rows)


def pair_losses(plan: Runs) -> dict[tuple[str, int], NDArray[np.float64]]:
    """(kind, D) -> loss of each validation pair at the minimum, the mean over seeds, float64 [m], nats."""
    found: dict[tuple[str, int], list[NDArray[np.float64]]] = {}
    for name, own in _by_kind(plan).items():
        for run in own:
            losses = plan.pair_losses(run)
            if losses is not None:
                found.setdefault((name, run.pairs), []).append(losses)
    return {where: np.mean(each, axis=0) for where, each in found.items()}


def made(plan: Runs) -> list[dict[str, Any]]:
    """What is known of each set of labels: name, kind, labels, passages, unusable, examples; the first of
    them as they are trained on, `shown`, (query, passage)."""
    found = []
    for name, own in plans(plan).items():
        if not own.labels:
            continue
        texts, pairs = own.dataset.collection, own.dataset.splits.train[:2]
        shown = [(texts.queries[q], texts.passages[p]) for q, p in texts.pairs[pairs].tolist()]
        found.append({"name": name, **own.labels["about"], "shown": shown})
    return found
