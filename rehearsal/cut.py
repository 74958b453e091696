"""Cut the scale of a profile and of its dataset files, and nothing else; say what was cut.

The profile itself is what is rehearsed: what is cut lies over it as an overlay.  All models, kinds of
labels, targets and checkpoints stay; so do tokens, scoring, pooling and negatives' sharing, and bfloat16
where the processor has instructions for it: others multiply in it 10 to 20 times more slowly.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from repro.data.dataset import find_dataset_file
from repro.document import read

LARGEST = 256  # D, pairs
MOST_SIZES = 3
MOST_FINE_TUNED = 2  # sizes of the transfer section, which has most runs by far
BATCH = 2
RATE = 1000.0  # learning rates rise as widths fall; decays fall as much, so that lr x decay stays
TRAIN = {"batch_pairs": BATCH, "step_tokens": 180}  # under a step on T2Ranking: as at full scale
SPLITS = {"validation": 30, "test": 50, "tuning": 30, "generator": 30, "held_out": 0}
SEEDS = {"reseeds": 1, "seeds": 2, "draws": 2}
Data = dict[str, Any]


def overlay(data: Data, datasets: Path) -> Data:
    """What lies over the profile that `data` is; `datasets` holds the cut dataset files."""
    sizes = cut_sizes(data)
    found: Data = {
        "dataset": str(datasets / f"{data['dataset']}.yaml"),
        "meaningless": True,
        "lr_reference": data["lr_reference"] * RATE,
        "models": {name: {"lr": model["lr"] * RATE} for name, model in data["models"].items()},
        "encoder": {} if _has_bfloat16() else {"precision": "float32"},
        "texts": {"chunk_tokens": 512},
        "train": {**TRAIN, "negatives": {"count": 4}},
        "curve": {"first": 2, "max_steps": 8},
    }
    for key, section in data.items():
        if isinstance(section, dict) and key not in (
            "models",
            "encoder",
            "texts",
            "train",
            "curve",
        ):
            found.setdefault(key, {}).update(_section(section, sizes, datasets))
    if "transfer" in found:
        every = found["transfer"]["sizes"]
        found["transfer"]["sizes"] = [every[at] for at in spread(len(every), MOST_FINE_TUNED)]
    return {key: value for key, value in found.items() if value != {}}


def cut_sizes(data: Data) -> dict[int, int]:
    """Data size of a profile -> what it is cut to: the largest is `LARGEST`, each before it half.

    Of more than `MOST_SIZES` the first, the last and those between at even distances stay.
    """
    every = sorted({size for section in data.values() for size in _sizes(section)})
    kept = [every[at] for at in spread(len(every), MOST_SIZES)]
    return {size: LARGEST >> (len(kept) - 1 - at) for at, size in enumerate(kept)}


def spread(n: int, most: int) -> list[int]:
    """`most` of the places 0 to n - 1, the ends among them, or all where there are no more."""
    kept = min(n, most)
    return [round(at * (n - 1) / max(kept - 1, 1)) for at in range(kept)]


def dataset(name: str, counts: dict[str, int], datasets: Path) -> Data:
    """The dataset file `name` on the same source, its splits cut, its counts those of the copy."""
    data = read(find_dataset_file(name)).data
    splits = {key: value for key, value in data["splits"].items() if key not in SPLITS}
    for key, size in SPLITS.items():
        if key in data["splits"]:
            splits[key] = min(size, data["splits"][key])
    splits["train"] = min(LARGEST, data["splits"]["train"])
    sets = {
        key: {"pairs": min(SPLITS[key], each["pairs"]), "passages": SPLITS[key] + 15}
        for key, each in data["evaluation"]["sets"].items()
    }
    targets = {
        key: {**each, "dataset": str(datasets / f"{each['dataset']}.yaml")}
        for key, each in data.get("targets", {}).items()
    }
    return {
        **data,
        "splits": splits,
        "evaluation": {**data["evaluation"], "negatives": 24, "sets": sets},
        "expected": {**counts, "within": 0},
        **({"targets": targets} if targets else {}),
    }


def read_by(data: Data) -> list[str]:
    """The names of the dataset files that a profile reads: its own, their targets, those of transfer."""
    own = [data["dataset"], *(data.get("transfer") or {}).get("datasets", [])]
    files = {name: read(find_dataset_file(name)).data for name in own}
    targets = [t["dataset"] for each in files.values() for t in each.get("targets", {}).values()]
    return sorted({*own, *targets})


def write(path: Path, data: Data) -> Path:
    """The file at `path`: JSON, which is YAML 1.2."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def said(data: Data, over: Data, location: str = "") -> Iterator[str]:
    """`key: before -> after` of all that an overlay changes."""
    for key, value in over.items():
        here, before = f"{location}{key}", data.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            yield from said(before, value, f"{here}.")
        elif before != value:
            yield f"{here}: {before} -> {value}"


def _has_bfloat16() -> bool:
    """Whether the processor multiplies in bfloat16."""
    has = torch.cpu.get_capabilities()
    return any(has.get(name) for name in ("avx512_bf16", "amx_bf16", "bf16"))


def _sizes(section: Any) -> list[int]:
    keys = ("sizes", "compare", "law_sizes")
    return [d for key in keys for d in section.get(key, [])] if isinstance(section, dict) else []


def _section(section: Data, sizes: dict[int, int], datasets: Path) -> Data:
    """The cut of one experiment's section."""
    found: Data = {}
    for key, value in section.items():
        if key in ("sizes", "compare", "law_sizes"):
            found[key] = [sizes[size] for size in value if size in sizes]
        elif key == "decays":
            found[key] = [decay / RATE for decay in value[:: max(len(value) // 3, 1)]]
        elif key == "datasets":
            found[key] = [str(datasets / f"{name}.yaml") for name in value]
        elif key in SEEDS:
            found[key] = value[:2] if isinstance(value, list) else min(value, SEEDS[key])
    return {key: value for key, value in found.items() if value != section[key]}
