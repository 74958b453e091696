"""A lease: one holder, heartbeat, and takeover from the dead of this host and of others."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from repro import lease

HOLDER = """
import sys, time
from pathlib import Path
from repro import lease
with lease.hold(Path(sys.argv[1])) as mine:
    print(mine, flush=True)
    time.sleep(60)
"""


def hold_elsewhere(path: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "True\n"
    return process


def test_one_holder_and_free_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "key"
    with lease.hold(path) as first, lease.hold(path) as second:
        assert (first, second) == (True, False)
        assert lease.alive(path)
    assert not lease.alive(path)
    with lease.hold(path) as third:
        assert third
    assert list(tmp_path.iterdir()) == []


def test_a_killed_holder_is_followed_at_once(tmp_path: Path) -> None:
    path = tmp_path / "key"
    process = hold_elsewhere(path)
    with lease.hold(path) as mine:
        assert not mine
    process.kill()
    process.wait()
    with lease.hold(path) as mine:
        assert mine


def taken_elsewhere(path: Path, stamp: float, token: str = "there") -> Path:
    """A lease of a process on another host, last renewed at `stamp`."""
    me = {"token": token, "host": "elsewhere", "boot": "b", "pid": 1, "started": "1"}
    path.write_text(json.dumps(me))
    os.utime(path, (stamp, stamp))
    return path


class Clocks:
    """In the place of `time` in the lease: this host's two clocks, moved by hand."""

    def __init__(self) -> None:
        self.wall, self.steady = time.time(), 1000.0

    def time(self) -> float:
        return self.wall

    def monotonic(self) -> float:
        return self.steady


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    found = Clocks()
    monkeypatch.setattr(lease, "time", found)
    return found


def test_a_dead_holder_on_another_host_is_followed_after_a_watch(
    tmp_path: Path, clocks: Clocks
) -> None:
    path = taken_elsewhere(tmp_path / "key", time.time() - lease.STALE_SECONDS - 5)
    assert lease.alive(path), "one look at an old stamp proves nothing: clocks may have moved"
    clocks.steady += lease.WATCH_SECONDS - 1
    assert lease.alive(path)
    clocks.steady += 2
    assert not lease.alive(path)
    with lease.hold(path) as mine:
        assert mine
    assert list(tmp_path.iterdir()) == []


def test_a_young_stamp_is_watched_longer(tmp_path: Path, clocks: Clocks) -> None:
    path = taken_elsewhere(tmp_path / "key", time.time())
    assert lease.alive(path)
    clocks.steady += lease.STALE_SECONDS - 1
    assert lease.alive(path)
    clocks.steady += 2
    assert not lease.alive(path)


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_live_holder_with_a_skewed_clock_is_left_alone(
    tmp_path: Path, clocks: Clocks, hours: int
) -> None:
    """Its stamps are an hour off, on a file system that takes them from its host; but they move."""
    path, skewed = tmp_path / "key", time.time() + 3600 * hours
    for beat in range(60):
        taken_elsewhere(path, skewed + beat * lease.HEARTBEAT_SECONDS)
        assert lease.alive(path)
        with lease.hold(path) as mine:
            assert not mine
        clocks.steady += lease.HEARTBEAT_SECONDS


def test_a_dead_holder_with_a_clock_ahead_is_followed_too(tmp_path: Path, clocks: Clocks) -> None:
    path = taken_elsewhere(tmp_path / "key", time.time() + 3600)
    assert lease.alive(path)
    clocks.steady += lease.STALE_SECONDS + 1
    assert not lease.alive(path)


@pytest.mark.parametrize("hours", [-1, 1])
@pytest.mark.parametrize("where", ["this host", "the file system"])
def test_a_clock_that_is_moved_by_an_hour_kills_nobody(
    tmp_path: Path, clocks: Clocks, monkeypatch: pytest.MonkeyPatch, where: str, hours: int
) -> None:
    path = taken_elsewhere(tmp_path / "key", time.time())
    assert lease.alive(path)
    clocks.wall += 3600 * hours
    if where == "the file system":  # its new files are stamped by the moved clock
        monkeypatch.setattr(lease, "clock", lambda folder: clocks.wall)
    clocks.steady += lease.HEARTBEAT_SECONDS / 2
    assert lease.alive(path)
    stamp = time.time() + (3600 * hours if where == "the file system" else 0) + 10
    taken_elsewhere(path, stamp)  # the next heartbeat
    clocks.steady += lease.STALE_SECONDS - 1
    assert lease.alive(path), "it was renewed since we looked"


def test_a_holder_on_this_host_needs_no_clock(tmp_path: Path, clocks: Clocks) -> None:
    """Alive however old its stamp is (a stopped process), dead at once when it is gone."""
    path = tmp_path / "key"
    process = hold_elsewhere(path)
    os.utime(path, (1, 1))
    clocks.steady += 10 * lease.STALE_SECONDS
    assert lease.alive(path)
    process.kill()
    process.wait()
    assert not lease.alive(path)


@pytest.mark.parametrize("what", ["host", "boot"])
def test_a_process_id_of_another_host_boot_or_container_is_not_believed(
    tmp_path: Path, what: str
) -> None:
    """No such process is here; that proves nothing of a holder that is elsewhere."""
    path, me = tmp_path / "key", {**lease._me("t"), "pid": 2**22 + 1}
    path.write_text(json.dumps(me))
    assert not lease.alive(path)
    path.write_text(json.dumps({**me, what: "another"}))
    assert lease.alive(path)


def test_the_heartbeat_moves_the_stamp_and_ends_when_the_lease_is_anothers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "HEARTBEAT_SECONDS", 0.02)
    path = tmp_path / "key"
    with lease.hold(path) as mine:
        assert mine
        os.utime(path, (1, 1))
        deadline = time.monotonic() + 20
        while path.stat().st_mtime == 1 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert path.stat().st_mtime > 1
        path.unlink()
        taken_elsewhere(path, 2.0, token="successor")
        time.sleep(0.2)
        assert path.stat().st_mtime == 2.0, "it renewed the lease of its successor"
    assert lease._read(path)["token"] == "successor", "it gave back a lease that was not its own"


@pytest.mark.parametrize("fault", [errno.EPERM, errno.EOPNOTSUPP])
def test_it_works_where_there_are_no_hard_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: int
) -> None:
    def refuse(*given: object) -> None:
        raise OSError(fault, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    path = tmp_path / "key"
    with lease.hold(path) as first, lease.hold(path) as second:
        assert (first, second) == (True, False)
    assert list(tmp_path.iterdir()) == []


def test_a_link_whose_answer_was_lost_is_still_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NFS sends a request again when no answer comes; the second one finds the first one's link."""
    link = os.link

    def twice(source: Path, target: Path) -> None:
        link(source, target)
        link(source, target)

    monkeypatch.setattr(os, "link", twice)
    with lease.hold(tmp_path / "key") as mine:
        assert mine


def test_one_look_tells_who_holds_it(tmp_path: Path) -> None:
    assert lease.look(tmp_path / "none", time.time()) is None
    with lease.hold(tmp_path / "key"):
        found = lease.look(tmp_path / "key", lease.clock(tmp_path))
    assert found is not None
    assert (found.pid, found.alive) == (os.getpid(), True)
    assert found.since == pytest.approx(time.time(), abs=60)
    assert 0 <= found.silent_seconds < 60
    far = taken_elsewhere(tmp_path / "far", time.time() - 500)
    silent = lease.look(far, lease.clock(tmp_path))
    assert silent is not None
    assert (silent.host, silent.alive) == ("elsewhere", False)
    assert silent.silent_seconds == pytest.approx(500, abs=60)
    ahead = lease.look(taken_elsewhere(tmp_path / "ahead", time.time() + 500), time.time())
    assert ahead is not None
    assert ahead.silent_seconds == 0


def test_of_many_who_follow_a_dead_holder_one_succeeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "WATCH_SECONDS", 0.0)
    for _ in range(20):
        path = tmp_path / "key"
        path.write_text(json.dumps(
            {"token": "dead", "host": "elsewhere", "boot": "b", "pid": 1, "started": "1"}
        ))  # fmt: skip
        os.utime(path, (1, 1))
        held, barrier, done = [], threading.Barrier(8), threading.Barrier(8)

        def one(path: Path = path, held: list = held, barrier=barrier, done=done) -> None:
            barrier.wait()
            with lease.hold(path) as mine:
                held.append(mine)
                done.wait()

        threads = [threading.Thread(target=one) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(held) == [False] * 7 + [True]


@pytest.mark.parametrize("content", ["", '{"token": "dead"}'])
def test_a_lease_taken_between_two_looks_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    """Another follows the dead holder while we look: whatever we saw before, its lease stays."""
    monkeypatch.setattr(lease, "WATCH_SECONDS", 0.0)
    path = tmp_path / "key"
    looks = [name for name in ("_identity", "alive", "_stamp", "_silent") if hasattr(lease, name)]
    for look in looks:
        path.write_text(content)
        os.utime(path, (1, 1))
        original, taken = getattr(lease, look), []

        def first_another(*given, original=original, taken=taken):  # type: ignore[no-untyped-def]
            if not taken:
                taken.append("before")
                path.unlink()
                found = original(*given)
                assert lease._create(path, "another")
                return found
            return original(*given)

        monkeypatch.setattr(lease, look, first_another)
        assert not lease._take_over(path, "ours")
        assert lease._read(path)["token"] == "another"
        monkeypatch.setattr(lease, look, original)
        path.unlink()


@pytest.mark.parametrize(
    "content",
    [
        "", "{", "[]", '{"token": 1}', "\0",
        '{"token": "../../x", "pid": 1, "started": "1"}',
        '{"token": "t", "pid": "one", "started": "1"}',
    ],
)  # fmt: skip
def test_a_damaged_lease_does_not_block_for_ever(
    tmp_path: Path, clocks: Clocks, content: str
) -> None:
    path = tmp_path / "key"
    path.write_text(content)
    with lease.hold(path) as mine:
        assert not mine
    clocks.steady += lease.STALE_SECONDS + 1
    with lease.hold(path) as mine:
        assert mine
    assert list(tmp_path.iterdir()) == []


def test_a_taker_that_died_in_the_middle_does_not_block_for_ever(
    tmp_path: Path, clocks: Clocks
) -> None:
    path = taken_elsewhere(tmp_path / "key", 1.0)
    marker = tmp_path / ".key.after-there"
    marker.touch()
    assert lease.alive(path)
    clocks.steady += lease.STALE_SECONDS + 1
    with lease.hold(path) as mine:
        assert not mine, "another is about to take it"
    clocks.steady += lease.STALE_SECONDS + 1
    with lease.hold(path) as mine:
        assert not mine
    assert not marker.exists()
    with lease.hold(path) as mine:
        assert mine


def damaged(path: Path, how: str) -> None:
    text = path.read_text()
    if how == "another token":
        place = text.index('"token": "') + 10
        text = text[:place] + ("1" if text[place] != "1" else "2") + text[place + 1 :]
    path.write_text({"emptied": "", "cut": text[:20]}.get(how, text))


@pytest.mark.parametrize("how", ["emptied", "cut", "another token"])
def test_a_lease_that_is_damaged_while_it_is_held_is_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Else its own process would wait for itself, and others for a process that lives."""
    monkeypatch.setattr(lease, "HEARTBEAT_SECONDS", 0.02)
    path = tmp_path / "key"
    with lease.hold(path):
        damaged(path, how)
        os.utime(path, (1, 1))
        deadline = time.monotonic() + 20
        while path.stat().st_mtime == 1 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert path.stat().st_mtime > 1, "nobody else may take it for dead"
    assert not path.exists()
    with lease.hold(path) as mine:
        assert mine
