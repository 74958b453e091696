"""Small things that tests stand on: a BERT, a collection, a dataset file and a profile."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
import torch

N_PAIRS = 420
SOURCE = Path(__file__).parents[1] / "src"


SYLLABLES = ["ka", "lo", "mi", "ru", "te", "zo", "pa", "ni", "sha", "vel", "dor", "quin"]


def write_bert(folder: Path, *, layers: int = 1, width: int = 32) -> Path:
    """A random BERT in Hugging Face layout, its vocabulary made of syllables and digits.

    (A vocabulary trained by `tokenizers` breaks ties differently in every process.)
    """
    from transformers import BertConfig, BertModel, BertTokenizerFast

    folder.mkdir(parents=True, exist_ok=True)
    parts = [*SYLLABLES, *"0123456789"]
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *parts, *(f"##{part}" for part in parts)]
    (folder / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=max(1, width // 32),
        intermediate_size=4 * width,
        max_position_embeddings=128,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        BertModel(config, add_pooling_layer=False).save_pretrained(folder)
    return folder


def pair_texts(n: int = N_PAIRS) -> list[tuple[str, str]]:
    """Query and passage of each pair: they share two rare words among common ones."""
    random = np.random.default_rng(5)
    rare = ["".join(random.choice(SYLLABLES, 3)) for _ in range(3 * n)]
    common = ["".join(random.choice(SYLLABLES, 2)) for _ in range(60)]
    pairs = []
    for i in range(n):
        key = [rare[2 * i], rare[2 * i + 1]]
        query = [*random.choice(common, 4), *key]
        passage = [*random.choice(common, random.integers(8, 30)), *key, str(i)]
        pairs.append((" ".join(random.permutation(query)), " ".join(random.permutation(passage))))
    return pairs


def write_beir(folder: Path, n: int = N_PAIRS) -> Path:
    """A collection of `n` pairs in BEIR layout."""
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    pairs = pair_texts(n)
    corpus = [
        json.dumps({"_id": f"p{i}", "title": "", "text": p}) for i, (_, p) in enumerate(pairs)
    ]
    queries = [json.dumps({"_id": f"q{i}", "text": q}) for i, (q, _) in enumerate(pairs)]
    qrels = [f"q{i}\tp{i}\t1" for i in range(n)]
    (folder / "corpus.jsonl").write_text("\n".join(corpus) + "\n", encoding="utf-8")
    (folder / "queries.jsonl").write_text("\n".join(queries) + "\n", encoding="utf-8")
    (folder / "qrels" / "train.tsv").write_text(
        "\n".join(["query-id\tcorpus-id\tscore", *qrels]) + "\n", encoding="utf-8"
    )
    return folder


DATASET: dict[str, Any] = {
    "name": "tiny",
    "language": "en",
    "seed": 3,
    "duplicates": {"drop_jaccard": 0.9, "join_jaccard": 0.5},
    "splits": {
        "validation": 40, "test": 40, "tuning": 40, "generator": 40, "held_out": 0, "train": 160,
    },
    "evaluation": {
        "negatives": 30,
        "sets": {
            "validation": {"pairs": 40, "passages": 60},
            "test": {"pairs": 40, "passages": 60},
            "tuning": {"pairs": 40, "passages": 60},
        },
    },
}  # fmt: skip

PROFILE: dict[str, Any] = {
    "description": "a study of seconds",
    "seed": 1,
    "lr_reference": 2e-3,
    "encoder": {"projection": 16, "scoring": "cosine"},
    "texts": {"query_tokens": 16, "passage_tokens": 32, "chunk_tokens": 256},
    "train": {"batch_pairs": 16, "negatives": {"count": 16, "in_batch": True}},
    "curve": {"first": 2, "max_steps": 40},
    "execute": {"workers": 1},
}


def write_study(folder: Path) -> Path:
    """Everything for a study of two models and two sizes; returns the profile file."""
    beir = write_beir(folder / "beir")
    small = write_bert(folder / "small")
    large = write_bert(folder / "large", layers=2)
    dataset = {**DATASET, "source": {"kind": "beir", "folder": str(beir), "qrels": ["train"]}}
    (folder / "tiny.yaml").write_text(json.dumps(dataset), encoding="utf-8")  # JSON is YAML 1.2
    profile = {
        **PROFILE,
        "dataset": str(folder / "tiny.yaml"),
        "models": {
            "small": {"weights": str(small), "lr": 2e-3},
            "large": {"weights": str(large), "lr": 1e-3},
        },
        "grid": {"models": ["small", "large"], "sizes": [32, 160]},
    }
    (folder / "study.yaml").write_text(json.dumps(profile), encoding="utf-8")
    return folder / "study.yaml"


def results(root: Path) -> dict[str, str]:
    """Digest of every file of a store that holds numbers (seconds and provenance are not among them)."""
    from repro.files import file_digest

    names = ("best.safetensors", "validation.npy", "test.npy", "metrics.json")
    kinds = ("train", "measure")
    paths = [path for kind in kinds for name in names for path in (root / kind).glob(f"*/{name}")]
    return {str(path.relative_to(root)): file_digest(path) for path in paths}


def write_tunable(study_file: Path, folder: Path) -> Path:
    """The study of `study_file` on more pairs, with room in the tuning split; the profile file.

    Beside it lie dataset files that cannot be tuned on: tiny2 (all is evaluated), tiny3 (no set).
    """
    data = json.loads(study_file.with_name("tiny.yaml").read_text())
    (folder / "tiny2.yaml").write_text(json.dumps(data))
    data["source"] |= {"folder": str(write_beir(folder / "beir", 540))}
    data["splits"] |= {"tuning": 160}
    (folder / "tiny.yaml").write_text(json.dumps(data))
    del data["evaluation"]["sets"]["tuning"]
    (folder / "tiny3.yaml").write_text(json.dumps(data))
    profile = json.loads(study_file.read_text()) | {"dataset": str(folder / "tiny.yaml")}
    (folder / "study.yaml").write_text(json.dumps(profile))
    return folder / "study.yaml"


def absent(reason: str) -> NoReturn:
    """Skip a test that needs what pip does not bring; in CI (REPRO_STRICT=1), which brings it, fail."""
    if os.environ.get("REPRO_STRICT") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


# Of a process that a test starts: `peak()` is the most bytes that it held.  Linux begins ru_maxrss at the
# size of the process that started it, so that a small one under a large pytest could not be told.
PEAK = r"""
import re, resource, sys
from pathlib import Path

def peak():
    status = Path("/proc/self/status")
    if status.exists():
        return 1024 * int(re.search(r"VmHWM:\s+(\d+)", status.read_text())[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)

"""


def environment() -> dict[str, str]:
    """The environment of a process that a test starts: this package, one thread, no network."""
    paths = os.pathsep.join(filter(None, [str(SOURCE), os.environ.get("PYTHONPATH", "")]))
    return {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
