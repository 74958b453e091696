"""What is done to a sweep: each fault is drawn by name and weight, and says in words what it did."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from repro import lease
from repro.store import VERSIONS

if TYPE_CHECKING:
    from torture.scene import Scene

# What carries a digest while it is being made.  Any other file of work that somebody is at lies there
# for the moment between being written and being hashed, and nobody can tell what it was meant to be.
SEALED = ("last.safetensors", "best.safetensors", "batches.jsonl")
DISK_MB = 192  # of a tmpfs, where one can be mounted


def kill_worker(scene: Scene, random: Random) -> str:
    """SIGKILL to one worker."""
    found = scene.workers()
    if not found:
        return ""
    chosen = random.choice(found)
    chosen.kill()
    return f"killed worker {chosen.pid}"


def kill_parent(scene: Scene, random: Random) -> str:
    """SIGKILL to a parent; its workers are to end by themselves."""
    return _send(scene, random, signal.SIGKILL)


def interrupt_parent(scene: Scene, random: Random) -> str:
    """Ctrl-C."""
    return _send(scene, random, signal.SIGINT)


def terminate_parent(scene: Scene, random: Random) -> str:
    """SIGTERM."""
    return _send(scene, random, signal.SIGTERM)


def truncate(scene: Scene, random: Random) -> str:
    """A file loses its end."""
    return _damage(
        scene, random, "truncated", lambda data: data[: random.randrange(max(1, len(data)))]
    )


def flip(scene: Scene, random: Random) -> str:
    """One bit of a file is another."""

    def flipped(data: bytes) -> bytes:
        place = random.randrange(len(data))
        changed = bytes([data[place] ^ (1 << random.randrange(8))])
        return data[:place] + changed + data[place + 1 :]

    return _damage(scene, random, "flipped a bit of", flipped)


def empty(scene: Scene, random: Random) -> str:
    """A file is emptied."""
    return _damage(scene, random, "emptied", lambda data: b"")


def delete(scene: Scene, random: Random) -> str:
    """A file is gone."""
    return _damage(scene, random, "deleted", lambda data: None)


def stale_lease(scene: Scene, random: Random) -> str:
    """The lease of a host that is dead, on a result that is not there."""
    open_places = [place for place in scene.places if not scene.store.has(*place)]
    if not open_places:
        return ""
    kind, key = random.choice(open_places)
    path = scene.store.root / kind / ".lease" / key
    if path.exists():
        return ""
    path.parent.mkdir(parents=True, exist_ok=True)
    dead = {"token": f"{random.getrandbits(64):x}", "host": "dead.example", "boot": "b", "pid": 7}
    path.write_text(json.dumps({**dead, "started": "1", "since": 0.0}), encoding="utf-8")
    silent = random.choice([0, 100, 3600])
    os.utime(path, (time.time() - silent, time.time() - silent))
    return f"left a lease of a dead host on {kind}/{key}, silent for {silent} s"


def full_disk(scene: Scene, random: Random) -> str:
    """No byte is left for a few seconds; only where the store lies on a disk of its own."""
    if not scene.own_disk:
        return ""
    ballast = scene.home / "ballast"
    try:
        with ballast.open("wb", buffering=0) as file:
            while file.write(bytes(1 << 20)):
                pass
    except OSError:
        pass
    seconds = random.uniform(0.5, 3)
    time.sleep(seconds)
    ballast.unlink(missing_ok=True)
    return f"filled the disk for {seconds:.1f} s"


def read_only(scene: Scene, random: Random) -> str:
    """Nothing may be written: a parent that is started there is to say so, and to end with 2."""
    if not scene.own_disk and os.getuid() == 0:
        return ""  # to root no folder is read-only
    scene.end_all()
    _writable(scene, False)
    try:
        done = scene.once()
    finally:
        _writable(scene, True)
    said = done.stdout + done.stderr
    if done.returncode != 2 or "cannot write there" not in said or "Traceback" in said:
        scene.faults.append(f"on a read-only store it ended with {done.returncode}: {said[-500:]}")
    return f"made the store read-only: {done.stderr.strip().splitlines()[:1]}"


FAULTS: dict[str, tuple[Callable[[Scene, Random], str], float]] = {
    "kill a worker": (kill_worker, 4),
    "kill a parent": (kill_parent, 0.7),
    "interrupt a parent": (interrupt_parent, 0.4),
    "terminate a parent": (terminate_parent, 0.4),
    "truncate a file": (truncate, 2),
    "flip a bit": (flip, 3),
    "empty a file": (empty, 2),
    "delete a file": (delete, 2),
    "leave a stale lease": (stale_lease, 2),
    "fill the disk": (full_disk, 0.7),
    "make it read-only": (read_only, 0.2),
}
KILLS = ("kill a worker", "kill a parent", "interrupt a parent", "terminate a parent")
DAMAGES = ("truncate a file", "flip a bit", "empty a file", "delete a file")


def injections(random: Random) -> dict[str, int]:
    """What a parent and its workers are started under: mostly nothing."""
    return random.choices(
        [
            {},
            {"clock": random.choice([-86400, -3600, 3600, 86400])},
            {"memory_mb": random.choice([16, 64, 128])},
            {"file_kb": random.choice([1, 100, 700])},
        ],
        [6, 2, 0.7, 0.7],
    )[0]


def _send(scene: Scene, random: Random, number: signal.Signals) -> str:
    running = [parent for parent in scene.parents if parent.process.poll() is None]
    if not running:
        return ""
    chosen = random.choice(running)
    chosen.ended_by = number
    chosen.process.send_signal(number)
    return f"sent {number.name} to parent {chosen.process.pid}"


def _damage(
    scene: Scene, random: Random, what: str, change: Callable[[bytes], bytes | None]
) -> str:
    files = [path for path in sorted(scene.store.root.rglob("*")) if path.is_file()]
    files = [path for path in files if _may_be_harmed(scene, path)]
    kinds = sorted({_sort(scene, path) for path in files})
    if not files:
        return ""
    sort = random.choice(kinds)  # else it would nearly always be a file of a finished run
    path = random.choice([each for each in files if _sort(scene, each) == sort])
    try:
        data = path.read_bytes()
        changed = change(data) if data else b""
        if changed is None:
            path.unlink()
        else:
            with path.open("r+b") as file:  # in place: whoever has it open sees it
                file.truncate(len(changed))
                file.write(changed)
    except OSError:
        return ""  # gone meanwhile, or the disk is full
    name = path.relative_to(scene.store.root)
    if len(name.parts) > 2 and not name.parts[1].startswith("."):
        scene.harmed.append("/".join(name.parts[:2]))
    return f"{what} {name}"


def _may_be_harmed(scene: Scene, path: Path) -> bool:
    parts = path.relative_to(scene.store.root).parts
    if len(parts) < 4 or parts[1] != ".work":
        return True
    held = lease.alive(scene.store.root / parts[0] / ".lease" / parts[2].partition(".")[0])
    return not held or path.name in SEALED or "shards" in parts


def _sort(scene: Scene, path: Path) -> str:
    """Where in the store it lies: `train`, `train/.lease`, `.plans`, ..."""
    parts = path.relative_to(scene.store.root).parts
    return "/".join(parts[: 2 if parts[0] in VERSIONS and parts[1].startswith(".") else 1])


def _writable(scene: Scene, yes: bool) -> None:
    if scene.own_disk:
        subprocess.run(
            ["mount", "-o", f"remount,{'rw' if yes else 'ro'}", str(scene.home)], check=True
        )
    else:
        scene.home.chmod(0o755 if yes else 0o555)


def mount(folder: Path) -> bool:
    """Give the folder a small disk of its own, where this process may; returns whether it has one."""
    if os.getuid() != 0 or sys.platform != "linux" or not shutil.which("mount"):
        return False
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m", "torture", str(folder)]
    return subprocess.run(command, capture_output=True).returncode == 0


def unmount(folder: Path) -> None:
    """Take that disk away, with all that lies on it."""
    subprocess.run(["umount", "--lazy", str(folder)], capture_output=True)
