"""Do different learning rates end in the same vectors?  M3: CKA between best checkpoints.

On the queries and judged passages of the test pairs, which chose no checkpoint; queries and passages
apart, since a model that only tells the two kinds from one another would be like any other that does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from repro import seeds
from repro.errors import UserError
from repro.experiments.answer import Answer, answer, part
from repro.experiments.law_fits import half_width
from repro.measure.cka import biased_cka, debiased_cka
from repro.model.encoder import Encoder, encode, restore
from repro.model.texts import Texts
from repro.work.makers import Makers

if TYPE_CHECKING:
    from repro.data.dataset import Dataset
    from repro.experiments.runs import Runs, Trained

Vectors = dict[str, NDArray[np.float32]]  # text -> [n, width]
TEXTS = ("queries", "passages")
MOST = 1024  # queries, and passages; as the MAEL paper
# What is compared, and what with: two rates; two seeds; and the nulls, which are to lie below.
NULLS = {"other D": "another D", "start": "the start", "noise": "noise"}
KINDS = ("rates", "seeds", *NULLS)


def likeness(plan: Runs, table: pd.DataFrame, runs: Sequence[Trained]) -> list[dict[str, Any]]:
    """A row for each comparison and text: kind, d, text, lr (of both), n, reached, debiased, biased.

    table: a row each of the finished ones of `runs`, as from `lr_invariance`.

    kind: `rates` (two rates, one D and seed), `seeds` (two seeds, one D and rate), `other D` (one
    rate, two data sizes), `start` (a run and the weights before training), `noise` (a run and normal
    noise of its shape).  reached: whether both reached their minimum.  Diverged runs are left out.
    """
    usable = table[table["state"] != "diverged"] if len(table) else table
    rows: dict[str, dict[str, Any]] = {
        str(row["run"]): {str(name): value for name, value in row.items()}
        for row in usable.to_dict("records")
    }
    keys = {plan.store.key("train", run.train.spec): run for run in runs}
    vectors = _vectors(plan, {key: keys[key] for key in rows})
    found = []
    for kind, one, other in _comparisons(rows):
        for text in TEXTS:
            x = vectors[one][text]
            y = _noise(plan, one, text, x) if kind == "noise" else vectors[other][text]
            found.append(_row(kind, rows[one], rows.get(other, rows[one]), text, x, y))
    return found


def claim(rows: Sequence[Mapping[str, Any]]) -> Answer:
    """M3: debiased CKA between rates that reached their minimum, of queries or passages, the lower.

    Its interval is t over D.  Blocked where it does not lie above each null: then the vectors are
    alike for another reason than that the rates lead to the same place.
    """
    known = [row for row in rows if row["debiased"] is not None]
    pairs = [row for row in known if row["kind"] == "rates" and row["reached"]]
    if not pairs:
        why = "no two rates of one D have checkpoints at their minimum, and vectors that differ"
        return answer(None, why, n=0, blocked=why)
    by_text = {text: _over_sizes([r for r in pairs if r["text"] == text]) for text in TEXTS}
    means = {text: found["value"] for text, found in by_text.items() if found["value"] is not None}
    lower = min(means, key=lambda text: means[text])
    cka, pairs = by_text[lower], [row for row in pairs if row["text"] == lower]
    nulls = {
        kind: _mean([row for row in known if row["kind"] == kind and row["text"] == lower])
        for kind in KINDS[1:]
    }
    all_rates = [row for row in known if row["kind"] == "rates" and row["text"] == lower]
    parts = {
        "cka": cka,
        "cka_all": part(_mean(all_rates)),
        "biased": part(_mean(pairs, "biased")),
        **by_text,
        **{kind: part(value) for kind, value in nulls.items()},
    }
    beside = ", ".join(
        f"{NULLS.get(kind, 'two seeds of one rate')} {value:.2f}"
        for kind, value in nulls.items()
        if value is not None
    )
    why = (
        f"{len(pairs)} pairs of rates, {pairs[0]['n']:,} texts; {lower}, the less alike of "
        f"queries and passages; biased {parts['biased']['value']:.2f}; beside it: {beside}"
    )
    over = [NULLS[k] for k in NULLS if nulls[k] is not None and nulls[k] >= cka["value"]]
    blocked = f"no more alike than {' and '.join(over)}: {why}" if over else ""
    return answer(cka["value"], why, n=len(pairs), ci95=cka["ci95"], parts=parts, blocked=blocked)


def _over_sizes(rows: Sequence[Mapping[str, Any]]) -> Answer:
    """The mean over D of the mean over pairs, t over D; endless with one D, that has no interval."""
    sizes = sorted({row["d"] for row in rows})
    if not sizes:
        return part(None)
    means = np.array([_mean([row for row in rows if row["d"] == d]) for d in sizes], dtype=float)
    value = float(means.mean())
    if len(means) < 2:
        return part(value, endless=True)
    half = half_width(means)
    return part(value, (value - half, value + half))


def _mean(rows: Sequence[Mapping[str, Any]], column: str = "debiased") -> float | None:
    values = [row[column] for row in rows]
    return float(np.mean(values)) if values else None


def _comparisons(rows: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str, str]]:
    """kind and the two runs (keys of `rows`) of every comparison, in order."""
    same = {  # what two runs have in common
        "rates": ("d", "seed"),
        "seeds": ("d", "lr"),
        "other D": ("lr", "seed"),
    }
    for kind, columns in same.items():
        differ = ({"d", "lr", "seed"} - set(columns)).pop()
        for one, other in combinations(rows, 2):
            a, b = rows[one], rows[other]
            if all(a[c] == b[c] for c in columns) and a[differ] != b[differ]:
                yield kind, one, other
    for one, row in rows.items():
        if row["role"] == "rate":
            yield "start", one, _start(row["seed"])
            yield "noise", one, ""


def _start(seed: int) -> str:
    """What the vectors before training are called: a seed draws what the weights do not bring."""
    return f"start of seed {seed}"


def _row(
    kind: str, one: Mapping[str, Any], other: Mapping[str, Any], text: str,
    x: NDArray[np.float32], y: NDArray[np.float32],
) -> dict[str, Any]:  # fmt: skip
    values: dict[str, float | None]
    try:
        values = {"debiased": debiased_cka(x, y), "biased": biased_cka(x, y)}
    except UserError:  # vectors that are all alike, or none
        values = {"debiased": None, "biased": None}
    return {
        "kind": kind,
        "d": int(one["d"]),
        "text": text,
        "lr": [float(one["lr"]), float(other["lr"])],
        "n": len(x),
        "reached": bool(one["reached"] and other["reached"]),
        **values,
    }


def _vectors(plan: Runs, runs: Mapping[str, Trained]) -> dict[str, Vectors]:
    """Run -> the vectors of its best checkpoint, and `_start` -> those before training.

    On the device of the profile.
    """
    makers = Makers(plan.store, plan.profile.execute.device)
    found: dict[str, Vectors] = {}
    for key, run in runs.items():
        encoder, texts, dataset = makers.parts(run.spec, run.train.inputs)
        if _start(run.seed) not in found:
            found[_start(run.seed)] = _encoded(encoder, texts, dataset)
        folder = plan.store.find("train", key)
        if folder is None:
            raise FileNotFoundError(f"the run train/{key} is not in the store")
        restore(encoder, folder / "best.safetensors")
        found[key] = _encoded(encoder, texts, dataset)
    return found


def _encoded(encoder: Encoder, texts: Texts, dataset: Dataset) -> Vectors:
    """The vectors of the first queries of the test pairs, and of their judged passages, each once."""
    test = dataset.evaluation("test")
    queries = _first(test.queries)
    passages = _first(test.passages[test.positive])
    none = np.empty(0, dtype=np.int64)
    return {
        "queries": encode(encoder, texts.chunks(queries, none), len(queries)),
        "passages": encode(encoder, texts.chunks(none, passages), len(passages)),
    }


def _first(texts: NDArray[np.integer]) -> NDArray[np.int64]:
    """The first `MOST` different ones, in order."""
    return np.array(list(dict.fromkeys(texts.tolist()))[:MOST], dtype=np.int64)


def _noise(plan: Runs, run: str, text: str, x: NDArray[np.float32]) -> NDArray[np.float32]:
    """Independent normal noise of the shape of `x`."""
    drawn = seeds.stream(plan.profile.seed, "likeness", run, text)
    return drawn.standard_normal(x.shape, dtype=np.float32)
