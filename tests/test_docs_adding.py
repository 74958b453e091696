"""Pins: the examples of docs/adding-a-law.md and docs/adding-a-source.md do what the pages say."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any, Literal

import numpy as np

from repro.data.collection import Records, assemble
from repro.data.sources.files import File
from repro.data.sources.source import SourceParams
from repro.laws.fit import fit
from repro.laws.forms import Form
from repro.laws.powersum import PowerSum, Term
from repro.laws.table import Table

DOCS = Path(__file__).parents[1] / "docs"


def example(page: str) -> str:
    (block,) = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)
    return block


def test_the_law_of_the_page_is_fitted() -> None:
    law = eval(example("adding-a-law.md"), {"Form": Form, "PowerSum": PowerSum, "Term": Term})
    n, d = (x.ravel() for x in np.meshgrid([1e5, 3e5, 1e6, 3e6], [1e3, 3e3, 1e4, 3e4]))
    loss = 40 * n**-0.4 + 30 * d**-0.5 + 0.7
    fitted = fit(law, Table(loss, n, d))
    np.testing.assert_allclose(fitted.parameters["alpha"], 0.4, rtol=1e-4)
    np.testing.assert_allclose(fitted.parameters["E"], 0.7, rtol=1e-4)


def test_the_source_of_the_page_is_read(tmp_path: Path) -> None:
    names: dict[str, Any] = {
        "SourceParams": SourceParams, "Literal": Literal, "Path": Path, "Any": Any, "File": File,
        "Records": Records, "Counter": Counter,
    }  # fmt: skip
    exec(compile(example("adding-a-source.md"), "lines.py", "exec", dont_inherit=True), names)
    (tmp_path / "pairs.txt").write_bytes(b"what is a||an a\r\nwhat is b||a b\r\n")
    source = names["LinesParams"](kind="lines", file=tmp_path / "pairs.txt")
    collection = assemble("lines", "en", source.read())
    assert len(collection.queries) == 2
    assert source.fingerprint()["rules"] == 1
