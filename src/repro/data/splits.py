"""Splits of the judged pairs: nothing of an evaluation split comes near to what is trained on.

The unit is the block (`repro.data.blocks`): it goes whole into one split; giant blocks go to train.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from repro.data import arrays
from repro.data.blocks import find_blocks
from repro.data.collection import Collection
from repro.data.column import coded
from repro.data.official import by_block, draw_test, drawn_and_tests
from repro.data.sizes import Official, SplitSizes
from repro.errors import UserError
from repro.seeds import stream

RULES = 4  # raise it when the drawing changes on purpose
DRAWN = ("test", "validation", "tuning", "generator")  # by block, in this order; the rest trains
EVALUATED = ("test", "validation", "tuning", "held_out")
GIANT = 100  # a block with more than this part (1/100) of the smallest split goes to train
GIANT_LEAST = 5  # pairs; but in a small collection a block up to this size is no giant
RESERVED = 10  # one in ten blocks without a judgement is kept for the pools of evaluation sets


@dataclass(frozen=True)
class Splits:
    """Pair indices (int32, each in a seeded order) of each split, and two sets of passage indices.

    `pool`: the passages that training negatives come from; it does not depend on how many pairs are
    trained on, and no block of an evaluated, held-out or generator pair reaches into it.
    `reserve`: further passages that neither train nor answer an evaluated query.
    `held_out_groups`: the groups whose pairs are held out.  `unused`: how many pairs are in no split:
    their block reaches from a held-out group into another one, or they are of an official part that is
    not used, or not whole.
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
    drawn, tests = drawn_and_tests(collection, sizes.official)
    groups = _held_out_groups(collection, component, drawn, sizes.held_out, seed)
    names, group = coded(collection.groups)
    held = np.isin(group, [index for index, name in enumerate(names) if name in groups])
    split = _assign(collection, component, held, drawn, sizes, seed)
    if sizes.official:
        split[draw_test(collection.name, tests, sizes.test, seed)] = "test"
    _check(collection, component, split, sizes, seed)
    order = stream(seed, "splits", "order")
    found = {
        name: order.permutation(np.flatnonzero(split == name)).astype(np.int32)
        for name in ("validation", "test", "tuning", "generator", "held_out", "train")
    }
    found |= _pools(collection, component, held, drawn, tests, split, seed)
    return Splits(
        **found,
        held_out_groups=tuple(sorted(groups)),
        unused=int((split == "").sum()),
        digest=arrays.digest(found),
    )


def filled(
    collection: Collection,
    component: np.ndarray,
    wanted: dict[str, int],
    seed: int,
    official: Official | None = None,
) -> dict[str, int]:
    """How many pairs each of the drawn splits gets, `wanted` at the most: nothing is torn apart.

    Sizes that were found are filled when they are asked for in their turn; no group is held out.
    """
    found = wanted
    drawn, _ = drawn_and_tests(collection, official)
    none = np.zeros(len(collection.passages), bool)
    while all(found.values()):
        sizes = SplitSizes(**{"generator": 0, **found}, held_out=0, train=1, official=official)
        split = _assign(collection, component, none, drawn, sizes, seed)
        asked, found = found, {part: int((split == part).sum()) for part in found}
        if found == asked:
            break
    return found


def _held_out_groups(
    collection: Collection, component: np.ndarray, drawn: np.ndarray, wanted: int, seed: int
) -> set[str]:
    """Groups in seeded order, none with over a fifth of the wanted pairs, until that is enough."""
    if not wanted:
        return set()
    names, group = coded(collection.groups)
    blocks = find_blocks(collection, component)
    known = np.unique(np.stack([blocks.of_passage, group], axis=1), axis=0)
    alone = np.bincount(known[:, 0])[blocks.of_pair] == 1  # the block holds no other group
    alone &= drawn
    own = Counter(group[collection.pairs[alone, 1]].tolist())
    small = sorted(each for each, n in own.items() if names[each] and n <= wanted // 5)
    chosen: set[str] = set()
    found = 0
    for each in stream(seed, "splits", "held out").permutation(small).tolist():
        if found + own[each] <= wanted:
            chosen.add(names[each])
            found += own[each]
    if found < 0.9 * wanted:
        raise UserError(
            f"{wanted:,} pairs of whole groups are to be held out; "
            f"the groups of {collection.name} that are small enough have {found:,}",
            remedy=f"held_out: {found} or less (0 for a collection without groups)",
        )
    return chosen


def _assign(
    collection: Collection,
    component: np.ndarray,
    held: np.ndarray,
    drawn: np.ndarray,
    sizes: SplitSizes,
    seed: int,
) -> np.ndarray:
    """The name of each drawn pair's split; "" where a held-out group's block reaches beyond them."""
    pair_held = held[collection.pairs[:, 1]]
    split = np.full(len(pair_held), "", dtype="<U10")
    blocks = find_blocks(collection, component)
    mixed = np.intersect1d(blocks.of_passage[held], blocks.of_passage[~held])
    split[drawn & pair_held & ~np.isin(blocks.of_pair, mixed)] = "held_out"

    free = drawn & ~pair_held
    if not free.any():
        return split
    inside = find_blocks(collection, component, free).of_pair[free]
    names, block = np.unique(inside, return_inverse=True)
    size = np.bincount(block, minlength=len(names)).tolist()
    room = {
        name: getattr(sizes, name)
        for name in by_block(DRAWN, sizes.official)
        if getattr(sizes, name)
    }
    giant = max(min(room.values()) // GIANT, GIANT_LEAST)
    home = np.full(len(names), "train", dtype="<U10")
    for candidate in stream(seed, "splits", "blocks").permutation(len(names)).tolist():
        fitting = (name for name, left in room.items() if size[candidate] <= min(left, giant))
        name = next(fitting, None)
        if name:
            home[candidate] = name
            room[name] -= size[candidate]
    split[free] = home[block]
    return split


def _check(
    collection: Collection, component: np.ndarray, split: np.ndarray, sizes: SplitSizes, seed: int
) -> None:
    wanted = {part: getattr(sizes, part) for part in (*by_block(DRAWN, sizes.official), "train")}
    wanted = {part: size for part, size in wanted.items() if size}
    found = {part: int((split == part).sum()) for part in wanted}
    drawn = {part: size for part, size in wanted.items() if part != "train"}
    enough = found.get("train", 0) >= wanted.get("train", 0)
    if enough and all(found[part] == drawn[part] for part in drawn):
        return
    there, needed = sum(found.values()), sum(wanted.values())
    if there >= needed:
        loose = sum(found[part] for part in drawn)
        less = {part: loose * size // sum(drawn.values()) for part, size in drawn.items()}
        fit = filled(collection, component, less, seed, sizes.official)
        fit["train"] = min(wanted["train"], there - sum(fit.values()))
        raise UserError(
            f"the splits of {collection.name} cannot be filled without tearing apart pairs that share a "
            "query, a passage or near-duplicates: "
            + ", ".join(f"{part} {found[part]:,} of {wanted[part]:,}" for part in wanted),
            remedy=(
                f"these would fit: {_in_words(fit)}" if all(fit.values()) else "lower the sizes"
            )
            + "; or raise min_score, where judgements are graded, or duplicates.join_jaccard",
        )
    fit = {part: max(int(0.9 * size * there / needed), 1) for part, size in wanted.items()}
    raise UserError(
        f"{collection.name} is too small: its splits need {needed:,} pairs, there are {there:,} besides "
        "those held out",
        remedy=f"these would fit: {_in_words(fit)}",
    )


def _in_words(sizes: dict[str, int]) -> str:
    return ", ".join(f"{part}: {size}" for part, size in sizes.items())


def _pools(
    collection: Collection,
    component: np.ndarray,
    held: np.ndarray,
    drawn: np.ndarray,
    tests: np.ndarray,
    split: np.ndarray,
    seed: int,
) -> dict[str, np.ndarray]:
    """The pool of training negatives and the reserve: int32 passage indices in rising order.

    Of official tests (`tests`) no near-duplicate of a positive is in either.
    """
    blocks = find_blocks(collection, component, drawn & ~held[collection.pairs[:, 1]])
    evaluated = blocks.touched(drawn & np.isin(split, EVALUATED))
    generator = blocks.touched(split == "generator") & ~evaluated
    train = blocks.touched(split == "train") & ~evaluated
    unjudged = ~blocks.touched(np.ones(len(split), bool))
    kept = stream(seed, "splits", "reserve").integers(RESERVED, size=blocks.count) == 0
    chosen = {
        "pool": train | (unjudged & ~kept),
        "reserve": generator | (unjudged & kept),
    }
    out = held | np.isin(component, component[collection.pairs[tests, 1]])
    return {
        name: np.flatnonzero(mark[blocks.of_passage] & ~out).astype(np.int32)
        for name, mark in chosen.items()
    }
