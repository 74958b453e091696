"""The evaluation set of a split: its pairs, and for each the K negatives, drawn once and stored."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from pydantic import Field, field_validator, model_validator

from repro.data import arrays
from repro.data.collection import Collection
from repro.data.negatives import Judgements, forbidden
from repro.data.splits import Splits
from repro.errors import UserError
from repro.params import Params
from repro.seeds import stream

RULES = 1  # raise it when the drawing changes on purpose
BLOCK = 1024  # pairs drawn at once: bounds the memory

SplitName = Literal["validation", "test", "tuning", "held_out"]


class EvaluationSize(Params):
    """How much of a split is evaluated, and over how many passages."""

    pairs: int = Field(ge=1, le=10**6)  # the first ones of the split
    passages: int = Field(ge=2, le=10**7)  # positives and pool together: each is encoded once


_SETS: dict[SplitName, EvaluationSize] = {
    "validation": EvaluationSize(pairs=600, passages=1000),
    "test": EvaluationSize(pairs=1000, passages=2000),
    "tuning": EvaluationSize(pairs=600, passages=1000),
}


class EvaluationParams(Params):
    """The evaluation sets of a dataset; K is the papers' 256 in all of them."""

    negatives: int = Field(default=256, ge=1, le=10**6)
    sets: dict[SplitName, EvaluationSize] = Field(default=_SETS, min_length=1)

    @field_validator("sets", mode="before")
    @classmethod
    def _never_train(cls, sets: Any) -> Any:
        if isinstance(sets, dict) and "train" in sets:
            raise ValueError(
                "the training split cannot be an evaluation split\n"
                f"  remedy: allowed: {', '.join(get_args(SplitName))}"
            )
        return sets

    @model_validator(mode="after")
    def _enough_passages(self) -> EvaluationParams:
        for name, size in self.sets.items() if "sets" in self.model_fields_set else ():
            if size.passages <= self.negatives:
                raise ValueError(
                    f"{self.negatives} negatives a pair cannot be drawn from the "
                    f"{size.passages} passages of the set {name}\n"
                    f"  remedy: passages: {self.negatives + 1} or more (many more is better)"
                )
        return self


@dataclass(frozen=True)
class EvaluationSet:
    """`m` judged pairs with `K` negatives each, laid out so that a passage is encoded once.

    `passages` int32 [n]: passage indices of the collection, each once.  `queries` int32 [m]: query
    indices.  `positive` int32 [m] and `negatives` int32 [m, K]: positions in `passages`.  `pairs`
    int32 [m]: the pair indices.  No negative shares a component with a positive of its query.
    """

    passages: np.ndarray
    queries: np.ndarray
    positive: np.ndarray
    negatives: np.ndarray
    pairs: np.ndarray
    digest: str

    def save(self, folder: Path) -> None:
        """Write each array as .npy, and the digest as JSON."""
        arrays.save(folder, {name: getattr(self, name) for name in _ARRAYS})
        (folder / "evaluation.json").write_text(json.dumps({"digest": self.digest}) + "\n")

    @classmethod
    def load(cls, folder: Path) -> EvaluationSet:
        """The set that `save` wrote."""
        about = json.loads((folder / "evaluation.json").read_text(encoding="utf-8"))
        return cls(**{name: arrays.load(folder, name) for name in _ARRAYS}, digest=about["digest"])


_ARRAYS = ("passages", "queries", "positive", "negatives", "pairs")


def draw_evaluation(
    collection: Collection,
    component: np.ndarray,
    splits: Splits,
    name: SplitName,
    params: EvaluationParams,
    seed: int,
) -> EvaluationSet:
    """The evaluation set of the split `name`; raises `UserError` where too little is there for it.

    The pool is the positives of the evaluated pairs and, drawn at random, other passages of the
    split and of the reserve: none of them is ever trained on.
    """
    random = stream(seed, "evaluation", name)
    pairs = _pairs(getattr(splits, name), params.sets[name], name)
    queries, positives = collection.pairs[pairs].T
    passages = _passages(collection, splits, name, positives, params.sets[name], random)
    judgements = Judgements.of(collection)
    negatives = np.empty((len(pairs), params.negatives), np.int32)
    for start in range(0, len(pairs), BLOCK):
        part = slice(start, start + BLOCK)
        mask = forbidden(component, judgements.positives(queries[part]), passages)
        eligible = int((~mask).sum(axis=1).min())
        if eligible < params.negatives:
            raise UserError(
                f"{params.negatives:,} negatives a pair are wanted for {name}; "
                f"over {len(passages):,} passages a pair has {eligible:,} that are eligible",
                remedy="raise `passages` of the evaluation set or lower `negatives`",
            )
        lot = np.where(mask, 2.0, random.random(mask.shape))
        negatives[part] = np.argpartition(lot, params.negatives - 1, axis=1)[:, : params.negatives]
    negatives.sort(axis=1)
    found = {
        "passages": passages,
        "queries": queries.astype(np.int32),
        "positive": np.searchsorted(passages, positives).astype(np.int32),
        "negatives": negatives,
        "pairs": pairs,
    }
    return EvaluationSet(**found, digest=arrays.digest(found))


def _pairs(split: np.ndarray, size: EvaluationSize, name: str) -> np.ndarray:
    if size.pairs > len(split):
        raise UserError(
            f"{size.pairs:,} pairs are to be evaluated; the split {name} has {len(split):,}",
            remedy=f"evaluation.sets.{name}.pairs: {len(split)} or less",
        )
    return split[: size.pairs]


def _passages(
    collection: Collection,
    splits: Splits,
    name: str,
    positives: np.ndarray,
    size: EvaluationSize,
    random: np.random.Generator,
) -> np.ndarray:
    """int32: the positives and as many others as make up the wanted number, in rising order."""
    own = np.unique(positives)
    others = np.union1d(collection.pairs[getattr(splits, name), 1], splits.reserve)
    others = np.setdiff1d(others, own)
    wanted = size.passages - len(own)
    if not 0 <= wanted <= len(others):
        raise UserError(
            f"the evaluation set {name} is to have {size.passages:,} passages; "
            f"{len(own):,} to {len(own) + len(others):,} are possible",
            remedy=f"evaluation.sets.{name}.passages: {len(own) + len(others)} or less "
            f"(not under {len(own)}), or more pairs in the split `generator`",
        )
    extra = random.choice(others, wanted, replace=False)
    return np.sort(np.concatenate([own, extra])).astype(np.int32)
