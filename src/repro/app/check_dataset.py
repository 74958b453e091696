"""`repro check --dataset FILE`: what a dataset holds, and which sizes it supports.  Nothing is trained."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from repro.errors import UserError

if TYPE_CHECKING:
    from repro.data.collection import Collection
    from repro.data.dataset import Dataset, DatasetParams

SAMPLES = 10  # pairs shown
MEASURED = 2000  # texts whose lengths are taken: these many at random, where there are more
SHOWN = 100  # characters of a text
TOKENIZER = "micro/1x32"  # a vocabulary that is always here, of English and code
ENCODING_HINT = (
    "  NOTE: bytes that are not UTF-8 became U+FFFD; `source.encoding` (cp1252, latin-1, gb18030, ...) "
    "names what a CSV or TSV is written in"
)


def check(name: str) -> int:
    """Print what the dataset file `name` gives; raises `UserError` where it cannot be used as it is."""
    from repro.data.dataset import collect, load_dataset_params, prepare
    from repro.places import home
    from repro.store import Store

    store, params = Store(home() / "runs"), load_dataset_params(name)
    collection, _, _ = collect(store, params)
    print("\n".join(about(collection, params)), flush=True)
    dataset = prepare(store, params)
    print("\n".join(supported(dataset, chosen=params.automatic)))
    return 0


def about(collection: Collection, params: DatasetParams) -> list[str]:
    """The lines on what was read: counts, what was done to it, lengths, sample pairs."""
    from repro.seeds import stream

    counts = collection.counts
    judged = np.bincount(collection.pairs[:, 1], minlength=counts["passages"])
    several = int((judged > 1).sum())
    lines = [
        f"dataset {params.name}: {counts['pairs']:,} pairs of {counts['queries']:,} queries and "
        f"{counts['passages']:,} passages ({params.language})",
        f"  passages   {several:,} answer several queries ({judged.max(initial=0):,} at the most), "
        f"{int((judged == 0).sum()):,} answer none; groups: "
        f"{len(set(collection.groups) - {''}):,}",
        *_counted("dropped", collection.dropped),
        *_counted("repaired", collection.repaired),
    ]
    if any(reason.startswith("line that is not") for reason in collection.repaired):
        lines.append(ENCODING_HINT)
    if len(collection.negatives):
        asked = len(np.unique(collection.negatives[:, 0]))
        lines.append(
            f"  negatives  {len(collection.negatives):,} of their own, of {asked:,} queries"
        )
    random = stream(params.seed, "check")
    lines += _lengths(collection, random, params)
    lines.append(f"  samples    ({min(SAMPLES, counts['pairs'])} pairs at random)")
    for pair in random.permutation(counts["pairs"])[:SAMPLES]:
        query, passage = collection.pairs[pair]
        lines.append(f"    query    {_short(collection.queries[query])}")
        lines.append(f"    passage  {_short(collection.passages[passage])}")
    return [*lines, f"  digest     {collection.digest}"]


def supported(dataset: Dataset, *, chosen: bool) -> list[str]:
    """The lines on the splits that were drawn, and the data sizes that they leave room for."""
    from repro.experiments.grid import LEAST, GridParams

    available = len(dataset.splits.train)
    how = "chosen (splits: auto)" if chosen else "as stated"
    lines = [f"  splits     {how}: {dataset.params.in_words()}"]
    for name, each in dataset.evaluations.items():
        lines.append(
            f"    {name:9} {len(each.pairs):,} pairs over {len(each.passages):,} passages evaluated"
        )
    lines.append(f"    training  {available:,} pairs; negatives from {len(dataset.splits.pool):,}")
    grid = GridParams.model_validate({"models": ["any"], "sizes": "auto"})
    try:
        sizes = ", ".join(str(size) for size in grid.settled(available).sizes)
    except UserError as error:
        return [*lines, f"  grid       {error.what}: too few for a law"]
    return [*lines, f"  grid       sizes: [{sizes}]  (what `sizes: auto` takes, from {LEAST})"]


def _counted(title: str, counts: dict[str, int]) -> list[str]:
    found = [(number, reason) for reason, number in counts.items() if number]
    rows = [f"{number:8,} {reason}" for number, reason in found] or ["       0"]
    return [f"  {title if i == 0 else '':8}{row}" for i, row in enumerate(rows)]


def _lengths(
    collection: Collection, random: np.random.Generator, params: DatasetParams
) -> list[str]:
    """Lengths in words and tokens, and the share of tokens that the vocabulary does not know."""
    from repro.data import tokens
    from repro.data.text import words
    from repro.model import pretrained

    tokenizer = pretrained.load(TOKENIZER).tokenizer
    unknown_id = tokens.unknown_id(tokenizer)
    lines, unknown, total = [], 0, 0
    for name in ("queries", "passages"):
        texts: list[str] = getattr(collection, name)
        taken = np.sort(random.permutation(len(texts))[:MEASURED])
        sample = [texts[i] for i in taken]
        found = tokens.tokenise(tokenizer, sample)
        unknown, total = unknown + int((found.ids == unknown_id).sum()), total + len(found.ids)
        of = "" if len(sample) == len(texts) else f"  (of {len(sample):,} at random)"
        lines.append(
            f"  {name:10} {_quantiles(len(words(text)) for text in sample)} words, "
            f"{_quantiles(np.diff(found.offsets))} tokens (median, 95 %, most){of}"
        )
    share = unknown / max(total, 1)
    lines.append(f"  unknown    {share:.1%} of the tokens, to the vocabulary of the micro-encoders")
    if share > tokens.MAX_UNKNOWN:
        remedy = tokens.other_models(params.name, params.language)
        lines.append(f"  NOTE: the micro-encoders refuse this text; {remedy}")
    return lines


def _quantiles(lengths: Iterable[Any]) -> str:
    values = np.fromiter(lengths, int)
    if not len(values):
        return "none"
    middle, most = np.quantile(values, [0.5, 0.95], method="higher")
    return f"{middle:,} / {most:,} / {values.max():,}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN else f"{line[: SHOWN - 3]}..."
