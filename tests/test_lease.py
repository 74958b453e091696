"""A lease: one holder, heartbeat, and takeover from the dead of this host and of others."""

from __future__ import annotations

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


def test_a_holder_on_another_host_counts_by_its_heartbeat(tmp_path: Path) -> None:
    path = tmp_path / "key"
    me = {"token": "t", "host": "elsewhere", "boot": "b", "pid": 1, "started": "1"}
    path.write_text(json.dumps(me))
    assert lease.alive(path)
    old = time.time() - lease.STALE_SECONDS - 5
    os.utime(path, (old, old))
    assert not lease.alive(path)
    with lease.hold(path) as mine:
        assert mine


def test_of_many_who_follow_a_dead_holder_one_succeeds(tmp_path: Path) -> None:
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
    path = tmp_path / "key"
    looks = [name for name in ("_identity", "alive", "_age_seconds") if hasattr(lease, name)]
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


@pytest.mark.parametrize("content", ["", "{", "[]", '{"token": 1}'])
def test_a_damaged_lease_does_not_block_for_ever(tmp_path: Path, content: str) -> None:
    path = tmp_path / "key"
    path.write_text(content)
    old = time.time() - lease.STALE_SECONDS - 5
    os.utime(path, (old, old))
    with lease.hold(path) as mine:
        assert mine
