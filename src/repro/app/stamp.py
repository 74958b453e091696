"""Whether a finished build still fits what it was made from; answered without importing torch."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

from repro.places import ROOT, home, reference_data
from repro.store import write_json

if TYPE_CHECKING:
    from repro.app.study import Study

PACKAGE = Path(__file__).parents[1]


def write(study: Study, name: str) -> None:
    """Record what the build of `study` was made from: files, code and results."""
    results = [
        study.store.path(task.kind, study.store.key(task.kind, task.spec))
        for run in study.planned()
        for task in (run.train, run.ranking)
    ]
    record = {
        "files": {str(path): _fingerprint(path) for path in study.inputs()},
        "code": code(),
        "results": [str(path.relative_to(home())) for path in results],
        "build": str(study.build.relative_to(home())),
    }
    write_json(_path(name), record)


def unchanged(name: str) -> Path | None:
    """The build folder of the study `name`, if nothing that it was made from has changed."""
    try:
        record = json.loads(_path(name).read_text(encoding="utf-8"))
        build = home() / record["build"]
        same = record["code"] == code() and all(
            _fingerprint(Path(path)) == stamp for path, stamp in record["files"].items()
        )
        there = all((home() / result / "manifest.json").exists() for result in record["results"])
    except (OSError, ValueError, KeyError, AttributeError):
        return None
    return build if same and there and (build / "report.json").exists() else None


def code() -> str:
    """Digest of the package, the notebooks, the claims and the public tables, where there are any."""
    tables = reference_data()
    files = [
        *PACKAGE.rglob("*.py"),
        *(ROOT / "notebooks").glob("*.ipynb"),
        *(ROOT / "params").glob("claims.yaml"),
        *(tables.glob("*/*.csv") if tables else ()),
    ]
    lines = [f"{path} {hashlib.sha256(path.read_bytes()).hexdigest()}" for path in sorted(files)]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _path(name: str) -> Path:
    folder = home() / "build" / ".stamps"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{hashlib.sha256(name.encode()).hexdigest()[:16]}.json"


def _fingerprint(path: Path) -> list[int] | str:
    """Size and time of a file, or those of all files of a folder."""
    if path.is_dir():
        inside = sorted(entry for entry in path.rglob("*") if entry.is_file())
        lines = [f"{entry} {_fingerprint(entry)}" for entry in inside]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()
    status = path.stat()
    return [status.st_size, status.st_mtime_ns]
