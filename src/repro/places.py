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
    """A study's name, `profile[+overlay...][:dataset]`, with each path in it made absolute."""
    return ":".join("+".join(_absolute(each) for each in _parted(part)) for part in name.split(":"))


def _parted(part: str) -> list[str]:
    """A profile and its overlays; a file that has a plus in its name is one."""
    return [part] if Path(part).is_file() else part.split("+")


def _absolute(part: str) -> str:
    is_path = part.endswith((".yaml", ".yml")) or "/" in part
    return str(Path(part).expanduser().absolute()) if is_path else part
