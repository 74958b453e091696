"""A lease on a name: one holder at a time, a heartbeat, and takeover when the holder is dead.

No fcntl locks (they do not hold across hosts on network file systems): a lease is a file created
with O_EXCL.  It names its holder; a thread of the holder renews its time stamp.  On the same host
a holder is dead when its process is gone; on another host when the stamp is older than
`STALE_SECONDS`, by the clock of the file system itself.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HEARTBEAT_SECONDS = 10.0
STALE_SECONDS = 120.0


@contextmanager
def hold(path: Path) -> Iterator[bool]:
    """Hold the lease at `path` inside the block; yields False where someone alive holds it."""
    token = uuid.uuid4().hex
    if not (_create(path, token) or _take_over(path, token)):
        yield False
        return
    stop = threading.Event()
    beat = threading.Thread(target=_beat, args=(path, stop), daemon=True)
    beat.start()
    try:
        yield True
    finally:
        stop.set()
        beat.join()
        if _read(path).get("token") == token:
            path.unlink(missing_ok=True)


def alive(path: Path) -> bool:
    """Whether the lease at `path` is held by someone who is still there."""
    holder = _read(path)
    if not path.exists():
        return False
    if holder.get("host") == socket.gethostname() and holder.get("boot") == _boot():
        return _started(int(holder["pid"])) == holder["started"]
    return _age_seconds(path) < STALE_SECONDS


def _create(path: Path, token: str) -> bool:
    """Create the lease in one step, whole: write aside, then link to a name that must be new."""
    aside = path.with_name(f".{path.name}.{token}")
    aside.write_text(json.dumps(_me(token)), encoding="utf-8")
    try:
        os.link(aside, path)
        return True
    except FileExistsError:
        return False
    finally:
        aside.unlink()


def _take_over(path: Path, token: str) -> bool:
    """Replace a dead holder's lease; of several who try at once, one succeeds."""
    dead = _identity(path)
    if dead is None:  # gone meanwhile
        return _create(path, token)
    if alive(path):
        return False
    marker = path.with_name(f".{path.name}.after-{dead}")
    try:
        marker.touch(exist_ok=False)
    except FileExistsError:
        if _age_seconds(marker) > STALE_SECONDS:
            marker.unlink(missing_ok=True)
        return False
    try:
        if _identity(path) != dead:
            return False
        path.unlink()
        return _create(path, token)
    finally:
        marker.unlink(missing_ok=True)


def _me(token: str) -> dict[str, Any]:
    return {
        "token": token,
        "host": socket.gethostname(),
        "boot": _boot(),
        "pid": os.getpid(),
        "started": _started(os.getpid()),
    }


def _read(path: Path) -> dict[str, Any]:
    try:
        holder = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return holder if isinstance(holder, dict) and {"token", "pid", "started"} <= set(holder) else {}


def _identity(path: Path) -> str | None:
    """What tells this lease from any later one at the same place; None where there is none."""
    token = _read(path).get("token")
    if token is not None:
        return str(token)
    try:
        stat = path.stat()
    except OSError:
        return None
    return f"damaged-{stat.st_ino}-{stat.st_mtime_ns}"


def _beat(path: Path, stop: threading.Event) -> None:
    while not stop.wait(HEARTBEAT_SECONDS):
        with contextlib.suppress(OSError):
            os.utime(path)


def _age_seconds(path: Path) -> float:
    """Seconds since the stamp of `path`, both read from the clock of its file system."""
    probe = path.with_name(f".clock.{uuid.uuid4().hex}")
    try:
        probe.touch()
        return probe.stat().st_mtime - path.stat().st_mtime
    except OSError:
        return 0.0
    finally:
        probe.unlink(missing_ok=True)


def _started(pid: int) -> str:
    """The start time of a process, which tells it from a later one with the same id; "" if gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            fields = file.read().rpartition(")")[2].split()
    except FileNotFoundError:
        if os.path.isdir("/proc/self"):
            return ""
        return _started_portable(pid)
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]


def _started_portable(pid: int) -> str:
    """Where there is no /proc: psutil's start time."""
    import psutil

    try:
        return str(psutil.Process(pid).create_time())
    except psutil.Error:
        return ""


def _boot() -> str:
    """An id of this boot of this host, so that a process id from before a reboot is not believed."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return str(int(time.time() - time.monotonic()) // 60)
