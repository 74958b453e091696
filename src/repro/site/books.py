"""Executed notebooks, made ready for a page: nothing is run again."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

# Cells that repeat what stands above them on the page.
REPEATED = "injected-parameters"
# What texts of a dataset, shown in a table, could start: HTML but for <br>, a role of MyST, a picture.
STARTS = re.compile(r"<(?!br>)(?=[a-zA-Z/!?])|\}(?=`)|!(?=\[)")


def copy(source: Path, target: Path) -> list[str]:
    """Write the notebooks of a folder, ready for a page, into another; returns their names, in order."""
    target.mkdir(parents=True, exist_ok=True)
    names = []
    for path in sorted(source.glob("[0-9]*.ipynb")):
        book = json.loads(path.read_text(encoding="utf-8"))
        (target / path.name).write_text(json.dumps(ready(book)), encoding="utf-8")
        names.append(path.stem)
    return names


def ready(book: dict[str, Any]) -> dict[str, Any]:
    """The notebook with the alternative text of each picture where MyST-NB looks for it.

    It takes one from the metadata of a cell, so a cell of several pictures is parted.
    """
    cells: list[dict[str, Any]] = []
    for cell in book["cells"]:
        if REPEATED not in cell["metadata"].get("tags", []):
            for output in cell.get("outputs", []):
                if "text/markdown" in output.get("data", {}):
                    shown = "".join(output["data"]["text/markdown"])
                    output["data"]["text/markdown"] = harmless(shown)
            cells += _parted(cell)
    return book | {"cells": cells}


def harmless(text: str) -> str:
    """Markdown in which nothing but <br> is HTML, a role or a picture: a space of no width parts its sign."""
    return STARTS.sub(lambda found: f"{found[0]}\u200b", text)


def _parted(cell: dict[str, Any]) -> list[dict[str, Any]]:
    pictures = [output for output in cell.get("outputs", []) if _alt(output) is not None]
    if not pictures:
        return [cell]
    first, *others = pictures
    rest = [output for output in cell["outputs"] if output not in others]
    parts = [_described({**cell, "outputs": rest}, first)]
    for number, picture in enumerate(others):
        own = {"id": f"{cell['id']}-{number}", "source": "", "outputs": [picture]}
        parts.append(_described({**cell, **own}, picture))
    return parts


def _described(cell: dict[str, Any], picture: dict[str, Any]) -> dict[str, Any]:
    image = {"mystnb": {"image": {"alt": _alt(picture)}}}
    return {**cell, "metadata": {**cell["metadata"], **image}}


def _alt(output: dict[str, Any]) -> str | None:
    """The alternative text of a picture; None where the output is none."""
    kinds = [kind for kind in output.get("data", {}) if kind.startswith("image/")]
    return output["metadata"].get(kinds[0], {}).get("alt", "") if kinds else None
