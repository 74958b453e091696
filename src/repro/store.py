"""The run store: results keyed by the digest of everything that determines them.

    runs/<kind>/<key>/            a finished result, immutable; manifest.json is written last
    runs/<kind>/.work/<key>.*/    a result in the making (an interrupted one goes on from here)
    runs/<kind>/.lease/<key>      who is making it; taken over when its holder is dead
    runs/<kind>/.aside/           results whose files no longer match their digests
    runs/<kind>/.failed/          why a run was given up (repro.work.queue)
    runs/.plans/                  what each study asks for (repro.work.plans)

A result is published by one rename, so that it is there whole or not at all.  At most one is: whoever
makes a result first renames what is left of earlier work to a name of its own, and publishes by renaming
that.  A former holder that was taken for dead and comes back finds its folder gone: it can neither write
into its successor's work nor publish.  This rests on renames alone, on no clock and no lock.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from repro import lease
from repro.errors import UserError
from repro.files import digest, file_digest, flush, read_json, write_json
from repro.provenance import provenance

# The result version of each kind.  Raise it when the numbers of that kind change on purpose: the
# golden test (tests/test_golden.py) fails until then, and old results are never taken for new ones.
VERSIONS = {
    "collection": 1,
    "splits": 1,
    "tokens": 1,
    "labels": 2,  # 2: extracted words weighed by rarity
    "pretrain": 2,
    "train": 3,
    "measure": 2,
}

DATA = ("collection", "splits", "tokens", "labels")  # what lies on disk while runs read it
RESUMED = ("last.safetensors", "batches.jsonl", "shards")  # what makers go on from, in work folders

# Faults of reading that mean a damaged result: a bad sector, or a manifest that names no real files.
DAMAGED = (errno.EIO, errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR, errno.ELOOP)


class Superseded(RuntimeError):
    """Another process was taken for the holder of this result, and goes on with it."""


class Spoilt(RuntimeError):
    """What a result in the making rests on was changed on disk: it is to be begun again."""


class Store:
    """A folder of results; any number of processes may share it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._checked: dict[Path, list[Any]] = {}  # folder -> how it looked then
        self._used: set[Path] = set()  # those checked since the last call of `make`

    def key(self, kind: str, spec: dict[str, Any]) -> str:
        """The key of the result that `spec` determines, its kind's result version included."""
        return digest({"kind": kind, "version": VERSIONS[kind], "spec": spec})

    def path(self, kind: str, key: str) -> Path:
        """Where the result lies once it is finished."""
        return self.root / kind / key

    def has(self, kind: str, key: str) -> bool:
        """Whether the result is finished (its files are not read)."""
        return (self.path(kind, key) / "manifest.json").exists()

    def find(self, kind: str, key: str, *, again: bool = False) -> Path | None:
        """The folder of a finished result whose files match their digests, else None.

        Each result is checked once per process, and where that is asked for, `again`.  A damaged one
        is moved to `.aside/` and counts as missing, so that it is made again.
        """
        folder = self.path(kind, key)
        if not self.has(kind, key):
            return None
        if again or folder not in self._checked:
            looks = _looks(folder)
            if fault := check(folder):
                self.set_aside(kind, key, fault)
                return None
            self._checked[folder] = looks
            self._used.add(folder)
        return folder

    def confirm(self) -> None:
        """See that the data in use look as they did when they were checked; raises `Spoilt` if not.

        By the sizes and times of their files: the data lie on disk while they are read, and may be
        damaged, set aside and made again meanwhile.
        """
        for folder, looks in list(self._checked.items()):
            kind, key = folder.parent.name, folder.name
            if (kind in DATA or folder in self._used) and _looks(folder) != looks:
                for known in [each for each in self._checked if each.parent.name in DATA]:
                    del self._checked[known]  # all are looked at anew by whoever loads them anew
                self._checked.pop(folder, None)
                self.find(kind, key)
                raise Spoilt(f"{kind}/{key} was changed on disk while it was read")

    def keys(self, kind: str) -> list[str]:
        """The keys of the finished results of a kind, in order (their files are not read)."""
        try:
            with os.scandir(self.root / kind) as entries:
                names = sorted(e.name for e in entries if not e.name.startswith("."))
        except OSError:
            return []
        return [name for name in names if self.has(kind, name)]

    def read(self) -> set[tuple[str, str]]:
        """Kind and key of the results that this object has found, or made."""
        return {(folder.parent.name, folder.name) for folder in self._checked}

    def get_or_make(
        self,
        kind: str,
        spec: dict[str, Any],
        make: Callable[[Path], None],
        *,
        poll_seconds: float = 0.2,
    ) -> Path:
        """The folder of the result of `spec`: found, or made by `make(work_folder)`.

        Where another process is making it, this one waits for it, and takes over if it dies.
        """
        key = self.key(kind, spec)
        while True:
            found = self.find(kind, key)
            if found:
                return found
            with self.claim(kind, key) as mine, contextlib.suppress(Superseded):
                if mine:
                    return self.make(kind, spec, make)
            time.sleep(poll_seconds)

    @contextmanager
    def claim(self, kind: str, key: str) -> Iterator[bool]:
        """Hold the lease of `key` inside the block; yields False where someone alive holds it."""
        folder = self.root / kind / ".lease"
        folder.mkdir(parents=True, exist_ok=True)
        with lease.hold(folder / key) as mine:
            yield mine

    def held(self, kind: str, key: str) -> bool:
        """Whether someone alive is making the result."""
        return lease.alive(self.root / kind / ".lease" / key)

    def make(
        self,
        kind: str,
        spec: dict[str, Any],
        make: Callable[[Path], None],
        about: Mapping[str, Any] | None = None,
    ) -> Path:
        """Make the result in a work folder and publish it; the caller holds the lease.

        about: what its provenance is to say of it, beside what is known of any result.
        Raises `Superseded` where another process took the work over meanwhile, `Spoilt` where data
        that it was made from did not stay what they were.
        """
        key = self.key(kind, spec)
        found = self.find(kind, key)
        if found:  # published between the caller's look and its lease
            return found
        work, final = self._adopt(kind, key), self.path(kind, key)
        if final.exists() and not self.has(kind, key):
            self.set_aside(kind, key, "it has no manifest")
        started = time.time()
        before, self._used = self._used, set()
        try:
            make(work)
            self.confirm()
            write_json(work / "spec.json", {"kind": kind, "version": VERSIONS[kind], "spec": spec})
            write_json(work / "provenance.json", provenance(started, spec, about))
            write_json(work / "manifest.json", _manifest(work))
            flush(work)
            looks = _looks(work)
            work.rename(final)
            self._checked[final] = looks
        except Exception as fault:
            if isinstance(fault, UserError) and not _begun(work):
                shutil.rmtree(work, ignore_errors=True)  # refused: there is nothing to go on with
                raise
            if _there(work) and not (isinstance(fault, OSError) and self.has(kind, key)):
                raise
            if not self.has(kind, key):
                raise Superseded(f"{kind}/{key} was taken over by another process") from fault
        finally:
            self._used |= before
        flush(final.parent)
        self._clear(kind, key)
        return final

    def unfinished(self, kind: str) -> list[Path]:
        """The folders of work that was not published, each named after its key."""
        return sorted((self.root / kind / ".work").glob("[!.]*"))

    def set_aside(self, kind: str, key: str, fault: str) -> None:
        """Move a damaged result to `.aside/`, so that it counts as missing and is made again."""
        aside = self.root / kind / ".aside"
        aside.mkdir(parents=True, exist_ok=True)
        target = aside / f"{key}.{uuid.uuid4().hex[:6]}"
        try:
            self.path(kind, key).rename(target)
        except FileNotFoundError:
            return  # another process did so already
        print(f"store: {kind}/{key} is damaged ({fault}); moved to {target}, to be made again")

    def _adopt(self, kind: str, key: str) -> Path:
        """A work folder under a name of our own, with what a dead holder left where there is any."""
        mine = self.root / kind / ".work" / f"{key}.{uuid.uuid4().hex[:8]}"
        mine.parent.mkdir(parents=True, exist_ok=True)
        for left in self._left(kind, key):
            try:
                left.rename(mine)
            except FileNotFoundError:  # gone meanwhile
                continue
            for half in mine.rglob(".*"):  # half written; a former holder may have it open still
                if half.is_file():
                    half.unlink(missing_ok=True)
            return mine
        mine.mkdir()
        return mine

    def _left(self, kind: str, key: str) -> list[Path]:
        return [path for path in self.unfinished(kind) if path.name.partition(".")[0] == key]

    def _clear(self, kind: str, key: str) -> None:
        """Remove what is left of the work on a result that is published."""
        for left in self._left(kind, key):
            shutil.rmtree(left, ignore_errors=True)


def check(folder: Path) -> str:
    """What is wrong with a finished result, or an empty text."""
    try:
        for name, entry in read_json(folder / "manifest.json")["files"].items():
            path, parts = folder / name, name.split("/")
            if ".." in parts or "" in parts:
                return f"manifest.json names a place outside: {name[:80]!r}"
            if not path.is_file():
                return f"{name} is missing"
            if path.stat().st_size != entry["bytes"] or file_digest(path) != entry["sha256"]:
                return f"{name} does not match its digest"
    except FileNotFoundError as error:
        return f"{Path(str(error.filename)).name} is missing"
    except OSError as error:
        if error.errno not in DAMAGED:  # no right to read it, or no memory: that is no damage
            raise
        return f"it cannot be read: {error.strerror}"
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return f"manifest.json cannot be read: {error}"
    return ""


def _manifest(folder: Path) -> dict[str, Any]:
    paths = sorted(
        path for path in folder.rglob("*") if path.is_file() and path.name != "manifest.json"
    )
    files = {
        path.relative_to(folder).as_posix(): {
            "bytes": path.stat().st_size,
            "sha256": file_digest(path),
        }
        for path in paths
    }
    for path in paths:
        flush(path)
    return {"files": files}


def _looks(folder: Path) -> list[Any]:
    """Name, size, time of change and inode of each file of a result; a part of it where it changes."""
    found: list[Any] = []
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            seen = entry.stat()
            if entry.is_dir():
                found.append((entry.name, _looks(Path(entry.path))))
            else:
                found.append((entry.name, seen.st_size, seen.st_mtime_ns, seen.st_ino))
    return found


def _begun(work: Path) -> bool:
    """Whether there is something in it from which a maker goes on."""
    return any((work / name).exists() for name in RESUMED)


def _there(folder: Path) -> bool:
    """Whether the folder is there: by opening it, because a network file system may remember it."""
    try:
        os.scandir(folder).close()
    except OSError:
        return False
    return True
