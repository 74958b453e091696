"""A lease on a name: one holder at a time, a heartbeat, and takeover when the holder is dead.

It works between hosts that share nothing but a file system.  The protocol:

- A lease is *taken* by making its file under a name that must be new: a hard link to a file that is
  already whole, or O_EXCL where there are no links.  No fcntl locks: on network file systems they do
  not hold across hosts.
- While it is *held*, a thread renews the file's time stamp every `HEARTBEAT_SECONDS`.
- The holder is *dead*, on this host and boot, when its process is gone.  On another host, when the
  stamp did not change while we watched it: for `STALE_SECONDS` of our own monotonic clock, or for
  `WATCH_SECONDS` (three heartbeats) where the stamp was already older than that by the time that the
  file system itself gives a new file.  No host's clock is compared with another's: one that is an
  hour off, or is set back, makes nobody dead.  Stamps may be as coarse as two seconds.
- It is *taken over* under a marker that one of several can make, after a second look at who held it.

A lease saves double work; it is no lock.  A holder that hung for minutes and comes back may find that
it has a successor.  So nothing is published on the strength of a lease: see `Store.make`, where the
successor renames the work folder first, and the former holder then has nothing to publish.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from repro.files import read_json

HEARTBEAT_SECONDS = 10.0
STALE_SECONDS = 120.0
WATCH_SECONDS = 35.0
MOST_TIME = 1e11  # seconds since the epoch: later than any calendar here goes
NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)

# Lease -> the stamp that this process saw last, and since when, by its monotonic clock.
_watched: dict[Path, tuple[tuple[int, int], float]] = {}


@dataclass(frozen=True)
class Holder:
    """Who holds a lease, as far as one look tells."""

    host: str
    pid: int
    here: bool  # on this host: what `alive` says is certain
    since: float | None  # seconds since the epoch by the holder's clock; None: not recorded
    silent_seconds: float  # since the last heartbeat, by the file system's clock
    alive: bool  # here: the process is there; elsewhere: it was heard of lately


@contextmanager
def hold(path: Path) -> Iterator[bool]:
    """Hold the lease at `path` inside the block; yields False where someone alive holds it."""
    token = uuid.uuid4().hex
    if not (_create(path, token) or _take_over(path, token)):
        yield False
        return
    inode, stop = _inode(path), threading.Event()
    beat = threading.Thread(target=_beat, args=(path, token, inode, stop), daemon=True)
    beat.start()
    try:
        yield True
    finally:
        stop.set()
        beat.join()
        if _ours(path, token, inode):
            path.unlink(missing_ok=True)


def alive(path: Path) -> bool:
    """Whether the lease at `path` is held by someone who is still there.

    A holder on another host is found dead only by looking again: see the protocol.
    """
    holder, stamp = _read(path), _stamp(path)
    if stamp is None:
        _watched.pop(path, None)
        return False
    if _here(holder):
        return _started(holder["pid"]) == holder["started"]
    return not _silent(path, stamp)


def look(path: Path, now: float) -> Holder | None:
    """Who holds the lease, at one look; None where nobody does.  now: `clock` of its folder."""
    holder, stamp = _read(path), _stamp(path)
    if stamp is None:
        return None
    silent = max(0.0, now - stamp[1] / 1e9)  # a stamp has more digits than a float
    here, since = _here(holder), holder.get("since")
    there = _started(holder["pid"]) == holder["started"] if here else silent < STALE_SECONDS
    known = float(since) if isinstance(since, int | float) and 0 <= since < MOST_TIME else None
    return Holder(str(holder.get("host", "?")), holder.get("pid", 0), here, known, silent, there)


def clock(folder: Path) -> float:
    """The time that the file system of `folder` gives a new file, seconds since the epoch.

    Where none can be made there, this host's clock.
    """
    probe = folder / f".clock.{uuid.uuid4().hex}"
    try:
        probe.touch()
        return probe.stat().st_mtime
    except OSError:
        return time.time()
    finally:
        with contextlib.suppress(OSError):
            probe.unlink(missing_ok=True)


def _create(path: Path, token: str) -> bool:
    """Create the lease in one step, whole: write aside, then link to a name that must be new."""
    aside, text = path.with_name(f".{path.name}.{token}"), json.dumps(_me(token))
    aside.write_text(text, encoding="utf-8")
    try:
        os.link(aside, path)
        return True
    except FileExistsError:  # perhaps by ourselves: NFS may repeat a link whose answer was lost
        return _read(path).get("token") == token
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        return _create_exclusively(path, text)
    finally:
        aside.unlink(missing_ok=True)


def _create_exclusively(path: Path, text: str) -> bool:
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
        return True
    except FileExistsError:
        return False


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
        stamp = _stamp(marker)
        if stamp is not None and _silent(marker, stamp):  # its maker died in the middle
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
        "since": round(time.time(), 1),
    }


def _here(holder: dict[str, Any]) -> bool:
    """Whether the holder is a process that can be seen from this one."""
    return holder.get("host") == socket.gethostname() and holder.get("boot") == _boot()


def _ours(path: Path, token: str, inode: int) -> bool:
    """Whether the lease is the one that we took, be its text damaged meanwhile."""
    holder = _read(path)
    if holder.get("token") == token:
        return True
    theirs = holder and (holder["pid"], holder["started"]) != (os.getpid(), _started(os.getpid()))
    return not theirs and _inode(path) == inode


def _inode(path: Path) -> int:
    stamp = _stamp(path)
    return stamp[0] if stamp else 0


def _read(path: Path) -> dict[str, Any]:
    """What the lease says of its holder; empty where it is gone or damaged."""
    try:
        holder = read_json(path)
    except (OSError, ValueError):
        return {}
    if not isinstance(holder, dict) or not isinstance(holder.get("pid"), int):
        return {}
    sound = isinstance(holder.get("started"), str) and re.fullmatch(
        r"[\w-]{1,64}", str(holder.get("token", ""))
    )
    return holder if sound else {}


def _stamp(path: Path) -> tuple[int, int] | None:
    """What a heartbeat changes: inode and time stamp, in nanoseconds; None where there is no file.

    Read through an open file: opening asks a network file system anew, a plain stat may be cached.
    """
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
    except FileNotFoundError:
        return None
    except OSError:
        try:
            status = path.stat()
        except OSError:
            return None
    return status.st_ino, status.st_mtime_ns


def _identity(path: Path) -> str | None:
    """What tells this lease from any later one at the same place; None where there is none."""
    token = _read(path).get("token")
    if token is not None:
        return str(token)
    stamp = _stamp(path)
    return None if stamp is None else f"damaged-{stamp[0]}-{stamp[1]}"


def _silent(path: Path, stamp: tuple[int, int]) -> bool:
    """Whether the stamp has stood still, while we watched, for so long that its holder is dead."""
    now = time.monotonic()
    seen, since = _watched.get(path, (None, now))
    if seen != stamp:
        _watched[path] = (stamp, now)
        since = now
    watched = now - since
    if watched >= STALE_SECONDS:
        return True
    return watched >= WATCH_SECONDS and clock(path.parent) - stamp[1] / 1e9 >= STALE_SECONDS


def _beat(path: Path, token: str, inode: int, stop: threading.Event) -> None:
    """Renew the stamp until told to stop, or until the lease is another's."""
    while not stop.wait(HEARTBEAT_SECONDS):
        if _stamp(path) is not None and not _ours(path, token, inode):
            return
        with contextlib.suppress(OSError):
            os.utime(path)


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
    """An id of this boot of this host and of its set of process ids.

    So that neither an id from before a reboot is believed, nor one from another container.
    """
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="utf-8") as file:
            return f"{file.read().strip()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return str(int(time.time() - time.monotonic()) // 60)
