"""A dataset that is not here, as its file declares it: enough to plan a study, not to run one.

Counts are those of `expected`; lengths are drawn, log-normal about the declared means.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, cast

import numpy as np
from tokenizers import Tokenizer

from repro.data.collection import Collection
from repro.data.dataset import Dataset, DatasetParams
from repro.data.evaluation import EvaluationSet, SplitName
from repro.data.splits import Splits
from repro.data.tokens import MAX_IDS, Tokens, TokenTable
from repro.errors import UserError
from repro.seeds import stream
from repro.store import Store

# Standard deviation of the log of a length in tokens; .45 to .75 on the embedded texts.
SPREAD = 0.6
POOLED = 0.9  # of the passages: what training negatives come from (splits.RESERVED)
NONE: Any = np.empty(0, np.int32)


class DeclaredDataset(Dataset):
    """A dataset of which only counts and lengths are known; its texts are not there."""

    @property
    def is_here(self) -> bool:
        """No."""
        return False

    def tokens(
        self, store: Store, tokenizer: Tokenizer | None, tokenizer_digest: str
    ) -> TokenTable:
        """Lengths drawn from the declared means, the same for every tokenizer; no ids."""
        return self._table

    @cached_property
    def _table(self) -> TokenTable:
        declared, counts = self.params.declared, self.collection.counts
        assert declared is not None
        rng = stream(self.params.seed, "declared", "lengths")
        queries = _tokens(declared.query_tokens, counts["queries"], rng)
        passages = _tokens(declared.passage_tokens, counts["passages"], rng)
        return TokenTable(queries, passages, unknown_share=0.0, digest=_digest(self.params))


def declared_dataset(params: DatasetParams) -> DeclaredDataset:
    """The dataset as its file declares it; raises `UserError` where the file says too little."""
    declared, expected = params.declared, params.expected
    if declared is None or not (expected.queries and expected.passages and expected.pairs):
        raise UserError(
            f"the dataset {params.name} is not on this machine, and its file does not say how large it is",
            remedy="give `declared:` and the three counts of `expected:` in the dataset file, as "
            "params/datasets/msmarco.yaml does, or get the data first",
        )
    rng = stream(params.seed, "declared", "sets")
    sets = {
        name: _evaluation(params, name, expected.queries, expected.passages, rng)
        for name in params.evaluation.sets
    }
    collection = Collection(
        name=params.name,
        language=params.language,
        query_ids=_none(expected.queries),
        queries=_none(expected.queries),
        passage_ids=_none(expected.passages),
        passages=_none(expected.passages),
        pairs=NONE.reshape(-1, 2),
        groups=_none(expected.passages),
        digest=_digest(params),
    )
    digests = dict.fromkeys(("collection", "components", "splits"), _digest(params))
    return DeclaredDataset(params, collection, NONE, _splits(params), sets, digests)


def _splits(params: DatasetParams) -> Splits:
    """Splits of the declared sizes: what the others leave of the training judgements trains."""
    declared, sizes = params.declared, params.splits
    assert declared is not None
    assert params.expected.passages is not None
    drawn = sizes.validation + sizes.tuning + sizes.generator + sizes.held_out
    if not getattr(sizes, "official", None):
        drawn += sizes.test  # else it has judgements of its own
    named = {
        name: np.arange(getattr(sizes, name), dtype=np.int32)
        for name in ("validation", "test", "tuning", "generator", "held_out")
    }
    return Splits(
        **named,
        train=np.arange(max(declared.train_pairs - drawn, 0), dtype=np.int32),
        pool=np.arange(int(POOLED * params.expected.passages), dtype=np.int32),
        reserve=NONE,
        held_out_groups=(),
        unused=0,
        digest=_digest(params),
    )


def _evaluation(
    params: DatasetParams,
    name: SplitName,
    n_queries: int,
    n_passages: int,
    rng: np.random.Generator,
) -> EvaluationSet:
    size = params.evaluation.sets[name]
    return EvaluationSet(
        passages=rng.integers(n_passages, size=size.passages).astype(np.int32),
        queries=rng.integers(n_queries, size=size.pairs).astype(np.int32),
        positive=NONE,
        negatives=NONE,
        pairs=np.arange(size.pairs, dtype=np.int32),
        digest=f"{_digest(params)} {name}",
    )


def _tokens(mean: float, n: int, rng: np.random.Generator) -> Tokens:
    """Only the lengths of n texts, which have about this mean with the two special tokens."""
    drawn = rng.lognormal(np.log(max(mean - 2, 1)) - SPREAD**2 / 2, SPREAD, n)
    lengths = np.clip(np.rint(drawn), 1, MAX_IDS).astype(np.int64)
    return Tokens(NONE, np.concatenate([[0], np.cumsum(lengths)]))


def _digest(params: DatasetParams) -> str:
    """In place of a digest; no digest looks like it, so that nothing in a store is taken for its."""
    return f"declared {params.name}"


def _none(n: int) -> list[str]:
    """So many texts of which only the number is known."""
    return cast("list[str]", range(n))
