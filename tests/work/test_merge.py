"""Merging two stores: checked, whole or not at all, and ours are kept; what counts as equal numbers."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import save_file

from repro import store as stores
from repro.files import digest
from repro.store import Store, check
from repro.work import merge as merging
from repro.work.compare import compare, numbers
from repro.work.merge import merge, unsound
from stored import add


@pytest.fixture
def ours(tmp_path: Path) -> Store:
    return Store(tmp_path / "ours")


@pytest.fixture
def theirs(tmp_path: Path) -> Store:
    return Store(tmp_path / "theirs")


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_what_we_lack_is_taken_whole(ours: Store, theirs: Store) -> None:
    key = add(theirs, "train", {"a": 1})
    nested = theirs.get_or_make("splits", {"b": 1}, lambda f: (f / "test").mkdir() or ((f / "test" / "x").write_text("y") and None))  # fmt: skip  # noqa: E501
    found = merge(ours, theirs.root)
    assert sorted(found.taken) == [f"splits/{nested.name}", f"train/{key}"]
    for kind, name in (("train", key), ("splits", nested.name)):
        assert contents(ours.path(kind, name)) == contents(theirs.path(kind, name))
        assert check(ours.path(kind, name)) == ""
    again = merge(ours, theirs.root)
    assert (again.taken, len(again.same)) == ([], 2)
    assert not list(ours.root.glob("*/.incoming/*"))


def test_equal_numbers_made_elsewhere_are_equal_results(ours: Store, theirs: Store) -> None:
    """Times differ, and the last digits do between machines."""
    add(ours, "train", {"a": 1}, loss=1.5, seconds=2.0)
    key = add(theirs, "train", {"a": 1}, loss=1.5 * (1 + 1e-7), seconds=9.0)
    before = contents(ours.path("train", key))
    assert merge(ours, theirs.root).same == [f"train/{key}"]
    assert contents(ours.path("train", key)) == before


def test_unequal_numbers_are_told_and_ours_kept(ours: Store, theirs: Store) -> None:
    add(ours, "train", {"a": 1}, loss=1.5)
    key = add(theirs, "train", {"a": 1}, loss=1.6)
    before = contents(ours.path("train", key))
    found = merge(ours, theirs.root)
    assert list(found.unequal) == [f"train/{key}"]
    assert "differs by" in found.unequal[f"train/{key}"]
    assert contents(ours.path("train", key)) == before


def test_a_damaged_one_of_ours_is_set_aside_and_theirs_taken(ours: Store, theirs: Store) -> None:
    key = add(ours, "train", {"a": 1})
    add(theirs, "train", {"a": 1})
    os.truncate(ours.path("train", key) / "validation.npy", 7)
    assert merge(Store(ours.root), theirs.root).taken == [f"train/{key}"]
    assert check(ours.path("train", key)) == ""


def test_an_old_result_version_is_left(
    ours: Store, theirs: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = add(theirs, "train", {"a": 1})
    monkeypatch.setitem(stores.VERSIONS, "train", stores.VERSIONS["train"] + 1)
    assert merge(ours, theirs.root).old == [f"train/{key}"]
    assert ours.keys("train") == []


def rewrite(folder: Path, name: str, value: object) -> None:
    """Change a file and make the manifest agree, as somebody who means harm would."""
    (folder / name).write_text(json.dumps(value))
    (folder / "manifest.json").write_text(json.dumps(stores._manifest(folder)))


def to_outside(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    outside = folder.parents[1] / "outside"
    outside.write_text("secret")
    entry = {"bytes": 6, "sha256": stores.file_digest(outside)}
    manifest["files"]["../../outside"] = entry
    (folder / "manifest.json").write_text(json.dumps(manifest))


def to_link(folder: Path) -> None:
    (folder / "text").symlink_to("/etc/hostname")
    (folder / "manifest.json").write_text(json.dumps(stores._manifest(folder)))


HARM = {
    "truncated": lambda f: os.truncate(f / "validation.npy", 9),
    "empty": lambda f: (f / "summary.json").write_text(""),
    "gone": lambda f: (f / "summary.json").unlink(),
    "another spec": lambda f: rewrite(f, "spec.json", {"kind": "train", "version": 3, "spec": {}}),
    "no spec": lambda f: rewrite(f, "spec.json", []),
    "a file outside": to_outside,
    "a link": to_link,
    "NUL in a name": lambda f: (f / "manifest.json").write_text(
        json.dumps({"files": {"a\0b": {"bytes": 0, "sha256": ""}}})
    ),
    "a name that is too long": lambda f: (f / "manifest.json").write_text(
        json.dumps({"files": {"a" * 300: {"bytes": 0, "sha256": ""}}})
    ),
}


@pytest.mark.parametrize("harm", HARM)
def test_nothing_damaged_or_hostile_is_taken(harm: str, ours: Store, theirs: Store) -> None:
    key = add(theirs, "train", {"a": 1})
    sound = add(theirs, "train", {"a": 2})
    HARM[harm](theirs.path("train", key))
    found = merge(ours, theirs.root)
    assert list(found.damaged) == [f"train/{key}"]
    assert found.taken == [f"train/{sound}"]
    assert ours.keys("train") == [sound]
    assert theirs.path("train", key).exists(), "the other store is only read"


def test_a_name_that_is_no_key_is_not_taken(ours: Store, theirs: Store) -> None:
    theirs.path("train", add(theirs, "train", {"a": 1})).rename(theirs.path("train", "mine"))
    assert merge(ours, theirs.root).damaged == {"train/mine": "its name is no key"}


def test_a_merge_that_is_cut_short_leaves_nothing_half(
    ours: Store, theirs: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = add(theirs, "train", {"a": 1})

    def full(source: Path, target: Path) -> None:
        raise OSError(28, "no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(merging.shutil, "copyfile", full)
        with pytest.raises(OSError, match="no space"):
            merge(ours, theirs.root)
    assert ours.keys("train") == []
    assert not list(ours.root.glob("*/.incoming/*"))
    assert merge(ours, theirs.root).taken == [f"train/{key}"]


def test_one_that_was_made_here_meanwhile_is_kept(
    ours: Store, theirs: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = add(theirs, "train", {"a": 1}, loss=1.6)
    flush = merging.flush

    def meanwhile(path: Path) -> None:
        if not ours.has("train", key):
            add(ours, "train", {"a": 1}, loss=1.5)
        flush(path)

    monkeypatch.setattr(merging, "flush", meanwhile)
    merge(ours, theirs.root)
    assert json.loads((ours.path("train", key) / "summary.json").read_text())["mael"] == 1.5


def test_the_key_of_a_result_is_the_digest_of_its_spec(ours: Store) -> None:
    key = add(ours, "train", {"a": 1})
    assert unsound(ours.path("train", key), "train", key) == ""
    assert digest(json.loads((ours.path("train", key) / "spec.json").read_text())) == key
    assert unsound(ours.path("train", key), "measure", key)


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """Two folders that hold the same numbers in every format."""
    for name in ("a", "b"):
        folder = tmp_path / name
        (folder / "deep").mkdir(parents=True)
        np.save(folder / "deep" / "losses.npy", np.array([1.0, np.nan, np.inf]))
        np.save(folder / "ids.npy", np.array([1, 2, 3]))
        save_file({"w": np.ones(3, dtype=np.float32)}, folder / "best.safetensors")
        frame = pd.DataFrame({"step": [1, 2], "loss": [2.0, 1.0], "seconds": [0.1, ord(name) / 7]})
        frame.to_parquet(folder / "curve.parquet")
        about = {"state": "turned", "mael": 1.0, "seconds": ord(name), "of": [None, True]}
        (folder / "summary.json").write_text(json.dumps(about))
        (folder / "text.txt").write_text("same")
        (folder / "provenance.json").write_text(json.dumps({"started": name}))
    return tmp_path / "a", tmp_path / "b"


def test_times_and_provenance_are_no_numbers_of_a_result(pair: tuple[Path, Path]) -> None:
    assert compare(*pair).same
    assert len(numbers(pair[0])) == 3 + 2 + 4 + 1


@pytest.mark.parametrize(
    ("change", "same", "close"),
    [
        (lambda f: np.save(f / "deep" / "losses.npy", [1 + 1e-7, np.nan, np.inf]), False, True),
        (lambda f: np.save(f / "deep" / "losses.npy", [1 + 1e-3, np.nan, np.inf]), False, False),
        (lambda f: np.save(f / "deep" / "losses.npy", [1.0, 2.0, np.inf]), False, False),
        (lambda f: np.save(f / "deep" / "losses.npy", [1.0, np.nan, -np.inf]), False, False),
        (lambda f: np.save(f / "deep" / "losses.npy", [1.0]), False, False),
        (lambda f: np.save(f / "ids.npy", np.array([1, 2, 4])), False, False),
        (lambda f: save_file({"v": np.ones(3, "f4")}, f / "best.safetensors"), False, False),
        (lambda f: save_file({"w": np.full(3, 1 + 1e-6, "f4")}, f / "best.safetensors"), False, True),
        (lambda f: (f / "summary.json").write_text('{"state": "plateau"}'), False, False),
        (lambda f: (f / "text.txt").write_text("other"), False, False),
        (lambda f: (f / "text.txt").unlink(), False, False),
        (lambda f: (f / "more.txt").write_text(""), False, False),
    ],
    ids=["rounding", "more than that", "a number for none", "sign of infinity", "shape", "an integer",
         "a name", "a weight's rounding", "a word", "text", "a file less", "a file more"],
)  # fmt: skip
def test_every_difference_is_found(
    pair: tuple[Path, Path], change, same: bool, close: bool
) -> None:
    change(pair[1])
    for found in (compare(*pair), compare(*reversed(pair))):
        assert (found.same, found.close) == (same, close)
        assert "differs" in str(found)
