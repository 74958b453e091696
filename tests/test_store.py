"""The store: content keys, one rename to publish, damage found and set aside."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

from repro import store as stores
from repro.store import Store, canonical, check, digest


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "runs")


def write(text: str):
    return lambda folder: (folder / "text").write_text(text) and None


def test_keys_depend_on_content_alone(store: Store) -> None:
    assert store.key("train", {"a": 1, "b": [2.0]}) == store.key("train", {"b": [2.0], "a": 1})
    assert store.key("train", {"a": 1}) != store.key("train", {"a": 2})
    assert store.key("train", {"a": 1}) != store.key("measure", {"a": 1})
    assert len(digest({})) == 20
    with pytest.raises(ValueError, match="JSON"):
        canonical({"a": float("nan")})


def test_a_new_result_version_is_a_new_key(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    before = store.key("train", {})
    monkeypatch.setitem(stores.VERSIONS, "train", stores.VERSIONS["train"] + 1)
    assert store.key("train", {}) != before


def test_a_result_is_made_once_and_found_again(store: Store) -> None:
    made = []
    for _ in range(3):
        folder = store.get_or_make("train", {"a": 1}, lambda f: made.append(1) or write("x")(f))
    assert made == [1]
    assert (folder / "text").read_text() == "x"
    assert json.loads((folder / "spec.json").read_text())["spec"] == {"a": 1}
    assert set(json.loads((folder / "manifest.json").read_text())["files"]) == {
        "text", "spec.json", "provenance.json",
    }  # fmt: skip


def test_a_failed_maker_publishes_nothing_and_is_tried_again(store: Store) -> None:
    with pytest.raises(RuntimeError):
        store.get_or_make("train", {}, lambda f: (_ for _ in ()).throw(RuntimeError("no")))
    assert not store.has("train", store.key("train", {}))
    assert (store.get_or_make("train", {}, write("y")) / "text").read_text() == "y"


def test_ten_at_once_make_one_result(store: Store) -> None:
    made: list[int] = []
    barrier, found = threading.Barrier(10), []

    def one() -> None:
        barrier.wait()
        make = lambda f: made.append(1) or write("x")(f)  # noqa: E731
        found.append(store.get_or_make("train", {}, make, poll_seconds=0.01))

    threads = [threading.Thread(target=one) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [1]
    assert len(set(found)) == 1


@pytest.mark.parametrize(
    "damage",
    [
        lambda f: (f / "text").write_text("z"),
        lambda f: (f / "text").write_text(""),
        lambda f: (f / "text").unlink(),
        lambda f: (f / "manifest.json").write_text('{"files"'),
        lambda f: (f / "manifest.json").write_text("[]"),
        lambda f: os.truncate(f / "spec.json", 3),
    ],
    ids=["changed", "emptied", "gone", "manifest cut", "manifest wrong", "truncated"],
)
def test_damage_is_found_set_aside_and_made_again(store: Store, damage, capsys) -> None:
    folder = store.get_or_make("train", {}, write("x"))
    damage(folder)
    assert check(folder)
    again = Store(store.root)  # a later process
    assert (again.get_or_make("train", {}, write("x")) / "text").read_text() == "x"
    assert "damaged" in capsys.readouterr().out
    assert len(list((store.root / "train" / ".aside").iterdir())) == 1
