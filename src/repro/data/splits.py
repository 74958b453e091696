"""Splits of the judged pairs: nothing of an evaluation split comes near to what is trained on.

The unit is the block (`repro.data.blocks`): it goes whole into one split; giant blocks go to train.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydantic import Field

from repro.data import arrays
from repro.data.blocks import find_blocks
from repro.data.collection import Collection
from repro.params import Params, UserError
from repro.seeds import stream

RULES = 4  # raise it when the drawing changes on purpose
DRAWN = ("test", "validation", "tuning", "generator")  # by block, in this order; the rest trains
EVALUATED = ("test", "validation", "tuning", "held_out")
GIANT = 100  # a block with more than this part (1/100) of the smallest split goes to train
GIANT_LEAST = 5  # pairs; but in a small collection a block up to this size is no giant
RESERVED = 10  # one in ten blocks without a judgement is kept for the pools of evaluation sets


class SplitSizes(Params):
    """Pairs in each split; what is left trains, and must be `train` at least."""

    validation: int = Field(default=600, ge=1, le=10**6)
    test: int = Field(default=1000, ge=1, le=10**6)
    tuning: int = Field(default=3000, ge=1, le=10**6)
    generator: int = Field(default=2000, ge=0, le=10**6)  # kept for training a query generator
    held_out: int = Field(default=1700, ge=0, le=10**6)  # about: whole groups, for out of domain
    train: int = Field(default=10240, ge=1, le=10**9)


@dataclass(frozen=True)
class Splits:
    """Pair indices (int32, each in a seeded order) of each split, and two sets of passage indices.

    `pool`: the passages that training negatives come from; it does not depend on how many pairs are
    trained on, and no block of an evaluated, held-out or generator pair reaches into it.
    `reserve`: further passages that neither train nor answer an evaluated query.
    `held_out_groups`: the groups whose pairs are held out.  `unused`: how many of their pairs are in
    no split, because their block reaches into another group.
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
    unused: int
    digest: str

    def subset(self, n_pairs: int, seed: int | None = None) -> np.ndarray:
        """int32 [n_pairs]: the training pairs of a run; a smaller subset is a prefix of a larger.

        seed: of another order of the training pairs than the data seed's own.
        Raises `UserError` where there are not as many.
        """
        if not 1 <= n_pairs <= len(self.train):
            raise UserError(
                f"a training subset of {n_pairs:,} pairs is wanted; there are {len(self.train):,}",
                remedy=f"choose data sizes from 1 to {len(self.train):,}",
            )
        order = self.train
        if seed is not None:
            order = stream(seed, "subset").permutation(order)
        return order[:n_pairs]

    @property
    def counts(self) -> dict[str, int]:
        """The size of each split, of the pool and of the reserve, and what is unused."""
        sizes = {name: len(getattr(self, name)) for name in _ARRAYS}
        return {**sizes, "unused": self.unused}

    def save(self, folder: Path) -> None:
        """Write each array as .npy and the rest as JSON."""
        arrays.save(folder, {name: getattr(self, name) for name in _ARRAYS})
        about = {"held_out_groups": self.held_out_groups, "digest": self.digest, **self.counts}
        (folder / "splits.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> Splits:
        """The splits that `save` wrote."""
        about = json.loads((folder / "splits.json").read_text(encoding="utf-8"))
        return cls(
            **{name: arrays.load(folder, name) for name in _ARRAYS},
            held_out_groups=tuple(about["held_out_groups"]),
            unused=about["unused"],
            digest=about["digest"],
        )


_ARRAYS = ("validation", "test", "tuning", "generator", "held_out", "train", "pool", "reserve")


def draw_splits(
    collection: Collection, component: np.ndarray, sizes: SplitSizes, seed: int
) -> Splits:
    """The splits of `collection`, whose passages have `component` int32 [n_passages].

    Raises `UserError`, with the sizes that would fit, where the collection is too small.
    """
    groups = _held_out_groups(collection, component, sizes.held_out, seed)
    held = np.array([group in groups for group in collection.groups], bool)
    split = _assign(collection, component, held, sizes, seed)
    _check(collection.name, split, sizes)
    order = stream(seed, "splits", "order")
    found = {
        name: order.permutation(np.flatnonzero(split == name)).astype(np.int32)
        for name in ("validation", "test", "tuning", "generator", "held_out", "train")
    }
    found |= _pools(collection, component, held, split, seed)
    return Splits(
        **found,
        held_out_groups=tuple(sorted(groups)),
        unused=int((split == "").sum()),
        digest=arrays.digest(found),
    )


def _held_out_groups(
    collection: Collection, component: np.ndarray, wanted: int, seed: int
) -> set[str]:
    """Groups in seeded order, none with over a fifth of the wanted pairs, until that is enough."""
    if not wanted:
        return set()
    names, group = np.unique(collection.groups, return_inverse=True)
    blocks = find_blocks(collection, component)
    known = np.unique(np.stack([blocks.of_passage, group], axis=1), axis=0)
    alone = np.bincount(known[:, 0])[blocks.of_pair] == 1  # the block holds no other group
    own = Counter(group[collection.pairs[alone, 1]].tolist())
    small = sorted(each for each, n in own.items() if names[each] and n <= wanted // 5)
    chosen: set[str] = set()
    found = 0
    for each in stream(seed, "splits", "held out").permutation(small).tolist():
        if found + own[each] <= wanted:
            chosen.add(str(names[each]))
            found += own[each]
    if found < 0.9 * wanted:
        raise UserError(
            f"{wanted:,} pairs of whole groups are to be held out; "
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
    blocks = find_blocks(collection, component)
    mixed = np.intersect1d(blocks.of_passage[held], blocks.of_passage[~held])
    split[pair_held & ~np.isin(blocks.of_pair, mixed)] = "held_out"

    inside = find_blocks(collection, component, ~pair_held).of_pair[~pair_held]
    names, block = np.unique(inside, return_inverse=True)
    size = np.bincount(block, minlength=len(names)).tolist()
    room = {name: getattr(sizes, name) for name in DRAWN if getattr(sizes, name)}
    giant = max(min(room.values()) // GIANT, GIANT_LEAST)
    home = np.full(len(names), "train", dtype="<U10")
    for candidate in stream(seed, "splits", "blocks").permutation(len(names)).tolist():
        fitting = (name for name, left in room.items() if size[candidate] <= min(left, giant))
        name = next(fitting, None)
        if name:
            home[candidate] = name
            room[name] -= size[candidate]
    split[~pair_held] = home[block]
    return split


def _check(name: str, split: np.ndarray, sizes: SplitSizes) -> None:
    wanted = {part: getattr(sizes, part) for part in (*DRAWN, "train")}
    found = {part: int((split == part).sum()) for part in wanted}
    if all(found[part] == wanted[part] for part in DRAWN) and found["train"] >= wanted["train"]:
        return
    there, needed = sum(found.values()), sum(wanted.values())
    if there >= needed:
        raise UserError(
            f"the splits of {name} cannot be filled without tearing apart pairs that share a query, "
            "a passage or near-duplicates: "
            + ", ".join(f"{part} {found[part]:,} of {wanted[part]:,}" for part in wanted),
            remedy="lower the sizes (or raise duplicates.join_jaccard, where that is the cause)",
        )
    fit = {part: max(int(0.9 * size * there / needed), 1) for part, size in wanted.items() if size}
    raise UserError(
        f"{name} is too small: its splits need {needed:,} pairs, there are {there:,} besides those "
        "held out",
        remedy="these would fit: " + ", ".join(f"{part}: {size}" for part, size in fit.items()),
    )


def _pools(
    collection: Collection, component: np.ndarray, held: np.ndarray, split: np.ndarray, seed: int
) -> dict[str, np.ndarray]:
    """The pool of training negatives and the reserve: int32 passage indices in rising order."""
    blocks = find_blocks(collection, component, ~held[collection.pairs[:, 1]])
    evaluated = blocks.touched(np.isin(split, EVALUATED))
    generator = blocks.touched(split == "generator") & ~evaluated
    train = blocks.touched(split == "train") & ~evaluated
    unjudged = ~blocks.touched(np.ones(len(split), bool))
    kept = stream(seed, "splits", "reserve").integers(RESERVED, size=blocks.count) == 0
    chosen = {
        "pool": train | (unjudged & ~kept),
        "reserve": generator | (unjudged & kept),
    }
    return {
        name: np.flatnonzero(mark[blocks.of_passage] & ~held).astype(np.int32)
        for name, mark in chosen.items()
    }
