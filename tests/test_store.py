"""The store: content keys, one rename to publish, damage found and set aside."""

from __future__ import annotations

import errno
import json
import os
import shutil
import threading
from pathlib import Path

import pytest

from repro import lease
from repro import store as stores
from repro.errors import UserError
from repro.files import canonical, digest
from repro.store import Spoilt, Store, Superseded, check


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
        lambda f: (f / "manifest.json").unlink(),
        lambda f: (f / "manifest.json").write_text(json.dumps({"files": {"a" * 300: {}}})),
        lambda f: (f / "manifest.json").write_text(json.dumps({"files": {"text/x": {}}})),
        lambda f: (f / "manifest.json").write_text(json.dumps({"files": {"a\0b": {}}})),
        lambda f: os.truncate(f / "spec.json", 3),
    ],
    ids=[
        "changed",
        "emptied",
        "gone",
        "manifest cut",
        "manifest wrong",
        "manifest gone",
        "long name",
        "name in a file",
        "NUL",
        "truncated",
    ],
)
def test_damage_is_found_set_aside_and_made_again(store: Store, damage, capsys) -> None:
    folder = store.get_or_make("train", {}, write("x"))
    damage(folder)
    assert check(folder)
    again = Store(store.root)  # a later process
    assert (again.get_or_make("train", {}, write("x")) / "text").read_text() == "x"
    assert "damaged" in capsys.readouterr().out
    assert len(list((store.root / "train" / ".aside").iterdir())) == 1


def dead_elsewhere(path: Path) -> None:
    """Rewrite a lease as that of another host, not heard of for a long time."""
    holder = {**json.loads(path.read_text()), "host": "elsewhere"}
    path.write_text(json.dumps(holder))
    os.utime(path, (1, 1))


@pytest.mark.parametrize("late", ["writes on", "only publishes", "finds the other still at it"])
def test_of_a_holder_and_its_successor_only_one_publishes(
    store: Store, monkeypatch: pytest.MonkeyPatch, late: str
) -> None:
    """A holder hangs, is taken for dead by another host, and comes back: it cannot do harm."""
    monkeypatch.setattr(lease, "WATCH_SECONDS", 0.0)
    spec: dict = {"a": 1}
    key, outcome = store.key("train", spec), []
    asleep, awake, waited = threading.Event(), threading.Event(), threading.Event()

    def hang(folder: Path) -> None:
        (folder / "state").write_text("step 7")
        (folder / ".state").write_text("half")
        asleep.set()
        assert awake.wait(30)
        if late == "writes on":
            (folder / "text").write_text("the former holder's")

    def first() -> None:
        with store.claim("train", key) as mine:
            assert mine
            try:
                outcome.append(store.make("train", spec, hang))
            except Exception as fault:
                outcome.append(fault)
        waited.set()

    def goes_on(folder: Path) -> None:
        assert (folder / "state").read_text() == "step 7"
        assert not (folder / ".state").exists(), "a half-written file may be open elsewhere"
        if late == "finds the other still at it":
            awake.set()
            assert waited.wait(30)
        (folder / "state").unlink()
        (folder / "text").write_text("the successor's")

    thread = threading.Thread(target=first)
    thread.start()
    assert asleep.wait(30)
    dead_elsewhere(store.root / "train" / ".lease" / key)
    found = Store(store.root).get_or_make("train", spec, goes_on)
    awake.set()
    thread.join()
    assert (found / "text").read_text() == "the successor's"
    assert check(found) == ""
    assert len(store.keys("train")) == 1
    assert store.unfinished("train") == []
    if late == "finds the other still at it":
        assert isinstance(outcome[0], Superseded)
    else:
        assert outcome[0] == found


def test_a_rename_whose_answer_was_lost_has_published(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NFS sends a request again when no answer comes; the second one finds nothing to rename."""
    rename = Path.rename

    def twice(source: Path, target: Path) -> Path:
        rename(source, target)
        return rename(source, target)

    monkeypatch.setattr(Path, "rename", twice)
    assert (store.get_or_make("train", {}, write("x")) / "text").read_text() == "x"


def test_what_a_dead_holder_left_is_gone_on_with_whatever_it_is_called(store: Store) -> None:
    for name in ("", ".0123abcd"):
        spec = {"name": name}
        left = store.root / "train" / ".work" / (store.key("train", spec) + name)
        left.mkdir(parents=True)
        (left / "state").write_text("step 7")
        folder = store.get_or_make("train", spec, lambda folder: None)
        assert (folder / "state").read_text() == "step 7"
    assert store.unfinished("train") == []


def test_a_maker_that_fails_keeps_its_state(store: Store) -> None:
    def fail(folder: Path) -> None:
        (folder / "state").write_text("step 7")
        raise OSError("no space left on device")

    with pytest.raises(OSError, match="no space"):
        store.get_or_make("train", {}, fail)
    assert len(store.unfinished("train")) == 1
    assert (store.get_or_make("train", {}, lambda f: None) / "state").read_text() == "step 7"


def test_a_bad_sector_is_damage_and_a_missing_right_is_not(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = store.get_or_make("train", {}, write("x"))

    def refuse(path: Path, code: int) -> str:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(stores, "file_digest", lambda path: refuse(path, errno.EIO))
    assert "Input/output error" in check(folder)
    monkeypatch.setattr(stores, "file_digest", lambda path: refuse(path, errno.EACCES))
    with pytest.raises(PermissionError):
        check(folder)


@pytest.mark.parametrize("change", ["damaged", "made again", "gone"])
def test_nothing_is_published_on_data_that_changed_while_they_were_read(
    store: Store, change: str, capsys: pytest.CaptureFixture[str]
) -> None:
    data = store.get_or_make("tokens", {"t": 1}, write("ids"))

    def make(folder: Path) -> None:
        write("from them")(folder)
        if change == "gone":
            shutil.rmtree(data)
            return
        (data / "text").write_text("idx")
        if change == "made again":
            other = Store(store.root)
            assert other.find("tokens", data.name) is None
            other.get_or_make("tokens", {"t": 1}, write("ids"))

    with pytest.raises(Spoilt, match=f"tokens/{data.name} was changed on disk while it was read"):
        store.make("train", {"r": 1}, make)
    assert not store.has("train", store.key("train", {"r": 1}))
    again = store.get_or_make("tokens", {"t": 1}, write("ids"))
    assert check(again) == ""
    assert store.make("train", {"r": 1}, write("right")).exists()


def test_other_results_may_change_while_one_is_made(store: Store) -> None:
    """Only what it rests on counts: data, and what was looked at for it."""
    other = store.get_or_make("train", {"r": 1}, write("x"))
    used = store.get_or_make("train", {"r": 2}, write("x"))

    def make(folder: Path) -> None:
        write("y")(folder)
        (other / "text").write_text("z")

    assert store.make("train", {"r": 3}, make).exists()

    def resting(folder: Path) -> None:
        assert store.find("train", used.name, again=True)
        write("y")(folder)
        (used / "text").write_text("z")

    with pytest.raises(Spoilt):
        store.make("measure", {"m": 1}, resting)
    assert not used.exists()  # set aside, to be made again


@pytest.mark.parametrize("kept", ["", "last.safetensors", "batches.jsonl", "shards"])
def test_what_was_refused_leaves_no_work_unless_there_is_something_to_go_on_from(
    store: Store, kept: str
) -> None:
    def refuse(folder: Path) -> None:
        (folder / "half").write_text("")
        if kept:
            (folder / kept).write_text("")
        raise UserError("no such column")

    with pytest.raises(UserError):
        store.get_or_make("collection", {"c": 1}, refuse)
    assert len(store.unfinished("collection")) == bool(kept)
