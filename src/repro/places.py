"""Where things lie: the checkout that the package runs from, and where a run writes."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).parents[2]  # the checkout, where the package is installed from one


def home() -> Path:
    """Where runs/ and build/ lie: REPRO_HOME, else the checkout, else the working folder."""
    if os.environ.get("REPRO_HOME"):
        return Path(os.environ["REPRO_HOME"]).expanduser().resolve()
    return ROOT if (ROOT / "params").is_dir() else Path.cwd()


def reference_data() -> Path | None:
    """The folder of public tables, which are not shipped: REPRO_REFERENCE_DATA; None where unset."""
    named = os.environ.get("REPRO_REFERENCE_DATA")
    return Path(named).expanduser().resolve() if named else None


def absolute(name: str) -> str:
    """A study's name, `profile` or `profile:dataset`, with each path in it made absolute."""
    parts = [
        str(Path(part).expanduser().absolute()) if _is_path(part) else part
        for part in name.split(":")
    ]
    return ":".join(parts)


def _is_path(part: str) -> bool:
    return part.endswith((".yaml", ".yml")) or "/" in part
