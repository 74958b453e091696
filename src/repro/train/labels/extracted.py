"""Extracted labels: the words of a passage that an author's own query would hold.

A logistic model says of each word of a passage whether the query holds it.  It is fitted to the pairs
of the generator split, which nothing trains or evaluates on.  Words are chosen by that chance times
their rarity, the information that a query is expected to share with its passage: by the chance alone
they are function words, which queries hold and which tell no passage from another.  This stands in
for a trained query generator (doc2query) where none can be had; it is no language model, and its
queries are lists of words.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from repro.data.dataset import Dataset
from repro.data.text import words
from repro.errors import UserError
from repro.train.labels.ict import sentences
from repro.train.labels.made import Label, Source

LEAST_PAIRS = 20  # of the generator split
LEAST_WORDS = 3  # of a query
RIDGE = 1.0  # of the weights, in units of one observation: keeps a separable sample finite

Array = NDArray[np.float64]


def fit(dataset: Dataset) -> Callable[[Sequence[Source]], list[list[Label]]]:
    """What extracts labels, fitted to the generator split; raises `UserError` where that is too small."""
    pairs = dataset.collection.pairs[dataset.splits.generator]
    if len(pairs) < LEAST_PAIRS:
        raise UserError(
            f"the generator split of {dataset.params.name} has {len(pairs)} pairs; extracted labels "
            f"take {LEAST_PAIRS} or more to learn from",
            remedy="raise splits.generator in the dataset file, or leave the kind out",
        )
    rarity = _rarity(dataset)
    x, y = [], []
    for query, passage in pairs.tolist():
        terms, features = _features(dataset.collection.passages[passage], rarity)
        held = set(words(dataset.collection.queries[query]))
        x.append(features)
        y.append(np.array([term in held for term in terms], float))
    shares = _logistic(np.concatenate(x), np.concatenate(y))

    def extract(chosen: Sequence[Source]) -> list[list[Label]]:
        return [[Label(_query(source.text, rarity, shares))] for source in chosen]

    return extract


def _query(text: str, rarity: Callable[[str], float], shares: Callable[[Array], Array]) -> str:
    """The words that tell most, as many as are expected in a query, in the order of the passage."""
    terms, features = _features(text, rarity)
    if not terms:
        return ""
    chance = shares(features)
    wanted = max(LEAST_WORDS, round(float(chance.sum())))
    worth = chance * np.array([rarity(term) for term in terms])
    best = sorted(np.argsort(-worth, kind="stable")[:wanted])
    return " ".join(terms[i] for i in best)


def _features(text: str, rarity: Callable[[str], float]) -> tuple[list[str], Array]:
    """The distinct words of a passage in order, and float [n, 6]: what is known of each."""
    every = words(text)
    counts = Counter(every)
    first: dict[str, int] = {}
    for place, term in enumerate(every):
        first.setdefault(term, place)
    opening = set(words((sentences(text) or [""])[0]))
    rows = [
        [
            1.0,
            math.log1p(counts[term]),
            rarity(term),
            math.log1p(place),
            float(term in opening),
            math.log(len(term)),
        ]
        for term, place in first.items()
    ]
    return list(first), np.array(rows).reshape(-1, 6)


def _rarity(dataset: Dataset) -> Callable[[str], float]:
    """Word -> log of the passages of the training pool over those that hold it."""
    pool = dataset.splits.pool
    held = Counter(term for i in pool for term in set(words(dataset.collection.passages[i])))
    most = math.log(len(pool) + 1)
    return lambda term: most - math.log(held[term] + 1)


def _logistic(x: Array, y: Array) -> Callable[[Array], Array]:
    """Features -> probability, by a ridge logistic regression on standardised features."""
    from scipy.optimize import minimize
    from scipy.special import expit

    centre, scale = x.mean(axis=0), np.maximum(x.std(axis=0), 1e-9)
    centre[0], scale[0] = 0.0, 1.0  # the constant
    z = (x - centre) / scale
    penalty = np.full(z.shape[1], RIDGE)
    penalty[0] = 0.0

    def loss(weights: Array) -> tuple[float, Array]:
        score = z @ weights
        value = np.logaddexp(0, score).sum() - y @ score + 0.5 * penalty @ weights**2
        return float(value), z.T @ (expit(score) - y) + penalty * weights

    weights = minimize(loss, np.zeros(z.shape[1]), jac=True, method="L-BFGS-B").x
    return lambda features: expit((features - centre) / scale @ weights)
