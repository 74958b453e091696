"""The repositories as the hub's library keeps them once they are downloaded: models--ORG--NAME/...

refs/<revision> names a commit; snapshots/<commit> holds its files, trees/<commit>.json lists them.  With
HF_HUB_OFFLINE=1 the library reads nothing else, so what is rehearsed is the library's own way to a file.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path


def cache(repositories: Path, folder: Path, revisions: Mapping[str, Iterable[str]]) -> Path:
    """The cache of everything under `repositories`, linked, not copied; returns `folder`.

    revisions: repository id -> the revisions by which it is asked for, beside main: commits and tags.
    """
    for place in sorted(repositories.glob("*/*")):
        name = f"{place.parent.name}/{place.name}"
        kind = "models" if (place / "config.json").is_file() else "datasets"
        target = folder / f"{kind}--{name.replace('/', '--')}"
        asked = sorted(set(revisions.get(name, ())))
        commits = [each for each in asked if re.fullmatch("[0-9a-f]{40}", each)]
        commits = commits or [hashlib.sha1(name.encode()).hexdigest()]
        for commit in commits:
            _link(place, target / "snapshots" / commit)
            _list(place, target / "trees" / f"{commit}.json")
        for tag in {"main", *asked} - {*commits}:
            reference = target / "refs" / tag
            reference.parent.mkdir(parents=True, exist_ok=True)
            reference.write_text(commits[0], encoding="utf-8")
    return folder


def _link(source: Path, target: Path) -> None:
    for file in _files(source):
        place = target / file.relative_to(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.unlink(missing_ok=True)
        os.link(file, place)


def _list(source: Path, target: Path) -> None:
    """The list of a commit's files in the library's own format (1, of huggingface_hub 2)."""
    listed = {}
    for file in _files(source):
        data = file.read_bytes()
        blob = hashlib.sha1(b"blob %d\x00" % len(data) + data).hexdigest()
        listed[file.relative_to(source).as_posix()] = {"size": len(data), "blob_id": blob}
    target.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"format_version": 1, "files": listed}, indent=1)
    target.write_text(text, encoding="utf-8")


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())
