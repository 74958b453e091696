"""What is cut of a profile, and what never is.

Pins that all models, kinds of labels, checkpoints and targets stay, that only scale is cut, that what is
cut is said, and that a cut dataset file reads the same source.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rehearsal import cut
from rehearsal.run import PROFILES
from repro import params
from repro.data.dataset import DatasetParams, find_dataset_file
from repro.document import read
from repro.experiments.profile import Profile
from repro.places import ROOT

SCALE = {
    "dataset", "meaningless", "lr_reference", "lr", "batch_pairs", "step_tokens",
    "count", "chunk_tokens", "first", "max_steps", "sizes", "compare", "law_sizes", "decays",
    "datasets", "reseeds", "seeds", "draws", "precision",
}  # fmt: skip


def keys(data: Any) -> set[str]:
    """The keys under which something other than a mapping stands."""
    found = set()
    for key, value in data.items():
        found |= keys(value) if isinstance(value, dict) else {key}
    return found


def file(name: str) -> Path:
    return ROOT / "params" / f"{name}.yaml"


@pytest.mark.parametrize("name", PROFILES)
def test_only_scale_is_cut(name: str, tmp_path: Path) -> None:
    over = cut.overlay(read(file(name)).data, tmp_path)
    assert keys(over) <= SCALE
    path = cut.write(tmp_path / "cut.yaml", over)
    before = params.load(file(name), Profile)
    after = params.validate(read(file(name), path), Profile)
    assert list(after.models) == list(before.models)
    assert [m.weights for m in after.models.values()] == [m.weights for m in before.models.values()]
    assert after.grid.models == before.grid.models
    assert (after.labels and after.labels.kinds) == (before.labels and before.labels.kinds)
    assert (after.transfer and after.transfer.checkpoints) == (
        before.transfer and before.transfer.checkpoints
    )
    assert (
        after.encoder.model_copy(update={"precision": before.encoder.precision}) == before.encoder
    )
    assert after.train.negatives.sharing == before.train.negatives.sharing
    for section in ("lr_study", "variance", "labels", "allocation", "weight_decay", "transfer"):
        assert (getattr(after, section) is None) == (getattr(before, section) is None)
    assert after.meaningless
    assert max(after.grid.sizes) <= cut.LARGEST


@pytest.mark.parametrize("name", PROFILES)
def test_rates_keep_their_proportions_and_decays_theirs_to_them(name: str, tmp_path: Path) -> None:
    before = read(file(name)).data
    over = cut.write(tmp_path / "cut.yaml", cut.overlay(before, tmp_path))
    after = read(file(name), over)
    for model, told in before["models"].items():
        ratio = after.data["models"][model]["lr"] / after.data["lr_reference"]
        assert ratio == pytest.approx(told["lr"] / before["lr_reference"])
    if "weight_decay" in before:
        was, now = before["weight_decay"]["decays"], after.data["weight_decay"]["decays"]
        assert now[0] * cut.RATE == pytest.approx(was[0])


def test_sizes_become_doublings_and_keep_their_ends() -> None:
    sizes = [10 * 2**k for k in range(9)]
    found = cut.cut_sizes({"grid": {"sizes": sizes}, "labels": {"sizes": sizes[2:4]}})
    assert len(found) == cut.MOST_SIZES
    assert found[sizes[0]] == 256 >> (cut.MOST_SIZES - 1)
    assert found[sizes[-1]] == 256
    assert sorted(found.values()) == list(found.values())


def test_what_is_cut_is_said() -> None:
    lines = list(cut.said({"a": {"b": 1, "c": 2}}, {"a": {"b": 3, "c": 2}, "d": 4}))
    assert lines == ["a.b: 1 -> 3", "d: None -> 4"]


@pytest.mark.parametrize("name", ["msmarco", "nq", "hotpotqa", "fiqa", "t2ranking"])
def test_a_cut_dataset_reads_the_same_source(name: str, tmp_path: Path) -> None:
    counts = {"queries": 5, "passages": 7, "pairs": 6}
    before = params.load(find_dataset_file(name), DatasetParams)
    path = cut.write(tmp_path / f"{name}.yaml", cut.dataset(name, counts, tmp_path))
    after = params.load(path, DatasetParams)
    assert after.source == before.source
    assert after.duplicates == before.duplicates
    assert list(after.targets) == list(before.targets)
    assert list(after.evaluation.sets) == list(before.evaluation.sets)
    assert after.expected.pairs == 6
    assert after.splits.train <= cut.LARGEST


def test_what_the_profiles_read_is_known() -> None:
    assert cut.read_by(read(file("paper")).data) == ["fiqa", "hotpotqa", "msmarco", "nq"]
    assert cut.read_by(read(file("t2ranking")).data) == ["t2ranking"]
