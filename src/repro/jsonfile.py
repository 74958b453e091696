"""Read a JSON file that another process, or a fault, may have left in any state."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def read(path: Path) -> Any:
    """What the file holds; raises `OSError`, or `ValueError` for what is no JSON, or could not be written.

    That is, numbers that are not finite, halves of characters, nesting beyond what Python follows.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        json.dumps(found, allow_nan=False, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return found
