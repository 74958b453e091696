"""Whether a finished build still fits what it was made from; answered without importing torch."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

from repro.app import beside
from repro.files import file_digest, write_json
from repro.places import ROOT, home, reference_data

if TYPE_CHECKING:
    from repro.app.study import Study

PACKAGE = Path(__file__).parents[1]
NAME = "stamp.json"


def write(study: Study, name: str) -> None:
    """Record what the build of `study` was made from, and what lies in it."""
    results = [study.store.path(*place) for place in study.tasks()]
    record = {
        "name": name,
        "files": {str(path): _fingerprint(path) for path in study.depends_on()},
        "code": code(),
        "beside": beside.seen(study.build),
        "results": [str(path.relative_to(home())) for path in results],
        "outputs": {
            str(path.relative_to(study.build)): [_fingerprint(path), file_digest(path)]
            for path in outputs(study.build)
        },
    }
    write_json(study.build / NAME, record)
    _pointer(name).parent.mkdir(parents=True, exist_ok=True)
    write_json(_pointer(name), {"build": str(study.build.relative_to(home()))})


def unchanged(name: str) -> Path | None:
    """The build folder of the study `name`, if nothing that it was made from or holds has changed."""
    try:
        build = home() / json.loads(_pointer(name).read_text(encoding="utf-8"))["build"]
        record = json.loads((build / NAME).read_text(encoding="utf-8"))
        same = (
            record["name"] == name  # and not another study that writes to the same folder
            and record["code"] == code()
            and record["beside"] == beside.seen(build)
            and all(_fingerprint(Path(path)) == seen for path, seen in record["files"].items())
            and all(_holds(build / path, *seen) for path, seen in record["outputs"].items())
            and all((home() / result / "manifest.json").exists() for result in record["results"])
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return build if same else None


def remove(build: Path) -> None:
    """Forget what a build was made from, before it is written to."""
    (build / NAME).unlink(missing_ok=True)


def outputs(build: Path) -> list[Path]:
    """What a reader opens in a build."""
    return sorted([
        build / "report.json",
        build / "grid.csv",
        build / "runs.csv",
        *(build / "notebooks").glob("[0-9]*.ipynb"),
        *(build / "figures").glob("[!.]*"),
    ])  # fmt: skip


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


def _pointer(name: str) -> Path:
    """The file that tells in which build folder the study `name` lies."""
    return home() / "build" / ".stamps" / f"{hashlib.sha256(name.encode()).hexdigest()[:16]}.json"


def _fingerprint(path: Path) -> list[int] | str:
    """Size and time of a file, or those of all files of a folder."""
    if path.is_dir():
        inside = sorted(entry for entry in path.rglob("*") if entry.is_file())
        lines = [f"{entry} {_fingerprint(entry)}" for entry in inside]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()
    status = path.stat()
    return [status.st_size, status.st_mtime_ns]


def _holds(path: Path, fingerprint: list[int], digest: str) -> bool:
    """Whether a file is as it was; one that was written again with the same bytes is."""
    return _fingerprint(path) == fingerprint or file_digest(path) == digest
