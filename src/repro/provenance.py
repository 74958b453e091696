"""Where a result comes from: commit, versions, device, threads.  Kept beside it, never in its key."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

PACKAGES = ("torch", "transformers", "tokenizers", "numpy", "scipy", "pandas", "ir_measures")


def provenance(
    started: float, spec: Mapping[str, Any] | None = None, about: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """What made a result that was begun at `started` (seconds since the epoch, UTC).

    spec: what determines it; its seeds and the digests of what it was made from are listed by name.
    about: what else is to be said of it, such as the device; without one it was made on the CPU.
    """
    return {
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
        "seconds": round(time.time() - started, 3),
        **surroundings(),
        "device": "cpu",
        "seeds": seeds_in(spec or {}),
        "made_from": digests_in(spec or {}),
        **(about or {}),
    }


@functools.cache
def surroundings() -> dict[str, Any]:
    """The code, the packages and the machine of this process."""
    difference = _git("diff", "HEAD", "--binary")
    return {
        "commit": _git("rev-parse", "HEAD"),
        "dirty": bool(_git("status", "--porcelain", "--untracked-files=no")),
        "dirty_digest": _sha256(difference.encode()) if difference else None,
        "code": code(),
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in PACKAGES},
        "machine": platform.machine(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": sys.modules["torch"].get_num_threads() if "torch" in sys.modules else None,
    }


@functools.cache
def code() -> str:
    """Digest of this package's source: it tells the code also where git does not (no checkout, new files)."""
    package = Path(__file__).parent
    paths = sorted(package.rglob("*.py"))
    lines = [f"{path.relative_to(package)} {_sha256(path.read_bytes())}" for path in paths]
    return _sha256("\n".join(lines).encode())


def flat(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """The leaves of nested data, each with its dotted name."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from flat(each, f"{name}.{key}" if name else str(key))
    else:
        yield name, value


def seeds_in(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The seeds that a spec names."""
    return {
        name: value
        for name, value in flat(spec)
        if name.rpartition(".")[2].endswith("seed") and value is not None
    }


def digests_in(spec: Mapping[str, Any]) -> dict[str, str]:
    """The digests and keys that a spec names: what its result is made from."""
    return {name: value for name, value in flat(spec) if _is_digest(value)}


def _is_digest(value: Any) -> bool:
    """Whether it is a digest as the store writes them: a key, or a whole sha256."""
    return isinstance(value, str) and re.fullmatch("[0-9a-f]{20}|[0-9a-f]{64}", value) is not None


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _processor() -> str:
    """The name of the processor."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.processor()
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return found[1].strip() if found else platform.processor()


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _git(*arguments: str) -> str | None:
    """A line of git about the checkout that this code runs from; None outside one."""
    try:
        done = subprocess.run(
            ["git", "-C", str(Path(__file__).parent), *arguments],
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
