"""Pins the rules of the notebooks' sources: stripped, thin, in one order, one parameter."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import nbformat
import pytest

FOLDER = Path(__file__).parents[1] / "notebooks"
SOURCES = sorted(FOLDER.glob("[0-9]*.ipynb"))
LONGEST = 12  # lines of a code cell
ORDER = (
    "# ",
    "## The question",
    "## What the papers claim",
    "## Parameters",
    "## Compute",
    "## Figure",
    "## Reading",
    "## Verdict",
    "## Provenance",
)

FRAME = (*ORDER[:4], *ORDER[-2:])  # what every page begins and ends with
SEVERAL = {
    "09_classical_laws"
}  # pages of many small questions, each with its own figure and reading

pytestmark = pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)


def read(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


def code(path: Path) -> list[nbformat.NotebookNode]:
    return [cell for cell in read(path).cells if cell.cell_type == "code"]


def test_source_is_stripped_and_valid(path: Path) -> None:
    book = read(path)
    nbformat.validate(book)
    assert (book.nbformat, book.nbformat_minor) == (4, 5)
    assert book.metadata.kernelspec.name == "python3"
    assert len({cell.id for cell in book.cells}) == len(book.cells)
    for cell in code(path):
        assert cell.outputs == []
        assert cell.execution_count is None


def test_cells_are_short_and_hold_no_logic(path: Path) -> None:
    for cell in code(path):
        assert len(cell.source.splitlines()) <= LONGEST, cell.source
        for node in ast.walk(ast.parse(cell.source)):
            assert not isinstance(
                node, ast.FunctionDef | ast.ClassDef | ast.Try | ast.For | ast.While
            )
        imported = re.findall(r"^(?:from|import) (\w+)", cell.source, re.MULTILINE)
        assert set(imported) <= {"repro"}, imported


def test_sections_stand_in_order(path: Path) -> None:
    text = "\n".join(cell.source for cell in read(path).cells if cell.cell_type == "markdown")
    heads = [line for line in text.splitlines() if re.match(r"##? ", line)]
    if path.stem in SEVERAL:
        heads = [head for head in heads if head.startswith(FRAME)]
    unknown = [head for head in heads if not head.startswith(ORDER)]
    assert not unknown, f"allowed: {ORDER}"
    places = [max(i for i, start in enumerate(ORDER) if head.startswith(start)) for head in heads]
    assert places == sorted(places), heads
    wanted = FRAME if path.stem in SEVERAL else ORDER
    assert {ORDER[place] for place in places} == set(wanted), heads


def test_one_parameter_a_plain_string(path: Path) -> None:
    tagged = [cell for cell in code(path) if "parameters" in cell.metadata.get("tags", [])]
    assert len(tagged) == 1
    (line,) = ast.parse(tagged[0].source).body
    assert isinstance(line, ast.Assign)
    assert isinstance(line.value, ast.Constant)
    assert isinstance(line.value.value, str)


def test_every_figure_and_number_comes_from_the_library(path: Path) -> None:
    text = "\n".join(cell.source for cell in code(path))
    assert "matplotlib" not in text
    assert "plt." not in text
    assert "study.figure(" in text


def test_all_notebooks_are_found(path: Path) -> None:
    assert {p.stem for p in SOURCES} >= {"01_subsets", "03_grid", "04_laws", "10_report"}
