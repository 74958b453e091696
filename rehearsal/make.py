"""Lay everything out: `python -m rehearsal make FOLDER`.  The same bytes every time, in seconds.

hub/ORGANISATION/NAME    repositories of collections and of models, as the hub has them
raw/msmarco              the files of the track itself
beir/NAME                BEIR archives, unpacked; one of them gzipped
made.json                what is in there: counts after cleaning, oddities
"""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

from rehearsal import beir, models, msmarco, t2ranking, writers
from rehearsal.content import Content, Plan, make

SEED = 1
PLANS = {
    "msmarco": Plan(
        "en", 720, {"train": 380, "dev": 70, "test": 8}, words=12, shared=3, irrelevant=1
    ),
    "nq": Plan("en", 260, {"test": 80}, words=16, titles=True),
    "hotpotqa": Plan(
        "en", 760, {"train": 220, "dev": 20, "test": 50}, words=16, titles=True, positives=2,
        shared=5,
    ),
    "fiqa": Plan(
        "en", 760, {"train": 220, "dev": 20, "test": 50}, words=20, positives=2, varying=True
    ),
    "t2ranking": Plan(
        "zh", 900, {"train": 160, "dev": 40, "test": 10}, words=24, positives=3, varying=True,
        irrelevant=2, shared=8,
    ),
}  # fmt: skip
# The splits whose judgements the dataset files of params/datasets/ read.
JUDGED = {
    "msmarco": ["train", "dev"], "nq": ["test"], "hotpotqa": ["train", "test"],
    "fiqa": ["train", "test"], "t2ranking": ["train", "dev"],
}  # fmt: skip
T5 = ["castorini/doc2query-t5-base-msmarco", "doc2query/msmarco-t5-base-v1"]
CHAT = ["Qwen/Qwen2.5-0.5B-Instruct"]


@dataclass(frozen=True)
class Counts:
    """What is left of a collection after cleaning, counted here and not by what is rehearsed."""

    queries: int
    passages: int
    pairs: int

    @classmethod
    def of(cls, content: Content, *splits: str) -> Counts:
        """Of the judgements of these splits."""
        passages = {key for key, _, text in content.passages if text.strip()}
        every = [query for queries in content.queries.values() for query in queries]
        asked = {key for key, text in every if text.strip()}
        judged = {pair for split in splits for pair in msmarco.relevant(content, split)}
        pairs = {(query, passage) for query, passage in judged if passage in passages}
        pairs = {(query, passage) for query, passage in pairs if query in asked}
        return cls(len({query for query, _ in pairs}), len(passages), len(pairs))


def lay_out(folder: Path, seed: int = SEED) -> Path:
    """Everything under `folder`, which is emptied first; returns it."""
    shutil.rmtree(folder, ignore_errors=True)
    contents = {name: make(plan, seed, name) for name, plan in PLANS.items()}
    _collections(folder, contents)
    hub = folder / "hub"
    for shape in models.shapes():
        models.repository(hub / shape.name, shape, seed)
    for name in T5:
        writers.t5(hub / name, seed)
    for name in CHAT:
        writers.chat(hub / name, seed)
    made = {
        name: {
            "counts": asdict(Counts.of(content, *JUDGED[name])),
            "oddities": dict(sorted(content.oddities.items())),
        }
        for name, content in contents.items()
    }
    (folder / "made.json").write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    return folder


def _collections(folder: Path, contents: dict[str, Content]) -> None:
    hub = folder / "hub"
    own = contents["msmarco"]
    msmarco.mteb(hub / "mteb" / "msmarco", own)
    msmarco.sentence_transformers(hub / "sentence-transformers" / "msmarco-corpus", own)
    msmarco.triplets(hub / "sentence-transformers" / "msmarco-bm25", own)
    msmarco.tevatron(hub / "Tevatron" / "msmarco-passage-new", own)
    msmarco.raw(folder / "raw" / "msmarco", own)
    for name in ("nq", "hotpotqa", "fiqa"):
        msmarco.mteb(hub / "mteb" / name, contents[name])
        beir.repositories(hub / "BeIR", name, contents[name])
        beir.folder(folder / "beir" / name, contents[name], gz=name == "fiqa")
    nano = {"nq": "NanoNQ", "hotpotqa": "NanoHotpotQA", "fiqa": "NanoFiQA2018"}
    for name, called in nano.items():
        beir.nano(hub / "zeta-alpha-ai" / called, contents[name])
    t2ranking.repository(hub / "THUIR" / "T2Ranking", contents["t2ranking"])
