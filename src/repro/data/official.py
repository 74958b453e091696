"""A collection's own splits: which parts of its judgements train, and which test."""

from __future__ import annotations

import numpy as np

from repro.data.collection import Collection
from repro.data.sizes import Official
from repro.errors import UserError, nearest
from repro.seeds import stream


def drawn_and_tests(
    collection: Collection, official: Official | None
) -> tuple[np.ndarray, np.ndarray]:
    """bool [n_pairs], twice: the pairs of the parts that train, and of those that test.

    Without official splits all pairs and none.  Raises `UserError` where the collection has no such
    parts.
    """
    if official is None:
        every = np.ones(len(collection.pairs), bool)
        return every, ~every
    for name in (*official.train, *official.test):
        if name not in collection.parts:
            there = list(collection.parts)
            raise UserError(
                f"no judgement of {collection.name} is of the part `{name}`",
                remedy=nearest(name, there) if there else "leave splits.official out",
            )
    names = np.array(collection.parts)[collection.part]
    return np.isin(names, official.train), np.isin(names, official.test)


def by_block(names: tuple[str, ...], official: Official | None) -> tuple[str, ...]:
    """The splits that are drawn by block: all of them, or all but an official test."""
    return tuple(name for name in names if not (official and name == "test"))


def draw_test(name: str, tests: np.ndarray, wanted: int, seed: int) -> np.ndarray:
    """int [wanted]: the indices of so many of the pairs in `tests` (bool [n_pairs])."""
    there = np.flatnonzero(tests)
    if len(there) < wanted:
        raise UserError(
            f"the official test parts of {name} have {len(there):,} pairs, {wanted:,} are wanted",
            remedy=f"splits.test: {len(there)} or less",
        )
    return stream(seed, "splits", "official").permutation(there)[:wanted]
