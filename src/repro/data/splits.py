"""Splits of the judged pairs: nothing of an evaluation split comes near to what is trained on.

The unit is the block: all pairs that hang together by a query (or an identical one), a passage or a
component of near-duplicate passages.  A block goes whole into one split; giant blocks go to train.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydantic import Field

from repro.data import arrays
from repro.data.collection import Collection
from repro.data.duplicates import components
from repro.data.text import normal
from repro.params import Params, UserError
from repro.seeds import stream

RULES = 1  # raise it when the drawing changes on purpose
EVALUATED = ("test", "validation", "tuning")
GIANT = 20  # a block with more than this part (1/20) of the smallest split goes to train
GIANT_LEAST = 5  # pairs; but in a small collection a block up to this size is no giant
RESERVED = 10  # one in ten unjudged passages is kept for the pools of the evaluation sets


class SplitSizes(Params):
    """Pairs in each split; what is left trains, and must be `train` at least."""

    validation: int = Field(default=600, ge=1, le=10**6)
    test: int = Field(default=1000, ge=1, le=10**6)
    tuning: int = Field(default=3000, ge=1, le=10**6)
    generator: int = Field(default=2000, ge=0, le=10**6)  # kept for training a query generator
    held_out: int = Field(
        default=1700, ge=0, le=10**6
    )  # whole groups, for evaluation out of domain: about
    train: int = Field(default=10240, ge=1, le=10**9)


@dataclass(frozen=True)
class Splits:
    """Pair indices (int32, each in a seeded order) of each split, and two sets of passage indices.

    `pool`: the passages that training negatives come from; it does not depend on how many pairs are
    trained on, and no block of an evaluated, held-out or generator pair reaches into it.
    `reserve`: further passages that neither train nor answer an evaluated query.
    `held_out_groups`: the groups whose pairs are held out.
    """

    validation: np.ndarray
    test: np.ndarray
    tuning: np.ndarray
    generator: np.ndarray
    held_out: np.ndarray
    train: np.ndarray
    pool: np.ndarray
    reserve: np.ndarray
    held_out_groups: tuple[str, ...]
    digest: str

    def subset(self, n_pairs: int) -> np.ndarray:
        """int32 [n_pairs]: the training pairs of a run; a smaller subset is a prefix of a larger.

        Raises `UserError` where there are not as many.
        """
        if not 1 <= n_pairs <= len(self.train):
            raise UserError(
                f"a training subset of {n_pairs:,} pairs is wanted; there are {len(self.train):,}",
                remedy=f"choose data sizes from 1 to {len(self.train):,}",
            )
        return self.train[:n_pairs]

    @property
    def counts(self) -> dict[str, int]:
        """The size of each split, of the pool and of the reserve."""
        return {name: len(array) for name, array in self._arrays().items()}

    def save(self, folder: Path) -> None:
        """Write each array as .npy and the rest as JSON."""
        arrays.save(folder, self._arrays())
        about = {
            "held_out_groups": list(self.held_out_groups),
            "digest": self.digest,
            **self.counts,
        }
        (folder / "splits.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> Splits:
        """The splits that `save` wrote."""
        about = json.loads((folder / "splits.json").read_text(encoding="utf-8"))
        loaded = {name: arrays.load(folder, name) for name in _ARRAYS}
        return cls(
            **loaded, held_out_groups=tuple(about["held_out_groups"]), digest=about["digest"]
        )

    def _arrays(self) -> dict[str, np.ndarray]:
        return {name: getattr(self, name) for name in _ARRAYS}


_ARRAYS = ("validation", "test", "tuning", "generator", "held_out", "train", "pool", "reserve")


def draw_splits(
    collection: Collection, component: np.ndarray, sizes: SplitSizes, seed: int
) -> Splits:
    """The splits of `collection`, whose passages have `component` int32 [n_passages].

    Raises `UserError`, with the sizes that would fit, where the collection is too small.
    """
    held_out_groups = _held_out_groups(collection, component, sizes, seed)
    held = np.array([group in held_out_groups for group in collection.groups], bool)
    split = _assign(collection, component, held, sizes, seed)
    order = stream(seed, "splits", "order")
    drawn = {
        name: order.permutation(np.flatnonzero(split == name)).astype(np.int32)
        for name in ("validation", "test", "tuning", "generator", "held_out", "train")
    }
    pool, reserve = _pools(collection, component, held, drawn, seed)
    found = {**drawn, "pool": pool, "reserve": reserve}
    return Splits(
        **found, held_out_groups=tuple(sorted(held_out_groups)), digest=arrays.digest(found)
    )


def blocks(collection: Collection, component: np.ndarray, pair: np.ndarray) -> np.ndarray:
    """int32 [n_components]: the block of each component under the pairs in `pair` (bool)."""
    n_components = int(component.max(initial=-1)) + 1
    number: dict[str, int] = {}
    text = [number.setdefault(normal(query), len(number)) for query in collection.queries]
    query = n_components + np.array(text, np.int64)
    chosen = collection.pairs[pair]
    links = np.stack([query[chosen[:, 0]], component[chosen[:, 1]]], axis=1)
    return components(links, n_components + len(number))[:n_components]


def _held_out_groups(
    collection: Collection, component: np.ndarray, sizes: SplitSizes, seed: int
) -> set[str]:
    """Groups in seeded order, none with over a fifth of the wanted pairs, until that is enough."""
    if not sizes.held_out:
        return set()
    block = blocks(collection, component, np.ones(len(collection.pairs), bool))
    groups_of_block: dict[int, set[str]] = defaultdict(set)
    for passage, group in enumerate(collection.groups):
        groups_of_block[int(block[component[passage]])].add(group)
    own: dict[str, int] = defaultdict(int)  # pairs of a group whose block holds no other group
    for passage in collection.pairs[:, 1].tolist():
        if len(groups_of_block[int(block[component[passage]])]) == 1:
            own[collection.groups[passage]] += 1
    names = sorted(name for name in own if name and own[name] <= sizes.held_out // 5)
    chosen: set[str] = set()
    found = 0
    for index in stream(seed, "splits", "held out").permutation(len(names)).tolist():
        if found + own[names[index]] <= sizes.held_out:
            chosen.add(names[index])
            found += own[names[index]]
    if found < 0.9 * sizes.held_out:
        raise UserError(
            f"{sizes.held_out:,} pairs of whole groups are to be held out; "
            f"the groups of {collection.name} that are small enough have {found:,}",
            remedy=f"held_out: {found} or less (0 for a collection without groups)",
        )
    return chosen


def _assign(
    collection: Collection, component: np.ndarray, held: np.ndarray, sizes: SplitSizes, seed: int
) -> np.ndarray:
    """The name of each pair's split; "" where a held-out group's block reaches beyond them."""
    pair_held = held[collection.pairs[:, 1]]
    split = np.full(len(pair_held), "", dtype="<U10")
    everywhere = blocks(collection, component, np.ones(len(pair_held), bool))
    passage_block = everywhere[component]
    mixed = np.intersect1d(passage_block[held], passage_block[~held])
    split[pair_held & ~np.isin(passage_block[collection.pairs[:, 1]], mixed)] = "held_out"

    inside = np.flatnonzero(~pair_held)
    block = blocks(collection, component, ~pair_held)[component[collection.pairs[inside, 1]]]
    names, block = np.unique(block, return_inverse=True)
    size = np.bincount(block, minlength=len(names))
    left = {
        name: getattr(sizes, name) for name in (*EVALUATED, "generator") if getattr(sizes, name)
    }
    giant = max(min(left.values()) // GIANT, GIANT_LEAST)
    home = np.full(len(names), "train", dtype="<U10")
    for candidate in stream(seed, "splits", "blocks").permutation(len(names)).tolist():
        if size[candidate] > giant:
            continue
        for name, room in left.items():
            if size[candidate] <= room:
                home[candidate], left[name] = name, room - int(size[candidate])
                break
    split[inside] = home[block]
    _check(collection.name, split, sizes)
    return split


def _check(name: str, split: np.ndarray, sizes: SplitSizes) -> None:
    wanted = {part: getattr(sizes, part) for part in (*EVALUATED, "generator", "train")}
    found = {part: int((split == part).sum()) for part in wanted}
    exact = all(found[part] == wanted[part] for part in wanted if part != "train")
    if exact and found["train"] >= wanted["train"]:
        return
    there, needed = sum(found.values()), sum(wanted.values())
    fit = {part: max(int(0.9 * size * there / needed), 1) for part, size in wanted.items() if size}
    raise UserError(
        f"{name} is too small for its splits: they need {needed:,} pairs, it has {there:,} "
        f"(found {', '.join(f'{part} {count:,}' for part, count in found.items())})",
        remedy="these sizes would fit: "
        + ", ".join(f"{part}: {size}" for part, size in fit.items()),
    )


def _pools(
    collection: Collection,
    component: np.ndarray,
    held: np.ndarray,
    drawn: dict[str, np.ndarray],
    seed: int,
) -> tuple[np.ndarray, np.ndarray]:
    """The pool of training negatives and the reserve: int32 passage indices in rising order."""
    block = blocks(collection, component, ~held[collection.pairs[:, 1]])[component]
    n_blocks = int(block.max(initial=-1)) + 1

    def touched(*names: str) -> np.ndarray:
        mark = np.zeros(n_blocks, bool)
        for name in names:
            mark[block[collection.pairs[drawn[name], 1]]] = True
        return mark

    evaluated, generator, train = (
        touched(*EVALUATED, "held_out"),
        touched("generator"),
        touched("train"),
    )
    held_block = np.zeros(n_blocks, bool)
    held_block[block[held]] = True
    chance = stream(seed, "splits", "reserve").integers(RESERVED, size=n_blocks) == 0
    unjudged = ~(evaluated | generator | train | held_block)
    reserve = generator | (unjudged & chance)
    pool = train | (unjudged & ~chance)
    return (
        np.flatnonzero(pool[block] & ~held).astype(np.int32),
        np.flatnonzero(reserve[block] & ~held).astype(np.int32),
    )
