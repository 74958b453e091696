"""`splits: auto`: sizes of splits and evaluation sets by one rule, for a collection of any size.

Test, validation and tuning take a tenth of the pairs each, the generator split a twentieth, none more
than its cap; or as much of it as pairs that hang together fill.  The rest trains.  Validation and test
are evaluated whole, two fifths of tuning.  K is the 256 of the papers, or the largest power of two that
each set has the passages for.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from pydantic import ValidationError

from repro.data.collection import Collection
from repro.data.evaluation import EvaluationParams, EvaluationSize, SplitName, draw_evaluation
from repro.data.splits import Splits, SplitSizes, draw_splits, filled
from repro.errors import UserError

SHARES = {"test": 0.1, "validation": 0.1, "tuning": 0.1, "generator": 0.05}
CAPS = {"test": 1000, "validation": 600, "tuning": 3000, "generator": 2000}  # pairs, as apidocs has
LEAST = 40  # pairs in validation and test: fewer tell little of a loss
TUNED_ON = 0.4  # of the tuning split is evaluated, the rest of it trains
K = (256, 128, 64, 32, 16, 8)


def choose(
    collection: Collection, component: np.ndarray, evaluation: EvaluationParams, seed: int
) -> tuple[SplitSizes, EvaluationParams]:
    """Sizes that `collection` fills; `evaluation` says K where it was stated, and is else replaced.

    Raises `UserError` where the collection is too small, or hangs together too much.
    """
    sizes, splits = _splits(collection, component, seed)
    stated = evaluation.negatives if "negatives" in evaluation.model_fields_set else None
    fault = UserError("no number of negatives fits")
    for negatives in K if stated is None else (stated,):
        try:
            found = EvaluationParams(
                negatives=negatives, sets=dict(_sets(collection, splits, negatives))
            )
            for name in found.sets:
                draw_evaluation(collection, component, splits, name, found, seed)
        except ValidationError as error:
            what, _, remedy = str(error.errors()[0]["msg"]).partition("\n  remedy: ")
            fault = UserError(what.removeprefix("Value error, "), remedy=remedy)
        except UserError as error:
            fault = error
        else:
            return sizes, found
    raise UserError(
        f"{collection.name} has too few passages beside those that train: {fault.what}",
        remedy="leave evaluation.negatives out: the largest K that fits is then taken"
        if stated
        else "add passages, if without a query, or state the splits yourself",
    )


def _splits(collection: Collection, component: np.ndarray, seed: int) -> tuple[SplitSizes, Splits]:
    there = len(collection.pairs)
    if there * SHARES["validation"] < LEAST:
        raise UserError(
            f"{collection.name} has {there:,} pairs; `splits: auto` needs "
            f"{LEAST / SHARES['validation']:,.0f} or more",
            remedy="add pairs, or state the sizes of the splits and evaluation sets yourself "
            "(params/datasets/beir-example.yaml)",
        )
    wanted = {name: min(int(there * share), CAPS[name]) for name, share in SHARES.items()}
    found = filled(collection, component, wanted, seed)
    while found != wanted and min(found["test"], found["validation"], found["tuning"]) > 0:
        wanted, found = (
            found,
            filled(collection, component, found, seed),
        )  # what was torn is smaller
    if min(found["test"], found["validation"]) < LEAST or 2 * found["tuning"] < LEAST:
        raise UserError(
            f"the {there:,} pairs of {collection.name} hang together too much for `splits: auto` (by "
            "shared passages, queries or near-duplicates, which no split may tear apart): found "
            + ", ".join(f"{name} {size:,}" for name, size in found.items()),
            remedy="raise min_score where judgements are graded, raise duplicates.join_jaccard, or "
            "state smaller splits (params/datasets/beir-example.yaml)",
        )
    rest = {"held_out": 0, "train": there - sum(found.values())}
    sizes = SplitSizes.model_validate({**found, **rest})
    return sizes, draw_splits(collection, component, sizes, seed)


def _sets(
    collection: Collection, splits: Splits, negatives: int
) -> Iterator[tuple[SplitName, EvaluationSize]]:
    """Each set with its size: twice its positives, or what K asks for, as far as there are passages."""
    for name in ("validation", "test", "tuning"):
        pairs: np.ndarray = getattr(splits, name)
        evaluated = pairs[: int(TUNED_ON * len(pairs))] if name == "tuning" else pairs
        own = np.unique(collection.pairs[evaluated, 1])
        others = np.union1d(collection.pairs[pairs, 1], splits.reserve)
        more = len(np.setdiff1d(others, own))
        if name == "tuning":
            more //= 2  # what the set takes is lost to training on the tuning split
        passages = min(len(own) + more, max(2 * len(own), 2 * (negatives + 1)))
        yield name, EvaluationSize(pairs=len(evaluated), passages=passages)
