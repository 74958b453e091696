"""The run store: results keyed by the digest of everything that determines them.

    runs/<kind>/<key>/            a finished result, immutable; manifest.json is written last
    runs/<kind>/.work/<key>/      a result in the making (an interrupted one goes on from here)
    runs/<kind>/.lease/<key>      who is making it; taken over when its holder is dead
    runs/<kind>/.aside/           results whose files no longer match their digests

A result is published by one rename, so that it is there whole or not at all.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from repro import lease
from repro.provenance import provenance

# The result version of each kind.  Raise it when the numbers of that kind change on purpose: the
# golden test (tests/test_golden.py) fails until then, and old results are never taken for new ones.
VERSIONS = {
    "collection": 1,
    "splits": 1,
    "tokens": 1,
    "labels": 1,
    "pretrain": 2,
    "train": 3,
    "measure": 2,
}


def canonical(value: Any) -> str:
    """The one JSON text of `value`: sorted keys, no spaces, no NaN."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False
    )


def digest(value: Any) -> str:
    """Twenty hex digits (80 bits) of the sha256 of the canonical JSON of `value`."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()[:20]


def file_digest(path: Path) -> str:
    """sha256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_json(path: Path, value: Any) -> None:
    """Write `value` to `path` so that a reader sees the old or the new file, never a part."""
    text = json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    write_bytes(path, text.encode())


def write_bytes(path: Path, data: bytes) -> None:
    """Write, flush to disk, then rename into place."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    with temporary.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


class Store:
    """A folder of results; any number of processes may share it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._checked: set[Path] = set()

    def key(self, kind: str, spec: dict[str, Any]) -> str:
        """The key of the result that `spec` determines, its kind's result version included."""
        return digest({"kind": kind, "version": VERSIONS[kind], "spec": spec})

    def path(self, kind: str, key: str) -> Path:
        """Where the result lies once it is finished."""
        return self.root / kind / key

    def has(self, kind: str, key: str) -> bool:
        """Whether the result is finished (its files are not read)."""
        return (self.path(kind, key) / "manifest.json").exists()

    def find(self, kind: str, key: str) -> Path | None:
        """The folder of a finished result whose files match their digests, else None.

        Each result is checked once per process.  A damaged one is moved to `.aside/` and counts
        as missing, so that it is made again.
        """
        folder = self.path(kind, key)
        if not self.has(kind, key):
            return None
        if folder not in self._checked:
            fault = check(folder)
            if fault:
                self._set_aside(kind, folder, fault)
                return None
            self._checked.add(folder)
        return folder

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
            with self.claim(kind, key) as mine:
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

    def make(self, kind: str, spec: dict[str, Any], make: Callable[[Path], None]) -> Path:
        """Make the result in its work folder and publish it; the caller holds the lease."""
        key = self.key(kind, spec)
        found = self.find(kind, key)
        if found:  # published between the caller's look and its lease
            return found
        work, final = self.work(kind, key), self.path(kind, key)
        work.mkdir(parents=True, exist_ok=True)
        started = time.time()
        make(work)
        write_json(work / "spec.json", {"kind": kind, "version": VERSIONS[kind], "spec": spec})
        write_json(work / "provenance.json", provenance(started))
        write_json(work / "manifest.json", _manifest(work))
        _sync(work)
        try:
            work.rename(final)
        except OSError:
            if not self.has(kind, key):
                raise
            shutil.rmtree(work)  # another process published the same result first
        _sync(final.parent)
        return final

    def work(self, kind: str, key: str) -> Path:
        """Where the result is made."""
        return self.root / kind / ".work" / key

    def _set_aside(self, kind: str, folder: Path, fault: str) -> None:
        aside = self.root / kind / ".aside"
        aside.mkdir(parents=True, exist_ok=True)
        target = aside / f"{folder.name}.{uuid.uuid4().hex[:6]}"
        try:
            folder.rename(target)
        except FileNotFoundError:
            return  # another process did so already
        print(
            f"store: {kind}/{folder.name} is damaged ({fault}); moved to {target}, to be made again"
        )


def check(folder: Path) -> str:
    """What is wrong with a finished result, or an empty text."""
    try:
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        entries = manifest["files"].items()
        for name, entry in entries:
            path = folder / name
            if not path.is_file():
                return f"{name} is missing"
            if path.stat().st_size != entry["bytes"] or file_digest(path) != entry["sha256"]:
                return f"{name} does not match its digest"
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
    return {"files": files}


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
