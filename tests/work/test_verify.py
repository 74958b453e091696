"""Reading a whole store against its digests."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from repro.store import Store
from repro.work.verify import rehash
from stored import add


@pytest.fixture
def store(tmp_path: Path) -> Store:
    found = Store(tmp_path / "runs")
    for index in range(4):
        add(found, "train", {"index": index})
    add(found, "measure", {"run": "x"})
    return found


DAMAGE = {
    "truncated": lambda f: os.truncate(f / "validation.npy", 100),
    "a bit": lambda f: (f / "summary.json").write_bytes(
        bytes([(f / "summary.json").read_bytes()[0] ^ 1, *(f / "summary.json").read_bytes()[1:]])
    ),
    "empty": lambda f: (f / "spec.json").write_text(""),
    "gone": lambda f: (f / "provenance.json").unlink(),
    "no manifest": lambda f: (f / "manifest.json").unlink(),
    "nothing": lambda f: [path.unlink() for path in f.iterdir()],
    "moved": lambda f: f.rename(f.with_name("0" * 20)),
}


def test_a_sound_store_is_sound(store: Store) -> None:
    assert rehash(store, print) == (5, {})
    assert not list(store.root.glob("*/.aside"))


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_set_aside_and_nothing_deleted(store: Store, damage: str, capsys) -> None:
    key = store.keys("train")[1]
    DAMAGE[damage](store.path("train", key))
    before = sum(1 for path in store.root.rglob("*") if path.is_file())
    sound, faults = rehash(store, print)
    assert (sound, len(faults)) == (4, 1)
    assert "is damaged" in capsys.readouterr().out
    assert len(list((store.root / "train" / ".aside").iterdir())) == 1
    assert sum(1 for path in store.root.rglob("*") if path.is_file()) == before
    assert rehash(store, print) == (4, {})


def test_a_store_that_may_only_be_read_is_told_of(
    store: Store, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    DAMAGE["truncated"](store.path("train", store.keys("train")[0]))

    def refuse(*given: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(Store, "set_aside", refuse)
    assert len(rehash(store, print)[1]) == 1
    assert "Read-only file system: it lies there still" in capsys.readouterr().out
