"""What may go from a store: what nothing asks for any more, and what faults left behind.

Never a result that a study asks for, and nothing that anybody alive holds.  A finished result goes by one
rename first, so that none is ever half there.
"""

from __future__ import annotations

import shutil
import time
import uuid
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from repro import lease
from repro.files import read_json
from repro.store import VERSIONS, Store
from repro.work import batches
from repro.work.plans import Place

DAY = 86_400.0
Sort = Literal[
    "old version", "not asked for", "unfinished", "set aside", "failure", "converted", "batch",
    "remains",
]  # fmt: skip
SORTS: dict[Sort, str] = {
    "old version": "results of an earlier result version, which no run of this code asks for",
    "not asked for": "results that no named or planned study asks for",
    "unfinished": "work that nobody goes on with",
    "set aside": "damaged results, made again since or to be made again",
    "failure": "records of failures",
    "converted": "models converted to safetensors, converted again where a study needs them",
    "batch": "tasks and logs of cluster jobs that are over",
    "remains": "leases of the dead, and halves of what was being written or removed",
}


@dataclass(frozen=True)
class Item:
    """A file or folder that may go."""

    path: Path
    sort: Sort
    bytes: int
    place: Place | None = None  # of the result that it is, or would have become


def find(store: Store, keep: set[Place], *, only_kept: bool, older_days: float) -> list[Item]:
    """What may go.

    keep: results that stay in any case.  only_kept: of this result version nothing else stays.
    older_days: how long unfinished work, records of failures and what lies beside the results wait.
    """
    found: list[Item] = _beside(store, older_days)
    for kind in VERSIONS:
        folder = store.root / kind
        if not folder.is_dir():
            continue
        now = lease.clock(folder)

        def old(path: Path, now: float = now) -> bool:
            return now - _changed(path) >= older_days * DAY

        found += _results(store, kind, keep, only_kept)
        for path in store.unfinished(kind):
            place = (kind, path.name.partition(".")[0])
            if not store.held(*place) and (store.has(*place) or old(path)):
                found.append(_item(path, "unfinished", place))
        found += [_item(path, "set aside") for path in sorted((folder / ".aside").glob("*"))]
        for path in sorted((folder / ".failed").glob("*.json")):
            if store.has(kind, path.stem) or old(path):
                found.append(_item(path, "failure"))
        for path in sorted((folder / ".lease").glob("[!.]*")):
            if not lease.alive(path):
                found.append(_item(path, "remains", (kind, path.name)))
        halves = [*(folder / ".lease").glob(".*"), *(folder / ".incoming").glob("*")]
        halves += [*(folder / ".trash").glob("*"), *(folder / ".failed").glob(".*")]
        late = min(1.0, older_days) * DAY
        found += [_item(path, "remains") for path in sorted(halves) if now - _changed(path) >= late]
    return found


def busy(store: Store) -> list[Path]:
    """The leases that somebody alive holds: a sweep is at work."""
    paths = [path for kind in VERSIONS for path in (store.root / kind / ".lease").glob("[!.]*")]
    return [path for path in paths if lease.alive(path)]


def settle(store: Store) -> None:
    """Watch the leases of other hosts that have been silent, so that the dead are known as such."""
    silent = []
    for path in busy(store):
        holder = lease.look(path, lease.clock(path.parent))
        if holder is not None and not holder.alive:
            silent.append(path)
    if silent:
        print(f"watching {len(silent)} silent leases for {lease.WATCH_SECONDS:.0f} s")
        time.sleep(lease.WATCH_SECONDS + 1)


def remove(store: Store, items: Iterable[Item]) -> list[Item]:
    """Remove the items, and return those that stayed because they are in use after all.

    While a sweep is at work finished results stay: it may be reading them.
    """
    stayed = []
    for item in items:
        finished = item.sort in ("old version", "not asked for", "converted")
        if finished and busy(store):
            stayed.append(item)
        elif item.place is None:
            _away(store, item)
        else:
            with store.claim(*item.place) as mine:
                if not mine:
                    stayed.append(item)
                elif item.path.exists() and item.path.parent.name != ".lease":
                    _away(store, item)  # a lease of the dead has gone with our own
    return stayed


def as_text(items: list[Item]) -> str:
    """How many of each sort, and how large they are."""
    counts, sizes = Counter(item.sort for item in items), Counter[Sort]()
    for item in items:
        sizes[item.sort] += item.bytes
    lines = [
        f"  {counts[sort]:6,}  {sizes[sort] / 1e6:9.1f} MB  {SORTS[sort]}"
        for sort in SORTS
        if counts[sort]
    ]
    total = f"  {len(items):6,}  {sum(sizes.values()) / 1e6:9.1f} MB  in all"
    return "\n".join([*lines, total]) if items else "  nothing"


def _beside(store: Store, older_days: float) -> list[Item]:
    """Converted models, batches of jobs that are over, and halves of plans: all of them old."""
    if not store.root.is_dir():
        return []
    now, found = lease.clock(store.root), list[Item]()

    def old(path: Path, days: float = older_days) -> bool:
        return now - _changed(path) >= days * DAY

    for path in sorted((store.root / "converted").glob("[!.]*")):
        if old(path):
            found.append(_item(path, "converted"))
    late = [batch for batch in batches.find_all(store) if old(batch.folder)]
    seen = batches.look() if late and shutil.which("squeue") else "there is no Slurm here"
    known = {each.name for each in seen if each.active} if isinstance(seen, list) else None
    for batch in late:
        done = all(store.has(*where) for job in batch.jobs for where in job)
        if done or (known is not None and batch.name not in known):
            found.append(_item(batch.folder, "batch"))
    halves = [*(store.root / ".plans").glob(".*"), *store.root.glob(".slurm/.trash/*")]
    halves += store.root.glob("converted/.trash/*")
    return found + [
        _item(path, "remains") for path in sorted(halves) if old(path, min(1.0, older_days))
    ]


def _results(store: Store, kind: str, keep: set[Place], only_kept: bool) -> list[Item]:
    found = []
    for key in store.keys(kind):
        place, path = (kind, key), store.path(kind, key)
        if place in keep or store.held(*place):
            continue
        version = _version(path)
        if version is not None and version != VERSIONS[kind]:
            found.append(_item(path, "old version", place))
        elif only_kept and version is not None:
            found.append(_item(path, "not asked for", place))
    return found


def _version(folder: Path) -> int | None:
    """The result version of a finished result; None where it does not say: `verify` looks into that."""
    try:
        version = read_json(folder / "spec.json")["version"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return version if isinstance(version, int) else None


def _item(path: Path, sort: Sort, place: Place | None = None) -> Item:
    files = path.rglob("*") if path.is_dir() else [path]
    return Item(path, sort, sum(each.lstat().st_size for each in files if each.is_file()), place)


def _changed(path: Path) -> float:
    """When something in it changed last; infinitely late where it is gone meanwhile."""
    try:
        return max(each.lstat().st_mtime for each in [path, *path.rglob("*")])
    except OSError:
        return float("inf")


def _away(store: Store, item: Item) -> None:
    if not item.path.is_dir():
        item.path.unlink(missing_ok=True)
        return
    kind = item.path.relative_to(store.root).parts[0]
    trash = store.root / kind / ".trash"
    trash.mkdir(exist_ok=True)
    gone = trash / f"{item.path.name}.{uuid.uuid4().hex[:6]}"
    try:
        item.path.rename(gone)
    except FileNotFoundError:
        return
    shutil.rmtree(gone)
