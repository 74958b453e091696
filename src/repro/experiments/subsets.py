"""What data is this?  Counts, lengths, duplicates, and how near evaluation stands to training."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from repro.data.dataset import Dataset
from repro.data.similarity import shingles
from repro.data.text import normal, words

SHINGLE_WORDS = 4  # as in the search for near-duplicates
BLOCK = 200  # evaluation passages compared at once with all training passages: bounds the memory
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Subsets:
    """The splits of a dataset in numbers.

    splits: a row a split with pairs, queries, passages, components.  lengths: words of each query and
    passage in `train` and `validation` (columns text, split, words).  overlap: a row an evaluation
    split with what it shares with train (identical queries, identical passages, components).
    nearest: split -> float64 [pairs], Jaccard similarity (word 4-grams) of the evaluation passage to
    the nearest training passage.  components: sizes of the near-duplicate components, largest first.
    """

    splits: pd.DataFrame
    lengths: pd.DataFrame
    overlap: pd.DataFrame
    nearest: dict[str, Array]
    components: NDArray[np.int64]
    dropped: dict[str, int]
    repaired: dict[str, int]
    official: bool = (
        False  # the test split is the collection's own: what it shares is only reported
    )

    @property
    def apart(self) -> bool:
        """Whether no query, passage or component of a split drawn for evaluation stands in train too."""
        drawn = self.overlap[self.overlap["split"] != "test"] if self.official else self.overlap
        return not drawn.drop(columns="split").to_numpy().any()

    def removed(self) -> pd.DataFrame:
        """What was dropped or repaired between source and collection, a row a reason.

        Then what an official test split shares with train, which is neither.
        """
        rows = [("dropped", *item) for item in self.dropped.items()]
        rows += [("repaired", *item) for item in self.repaired.items()]
        test = self.overlap[self.overlap["split"] == "test"] if self.official else self.overlap[:0]
        for name in test.columns.drop("split"):
            count = int(test[name].sum())
            rows += [("reported", f"{name} of the official test that stand in train", count)]
        return pd.DataFrame(rows, columns=["what", "reason", "count"])


def describe(dataset: Dataset) -> Subsets:
    """Look at every split of `dataset`; a few seconds for some 20,000 pairs."""
    names = [name for name in _SPLITS if len(getattr(dataset.splits, name))]
    evaluated = [name for name in ("validation", "test") if name in names]
    return Subsets(
        pd.DataFrame([_count(dataset, name) for name in names]),
        pd.concat([_lengths(dataset, name) for name in ("train", "validation")], ignore_index=True),
        pd.DataFrame([_overlap(dataset, name) for name in names if name in _HELD_APART]),
        {name: nearest(dataset, getattr(dataset.splits, name)) for name in evaluated},
        np.sort(np.bincount(dataset.component_of_passage))[::-1],
        dict(dataset.collection.dropped),
        dict(dataset.collection.repaired),
        official=dataset.params.splits.official is not None,
    )


def examples(dataset: Dataset, split: str = "validation", count: int = 3) -> pd.DataFrame:
    """The first `count` pairs of a split: query, and the beginning of its passage."""
    pairs = dataset.collection.pairs[getattr(dataset.splits, split)[:count]]
    rows = [(dataset.collection.queries[q], dataset.collection.passages[p]) for q, p in pairs]
    short = [
        (query, f"{passage[:200]} …" if len(passage) > 200 else passage) for query, passage in rows
    ]
    return pd.DataFrame(short, columns=["query", "passage that answers it"])


def nested(dataset: Dataset, sizes: list[int]) -> bool:
    """Whether each data size's pairs are the first ones of every larger one."""
    subsets = [dataset.splits.subset(size) for size in sorted(sizes)]
    return all(np.array_equal(small, large[: len(small)]) for small, large in pairwise(subsets))


def chance_nats(negatives: int) -> float:
    """Contrastive entropy of equal scores: ln(1 + negatives)."""
    return math.log(1 + negatives)


def nearest(dataset: Dataset, pairs: NDArray[np.int32]) -> Array:
    """float64 [pairs]: Jaccard similarity of the passage of each pair to the nearest training passage.

    pairs: indices of judged pairs.
    """
    texts, judged = dataset.collection.passages, dataset.collection.pairs
    asked, trained = judged[pairs, 1], np.unique(judged[dataset.splits.train, 1])
    sets = shingles([texts[i] for i in (*asked, *trained)], SHINGLE_WORDS)
    size = np.diff(sets.indptr)
    one, other = sets[: len(asked)], sets[len(asked) :].T.tocsc()
    best = np.zeros(len(asked))
    for start in range(0, len(asked), BLOCK):
        shared = (one[start : start + BLOCK] @ other).tocoo()
        row, column = shared.coords
        row = row + start
        union = size[row] + size[len(asked) + column] - shared.data
        np.maximum.at(best, row, shared.data / union)
    return best


_SPLITS = {
    "train": "training subsets, prefixes of one permutation",
    "validation": "chooses the checkpoint, gives MAEL",
    "test": "reported entropy and ranking",
    "tuning": "learning rates and recipes",
    "generator": "kept for training a query generator",
    "held_out": "whole groups, evaluation out of domain",
}
_HELD_APART = ("validation", "test", "tuning", "held_out")


def _count(dataset: Dataset, split: str) -> dict[str, int | str]:
    pairs = dataset.collection.pairs[getattr(dataset.splits, split)]
    passages = np.unique(pairs[:, 1])
    return {
        "split": split,
        "pairs": len(pairs),
        "queries": len(np.unique(pairs[:, 0])),
        "passages": len(passages),
        "components": len(np.unique(dataset.component_of_passage[passages])),
        "used for": _SPLITS[split],
    }


def _lengths(dataset: Dataset, split: str) -> pd.DataFrame:
    collection = dataset.collection
    pairs = collection.pairs[getattr(dataset.splits, split)]
    parts = {"query": (collection.queries, 0), "passage": (collection.passages, 1)}
    return pd.concat(
        [
            pd.DataFrame(
                {"text": kind, "split": split, "words": [len(words(texts[i])) for i in index]}
            )
            for kind, (texts, column) in parts.items()
            for index in [np.unique(pairs[:, column])]
        ]
    )


def _overlap(dataset: Dataset, split: str) -> dict[str, int | str]:
    """How many queries, passages and components of `split` stand in train too."""
    collection, component = dataset.collection, dataset.component_of_passage
    train = collection.pairs[dataset.splits.train]
    there = collection.pairs[getattr(dataset.splits, split)]

    def shared(texts: Sequence[str], column: int) -> int:
        known = {normal(texts[i]) for i in np.unique(train[:, column])}
        return sum(normal(texts[i]) in known for i in np.unique(there[:, column]))

    both = np.intersect1d(component[train[:, 1]], component[there[:, 1]])
    return {
        "split": split,
        "identical queries": shared(collection.queries, 0),
        "identical passages": shared(collection.passages, 1),
        "near-duplicate components": len(both),
    }
