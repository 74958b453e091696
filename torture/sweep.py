"""The sweep that is disturbed: some thirty runs of seconds, on a few hundred pairs of the embedded data."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from repro.data.sources import apidocs
from repro.store import VERSIONS, Store
from repro.work.compare import numbers
from repro.work.plans import Place

N_ENTRIES = 9600  # read; some 660 distinct pairs are left
NAN = {"layers": 2, "pairs": 128, "step": 6}  # these runs meet NaN there, disturbed or not

DATASET: dict[str, Any] = {
    "name": "few",
    "language": "en",
    "seed": 1,
    "duplicates": {"drop_jaccard": 0.95, "join_jaccard": 0.8},
    "splits": {"validation": 60, "test": 60, "tuning": 40, "generator": 0, "held_out": 0,
               "train": 320},
    "evaluation": {
        "negatives": 40,
        "sets": {name: {"pairs": 40, "passages": 60} for name in ("validation", "test")},
    },
}  # fmt: skip
PROFILE: dict[str, Any] = {
    "description": "runs of seconds, to be disturbed",
    "meaningless": True,
    "seed": 1,
    "lr_reference": 1e-3,
    "models": {
        "1x32": {"weights": "micro/1x32", "lr": 3e-3},
        "2x64": {"weights": "micro/2x64", "lr": 2e-3},
    },
    "encoder": {"projection": 128, "scoring": "cosine"},
    "texts": {"query_tokens": 24, "passage_tokens": 48},
    "train": {"batch_pairs": 32, "negatives": {"count": 32, "in_batch": True}},
    "curve": {"first": 4, "max_steps": 40},
    "grid": {"models": ["1x32", "2x64"], "sizes": [64, 96, 128, 192, 256], "reseeds": 1},
    "labels": {"model": "1x32", "sizes": [64, 128], "kinds": {"ict": {"kind": "ict"}}},
    "execute": {"workers": 1, "device": "cpu"},
}


def lay_out(folder: Path) -> Path:
    """Pairs, dataset file and profile under `folder`; returns the profile."""
    beir = folder / "beir"
    (beir / "qrels").mkdir(parents=True, exist_ok=True)
    entries = itertools.islice(apidocs.cut(Counter()), N_ENTRIES)
    texts = [(q, p) for _, _, q, p in entries if len(q.split()) >= 5 and len(p.split()) >= 20]
    pairs = list(enumerate(dict(texts).items()))
    lines = {
        "corpus.jsonl": [json.dumps({"_id": f"p{i}", "text": p}) for i, (_, p) in pairs],
        "queries.jsonl": [json.dumps({"_id": f"q{i}", "text": q}) for i, (q, _) in pairs],
        "qrels/train.tsv": ["query-id\tcorpus-id\tscore", *(f"q{i}\tp{i}\t1" for i, _ in pairs)],
    }
    for name, rows in lines.items():
        (beir / name).write_text("\n".join(rows) + "\n", encoding="utf-8")
    source = {"kind": "beir", "folder": str(beir), "qrels": ["train"]}
    dataset, profile = folder / "few.yaml", folder / "torture.yaml"
    dataset.write_text(json.dumps({**DATASET, "source": source}), encoding="utf-8")  # JSON is YAML
    profile.write_text(json.dumps({**PROFILE, "dataset": str(dataset)}), encoding="utf-8")
    return profile


def digests(root: Path) -> dict[Place, str]:
    """A digest of all numbers of each result in a store; times and provenance are not among them."""
    store = Store(root)
    found: dict[Place, str] = {}
    for kind in VERSIONS:
        for key in store.keys(kind):
            total = hashlib.sha256()
            for name, value in sorted(numbers(store.path(kind, key)).items()):
                total.update(f"{name}\x1f".encode() + _plain(value))
            found[kind, key] = total.hexdigest()
    return found


def _plain(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    array = np.asarray(value)
    if array.dtype.hasobject:
        return json.dumps(array.tolist()).encode()
    return f"{array.dtype} {array.shape}".encode() + array.tobytes()
