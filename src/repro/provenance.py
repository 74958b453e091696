"""Where a result comes from: commit, versions, device, threads.  Kept beside it, never in its key."""

from __future__ import annotations

import functools
import importlib.metadata
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

PACKAGES = ("torch", "transformers", "tokenizers", "numpy", "scipy", "pandas", "ir_measures")


def provenance(started: float) -> dict[str, Any]:
    """What made a result that was begun at `started` (seconds since the epoch, UTC)."""
    return {
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
        "seconds": round(time.time() - started, 3),
        **surroundings(),
    }


@functools.cache
def surroundings() -> dict[str, Any]:
    """The code, the packages and the machine of this process."""
    return {
        "commit": _git("rev-parse", "HEAD"),
        "dirty": bool(_git("status", "--porcelain", "--untracked-files=no")),
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in PACKAGES},
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "threads": sys.modules["torch"].get_num_threads() if "torch" in sys.modules else None,
    }


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
