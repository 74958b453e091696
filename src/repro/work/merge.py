"""Take over the finished results of another store, each checked first; ours are never touched."""

from __future__ import annotations

import re
import shutil
import uuid
from dataclasses import dataclass, field
from pathlib import Path

from repro.files import digest, flush, read_json
from repro.store import VERSIONS, Store, check
from repro.work.compare import compare

KEY = re.compile("[0-9a-f]{20}")


@dataclass
class Merged:
    """What became of the other store's results; places are `kind/key`."""

    taken: list[str] = field(default_factory=list)
    same: list[str] = field(default_factory=list)  # as ours, up to rounding
    unequal: dict[str, str] = field(default_factory=dict)  # ours are kept
    damaged: dict[str, str] = field(default_factory=dict)  # not taken
    old: list[str] = field(default_factory=list)  # of another result version: not taken


def merge(ours: Store, other: Path) -> Merged:
    """Take over what `other` (a folder of results) has and we have not."""
    merged, theirs = Merged(), Store(other)
    for kind in VERSIONS:
        for key in theirs.keys(kind):
            place, folder = f"{kind}/{key}", theirs.path(kind, key)
            if fault := unsound(folder, kind, key):
                merged.damaged[place] = fault
            elif _version(folder) != VERSIONS[kind]:
                merged.old.append(place)
            elif found := ours.find(kind, key):
                likeness = compare(found, folder)
                if likeness.close:
                    merged.same.append(place)
                else:
                    merged.unequal[place] = str(likeness)
            elif fault := _take(ours, kind, key, folder):
                merged.damaged[place] = fault
            else:
                merged.taken.append(place)
    return merged


def unsound(folder: Path, kind: str, key: str) -> str:
    """What is wrong with a finished result: its files, or a spec that is not the key's; else empty."""
    if not KEY.fullmatch(key):
        return "its name is no key"
    if fault := check(folder):
        return fault
    try:
        files = read_json(folder / "manifest.json")["files"]
        spec = read_json(folder / "spec.json")
        right = spec["kind"] == kind and digest(spec) == key
    except (OSError, ValueError, KeyError, TypeError) as error:
        return f"spec.json cannot be read: {error}"
    if not right:
        return "its spec is that of another key"
    for name in files:
        inside, path = Path(name), folder / name
        if (
            inside.is_absolute()
            or ".." in inside.parts
            or path.resolve() != folder.resolve() / name
        ):
            return f"{name[:80]!r} is not a file of its own"
    return ""


def _version(folder: Path) -> int:
    version = read_json(folder / "spec.json")["version"]
    return version if isinstance(version, int) else 0


def _take(ours: Store, kind: str, key: str, folder: Path) -> str:
    """Copy a result beside ours, check the copy, and publish it by a rename; returns what failed."""
    incoming = ours.root / kind / ".incoming" / f"{key}.{uuid.uuid4().hex[:8]}"
    incoming.mkdir(parents=True)
    try:
        files = read_json(folder / "manifest.json")["files"]
        for name in [*files, "manifest.json"]:
            target = incoming / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(folder / name, target)
            flush(target)
        if fault := check(incoming):
            return f"the copy is damaged: {fault}"
        flush(incoming)
        try:
            incoming.rename(ours.path(kind, key))
        except OSError:
            if not ours.has(kind, key):  # somebody made it meanwhile: then it is there
                raise
        return ""
    finally:
        shutil.rmtree(incoming, ignore_errors=True)
