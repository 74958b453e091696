"""The pages of the reference: one a room of the package, its modules in order; and the laws."""

from __future__ import annotations

import ast
import re
import textwrap
from pathlib import Path

import repro
from repro.laws.forms import FORMS

SOURCE = Path(repro.__file__).parent
CODE = re.compile(r"(`+[^`]+`+)")  # a span of code in a docstring
Named = ast.FunctionDef | ast.ClassDef
GROUND = "ground"  # the modules that lie in no room
TITLES = {
    GROUND: "Parameters, seeds, store",
    "data": "Data",
    "model": "Models",
    "measure": "Measures",
    "train": "Training",
    "work": "Work: queues, workers, clusters",
    "laws": "Laws",
    "experiments": "Experiments",
    "show": "Figures and words",
    "app": "Commands",
    "site": "The site",
}

PREFACE = """
The architecture is the folder tree of `src/repro`: a room below imports only from those above it. Public
names stand first in every module; units and sources are in the docstrings.
"""


def rooms() -> dict[str, list[str]]:
    """Room -> the dotted names of its modules, deeper ones after those above them."""
    found: dict[str, list[str]] = {name: [] for name in TITLES}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        if parts[-1] != "__init__":
            room = parts[0] if len(parts) > 1 else GROUND
            found[room].append(".".join(("repro", *parts)))
    return found


def write(folder: Path) -> list[str]:
    """Write a page a room into `folder`; returns their names.  No module is imported."""
    folder.mkdir(parents=True, exist_ok=True)
    for room, modules in rooms().items():
        text = "\n\n".join([f"# {TITLES[room]}", *map(_module, modules)])
        (folder / f"{room}.md").write_text(text + "\n", encoding="utf-8")
    return list(TITLES)


def forms() -> str:
    """The page of all laws: formula, source and parameters of each, from `laws.forms`."""
    parts = [
        "# The laws\n",
        "Every law that `repro fit` knows, as it is written in `laws/forms.py`.\n",
    ]
    for name, form in FORMS.items():
        latex = re.sub(r"\\big(?![a-z])", "", form.latex)  # a hint on size alone
        parts += [
            f"## {form.title}\n",
            f"`--form {name}`; predicts the {form.response}. Source: {form.source}.\n",
            f"```{{math}}\n{latex}\n```\n",
            "| parameter | meaning |\n| --- | --- |",
            *(f"| {each.name} | {each.meaning} |" for each in form.shape.parameters),
            "",
        ]
    return "\n".join(parts)


def prose(docstring: str | None) -> str:
    """A docstring as Markdown: `code` stays, every other sign stands for itself."""
    parts = CODE.split(docstring or "")
    return "".join(
        part if CODE.fullmatch(part) else re.sub(r"([\\*_<>\[\]{}#|$~])", r"\\\1", part)
        for part in parts
    )


def _module(name: str) -> str:
    """A module: its docstring, then its public functions and classes in their order."""
    source = (SOURCE.parent / name.replace(".", "/")).with_suffix(".py").read_text(encoding="utf-8")
    tree = ast.parse(source)
    parts = [f"## {name.removeprefix('repro.')}", prose(ast.get_docstring(tree))]
    for node in tree.body:
        if isinstance(node, Named) and not node.name.startswith("_"):
            parts += [f"### {prose(node.name)}", *_described(node, source.splitlines())]
    return "\n\n".join(parts)


def _described(node: Named, lines: list[str]) -> list[str]:
    """What stands under the heading of a function or a class."""
    said = [_block(_head(node, lines)), prose(ast.get_docstring(node))]
    if isinstance(node, ast.ClassDef):
        fields = [each for each in node.body if isinstance(each, ast.AnnAssign)]
        written = ["\n".join(lines[each.lineno - 1 : each.end_lineno]) for each in fields]
        said[0] = _block("\n".join([_head(node, lines), *written]))
        said += [
            f"- `{' '.join(_head(each, lines).split()).removeprefix('def ')}`: "
            + prose(ast.get_docstring(each)).replace("\n", "\n  ")
            for each in node.body
            if isinstance(each, ast.FunctionDef) and not each.name.startswith("_")
        ]
    return said


def _head(node: Named, lines: list[str]) -> str:
    """The lines that a function or class begins with, up to the colon."""
    head = "\n".join(lines[node.lineno - 1 : node.body[0].lineno - 1])
    return textwrap.dedent(head).strip().removesuffix(":")


def _block(code: str) -> str:
    return f"```python\n{code}\n```"
