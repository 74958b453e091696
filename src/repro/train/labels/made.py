"""A set of labels: made passage by passage, checked, kept batch by batch, never lost half-way."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from repro.data.dataset import Dataset
from repro.data.text import clean, normal
from repro.errors import UserError
from repro.files import write_bytes
from repro.seeds import stream
from repro.train.labels.kinds import LabelSpec

EMPTY, SAME, AGAIN = "empty", "the passage itself", "a repetition"
EXAMPLES = 10  # of labels that were not usable, kept with their reason


@dataclass(frozen=True)
class Label:
    """A query; `text` is its passage where the kind changes it, None where it stays as it is."""

    query: str
    text: str | None = None


@dataclass(frozen=True)
class Source:
    """A passage that labels are wanted from: its index, its text, and its place in the order."""

    passage: int
    text: str
    place: int


# What makes labels: for each of some passages, `per_passage` labels or fewer.
Generate = Callable[[Sequence[Source]], list[list[Label]]]


@dataclass(frozen=True)
class LabelSet:
    """Labels in the order in which they are trained on: the first D are the subset of size D.

    `passages` int32 [n]: indices in the collection they were made from.  `texts`: the passage of a
    label where it was changed, else None.  `about`: kind, how many were asked for, and what failed.
    """

    queries: list[str]
    passages: NDArray[np.int32]
    texts: list[str | None]
    about: dict[str, Any] = field(default_factory=dict)

    def save(self, folder: Path) -> None:
        """Write labels.parquet and labels.json."""
        table = {
            "query": pa.array(self.queries, pa.large_string()),
            "passage": pa.array(self.passages, pa.int32()),
            "text": pa.array(self.texts, pa.large_string()),
        }
        pq.write_table(pa.table(table), folder / "labels.parquet", compression="zstd")
        text = json.dumps(self.about, indent=1, ensure_ascii=False) + "\n"
        (folder / "labels.json").write_text(text, encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> LabelSet:
        """The set that `save` wrote."""
        with pq.ParquetFile(folder / "labels.parquet") as file:
            table = file.read(use_threads=False)
        about = json.loads((folder / "labels.json").read_text(encoding="utf-8"))
        queries, texts = table["query"].to_pylist(), table["text"].to_pylist()
        return cls(queries, table["passage"].to_numpy().astype(np.int32), texts, about)


def sources(dataset: Dataset, spec: LabelSpec) -> list[int]:
    """The passages that labels are made from, in order: each judged positive of train once, or any of
    the pool."""
    if spec.passages == "random":
        order = stream(spec.seed, "labels", "passages").permutation(dataset.splits.pool)
        return [int(passage) for passage in order]
    positives = dataset.collection.pairs[dataset.splits.train, 1].tolist()
    return list(dict.fromkeys(int(passage) for passage in positives))


def write(
    folder: Path,
    dataset: Dataset,
    spec: LabelSpec,
    generate: Generate,
    batch: int,
    report: Callable[[int], None],
) -> None:
    """Make `spec.count` labels and write them into `folder`; `report` hears how many there are.

    Finished batches are kept in `folder`, so that an interrupted call goes on after the last of them.
    Unusable labels are left out, counted, and made up for by further passages.  Raises `UserError`
    where the passages do not give enough, and what `generate` raises on all passages of a batch.
    """
    order, kept = sources(dataset, spec), folder / "batches.jsonl"
    made: list[tuple[str, int, str | None]] = []
    faults: Counter[str] = Counter()
    examples: list[dict[str, str]] = []
    done = 0
    for rows in _batches(kept, dataset, order, spec, generate, batch):
        for row in rows:
            done += 1
            for label in row["labels"]:
                made.append((label["query"], row["passage"], label["text"]))
            faults.update(row["faults"].keys())
            examples += [{"reason": why, "query": said} for why, said in row["faults"].items()]
        report(len(made))
        if len(made) >= spec.count:
            break
    if len(made) < spec.count:
        lost = ", ".join(f"{n:,} {why}" for why, n in faults.items()) or "none was unusable"
        raise UserError(
            f"{len(order):,} passages give {len(made):,} labels of the kind `{spec.kind.kind}` "
            f"({lost}); {spec.count:,} are wanted",
            remedy="lower labels.sizes, raise labels.per_passage, or take labels.passages: random",
        )
    queries, passages, texts = (list(column) for column in zip(*made[: spec.count], strict=True))
    about = {
        "kind": spec.kind.kind,
        "labels": spec.count,
        "passages": done,
        "unusable": dict(faults),
        "examples": examples[:EXAMPLES],
    }
    LabelSet(queries, np.array(passages, np.int32), texts, about).save(folder)
    kept.unlink(missing_ok=True)


def _batches(
    kept: Path,
    dataset: Dataset,
    order: list[int],
    spec: LabelSpec,
    generate: Generate,
    batch: int,
) -> Iterator[list[dict[str, Any]]]:
    """The rows of each batch, a row a passage: those kept from before, then new ones, kept as they come."""
    start = 0
    for rows in _kept(kept):
        yield rows
        start += len(rows)
    for first in range(start, len(order), batch):
        chosen = [
            Source(passage, dataset.collection.passages[passage], first + i)
            for i, passage in enumerate(order[first : first + batch])
        ]
        rows = [
            _checked(source, labels, spec.per_passage)
            for source, labels in zip(chosen, _generated(generate, chosen), strict=True)
        ]
        with kept.open("a", encoding="utf-8") as file:
            file.write(_sealed(json.dumps(rows, ensure_ascii=False)))
        yield rows


def _kept(path: Path) -> list[list[dict[str, Any]]]:
    """The batches of an earlier call up to the first that was cut off or damaged, which is taken away."""
    if not path.exists():
        return []
    whole = []
    for line in path.read_text(encoding="utf-8", errors="replace").split("\n"):
        seal, _, text = line.partition(" ")
        if _sealed(text) != f"{seal} {text}\n":
            break
        whole.append(text)
    write_bytes(path, "".join(map(_sealed, whole)).encode())
    return [json.loads(text) for text in whole]


def _sealed(text: str) -> str:
    """A line that carries its own digest."""
    return f"{hashlib.sha256(text.encode()).hexdigest()} {text}\n"


def _generated(generate: Generate, chosen: Sequence[Source]) -> list[list[Label] | str]:
    """The labels of each passage, or why it has none; raises where no passage of several has any."""
    try:
        return list(generate(chosen))
    except Exception as fault:
        if len(chosen) == 1:
            raise
        whole = fault
    found: list[list[Label] | str] = []
    for source in chosen:  # one bad passage is not to cost the others their labels
        try:
            found += generate([source])
        except Exception as fault:
            found.append(f"{type(fault).__name__}: {fault}")
    if all(isinstance(each, str) for each in found):
        raise whole
    return found


def _checked(source: Source, labels: list[Label] | str, per_passage: int) -> dict[str, Any]:
    """The usable labels of a passage, and reason -> what was said instead."""
    row: dict[str, Any] = {"passage": source.passage, "labels": [], "faults": {}}
    if isinstance(labels, str):
        row["faults"][f"failed: {labels.splitlines()[0][:200]}"] = ""
        return row
    if not labels:
        row["faults"][EMPTY] = ""
    seen = set()
    for label in labels[:per_passage]:
        query = " ".join(clean(label.query, Counter()).split())
        text = source.text if label.text is None else label.text
        plain = normal(query)
        reason = EMPTY if not plain else SAME if plain == normal(text) else ""
        if reason or plain in seen:
            row["faults"][reason or AGAIN] = query[:200]
            continue
        seen.add(plain)
        row["labels"].append(asdict(Label(query, label.text)))
    return row
