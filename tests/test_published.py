"""Pins what is published: small enough to read on a forge, of results that the code would still give."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path

import pytest
from PIL import Image

from repro.app import readme
from repro.app.squeeze import squeeze
from repro.errors import UserError
from repro.show.style import panels, save
from repro.store import VERSIONS

ROOT = Path(__file__).parents[1]
BOOKS = sorted((ROOT / "notebooks" / "rendered").glob("*/*.ipynb"))
REPORTS = sorted((ROOT / "results").glob("*/report.json"))
MOST_BYTES = 1_000_000
BEHIND = 1  # result versions


def test_something_is_published() -> None:
    assert {"mini-apidocs", "midi-apidocs"} <= {path.parent.name for path in REPORTS}
    assert len(BOOKS) == 10 * len(REPORTS)


@pytest.mark.parametrize("path", BOOKS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_published_notebook_is_small(path: Path) -> None:
    assert path.stat().st_size < MOST_BYTES, "repro publish --squeeze"


@pytest.mark.parametrize("path", REPORTS, ids=lambda path: path.parent.name)
def test_published_results_are_at_most_one_version_old(path: Path) -> None:
    report = json.loads(path.read_text(encoding="utf-8"))
    old = {
        kind: f"{report['versions'].get(kind)} published, {version} in the code"
        for kind, version in VERSIONS.items()
        if not 0 <= version - report["versions"].get(kind, -99) <= BEHIND
    }
    assert not old, "run the profile again and publish it"
    assert report["missing"] == 0


def test_the_readme_shows_what_is_published(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert readme.renewed(text) == text, "repro publish --readme"
    stale = tmp_path / "README.md"
    stale.write_text(text.replace("M10", "M99"))
    assert readme.renew(stale)
    assert stale.read_text() == text
    assert not readme.renew(stale)
    with pytest.raises(UserError, match="lacks the marks"):
        readme.renewed("no table")


def test_a_notebook_is_squeezed_once_and_keeps_what_it_shows(tmp_path: Path) -> None:
    figure, axes = panels()
    axes.plot([1, 2, 3], [3, 1, 2], color="#D55E00")
    save(figure, tmp_path, "drawn", alt="A line that falls and rises.", data={})
    before = (tmp_path / "drawn.png").read_bytes()
    output = {
        "output_type": "display_data",
        "metadata": {"image/png": {"alt": "A line that falls and rises.", "width": 592}},
        "data": {"image/png": base64.b64encode(before).decode(), "text/plain": "a picture"},
    }
    book = {"cells": [{"cell_type": "code", "source": "draw()", "outputs": [output]}]}
    path = tmp_path / "book.ipynb"
    path.write_text(json.dumps(book))
    assert squeeze(path)
    (cell,) = json.loads(path.read_text())["cells"]
    small = base64.b64decode(cell["outputs"][0]["data"].pop("image/png"))
    output["data"].pop("image/png")
    assert cell == book["cells"][0]
    assert len(small) < len(before) / 2
    with Image.open(io.BytesIO(before)) as old, Image.open(io.BytesIO(small)) as new:
        assert new.info["Description"] == old.info["Description"]
        pairs = zip(old.convert("RGB").tobytes(), new.convert("RGB").tobytes(), strict=True)
        assert max(abs(a - b) for a, b in pairs) <= 24
    once = path.read_bytes()
    assert not squeeze(path)
    assert path.read_bytes() == once
