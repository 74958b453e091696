"""The second embedded collection: docstrings of the scientific packages that are installed.

The packages are never imported; their files are parsed with `ast`.  An entry is a public module,
class, function or method, or a text that `add_newdoc` or `add_docstr` hangs on one.  Query: the first
sentence of its docstring; passage: the rest of its prose.  The text is that of the versions in
`VERSIONS`, which are those of requirements.lock; other versions are read as well, and are named.
"""

from __future__ import annotations

import ast
import gc
import importlib.metadata
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any, Literal

from pydantic import Field, field_validator

from repro.data.collection import Records
from repro.data.sources.prose import split
from repro.data.sources.sentences import SentenceParams
from repro.errors import UserError, nearest

RULES = 1  # raise it when the reading rules below, or those in prose.py, change on purpose
VERSIONS = {
    "contourpy": "1.3.3",
    "fonttools": "4.68.0",
    "formulaic": "1.2.2",
    "huggingface_hub": "2.4.0",
    "ipython": "9.18.1",
    "matplotlib": "3.11.2",
    "mpmath": "1.3.0",
    "narwhals": "2.29.0",
    "networkx": "3.6.1",
    "numpy": "2.4.6",
    "pandas": "3.1.1",
    "patsy": "1.0.3",
    "pillow": "13.0.0",
    "pyarrow": "26.0.1",
    "pydantic": "2.14.4",
    "scipy": "1.17.1",
    "seaborn": "0.13.2",
    "statsmodels": "0.15.0",
    "sympy": "1.14.0",
    "torch": "2.13.0",
    "transformers": "5.24.0",
}
# Folders and files with tests, copies of other packages, or what only some builds of a wheel hold.
_SKIPPED = {"tests", "test", "testing", "conftest.py", "setup.py", "_examples", "distutils"}
_COPIES = {
    "_vendor",
    "_vendored",
    "vendored",
    "extern",
    "externals",
    "_external",
    "array_api_compat",
}
_HANGS = {"add_newdoc", "add_docstr", "add_docstr_all", "add_newdoc_for_scalar_type"}


class PydocsParams(SentenceParams):
    """Which packages are read, and which entries count."""

    kind: Literal["pydocs"]
    packages: list[str] = Field(default=sorted(VERSIONS), min_length=1)

    @field_validator("packages")
    @classmethod
    def _known(cls, names: list[str]) -> list[str]:
        for name in names:
            if name not in VERSIONS:
                remedy = nearest(name, list(VERSIONS))
                raise ValueError(f"there is no package `{name}` here\n  remedy: {remedy}")
        if len(set(names)) < len(names):
            raise ValueError("a package stands twice\n  remedy: name each once")
        return names

    def fingerprint(self) -> dict[str, Any]:
        """The version of each package and the number of the reading rules."""
        versions = {name: public(_distribution(name).version) for name in sorted(self.packages)}
        return {"versions": versions, "rules": RULES}

    def departures(self) -> list[str]:
        """Each package whose version is another than the one of requirements.lock."""
        found = self.fingerprint()["versions"]
        return [
            f"{name} {version} in place of {VERSIONS[name]}"
            for name, version in found.items()
            if version != VERSIONS[name]
        ]

    def read(self) -> Records:
        """One query and one passage an entry; the group of a passage is its package."""
        dropped: Counter[str] = Counter()
        entries = (
            (package, entry, *split(docstring))
            for package in sorted(self.packages)
            for entry, docstring in _entries(package, dropped)
        )
        return self.records(entries, dropped)


def public(version: str) -> str:
    """A version without its local part: 2.13.0+cpu is the text of 2.13.0."""
    return version.partition("+")[0]


def docstrings(source: str | bytes, module: str) -> Iterator[tuple[str, str]]:
    """Dotted name and docstring of each public thing in the text of a module, in its order.

    A name that starts with an underscore is private, and so is all inside it; modules may have one,
    since public functions are defined in private modules.  Raises SyntaxError, ValueError.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(source)
    text = ast.get_docstring(tree, clean=False)
    if text:
        yield module, text
    yield from _inside(tree.body, module)


def _inside(body: list[ast.stmt], path: str) -> Iterator[tuple[str, str]]:
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if node.name.startswith("_"):
                continue
            text = ast.get_docstring(node, clean=False)
            if text:
                yield f"{path}.{node.name}", text
            if isinstance(node, ast.ClassDef):
                yield from _inside(node.body, f"{path}.{node.name}")
        elif isinstance(node, ast.If | ast.Try):
            yield from _inside(node.body, path)
            yield from _inside(node.orelse, path)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            yield from _hung(node.value, path)


def _hung(call: ast.Call, path: str) -> Iterator[tuple[str, str]]:
    """The text that a call such as add_newdoc("numpy", "array", text) hangs on a name."""
    function = ast.unparse(call.func).rpartition(".")[2]
    if function not in _HANGS or len(call.args) < 2:
        return
    *place, last = call.args
    name = ".".join(ast.unparse(part).strip("'\"") for part in place)
    members = last.elts if isinstance(last, ast.List) else [last]
    for member in members:
        own, text = name, member
        if isinstance(member, ast.Tuple) and len(member.elts) == 2:
            own, text = f"{name}.{ast.unparse(member.elts[0]).strip(chr(39))}", member.elts[1]
        found = _literal(text)
        if found and not own.rpartition(".")[2].startswith("_"):
            yield f"{path}.{own}", found


def _literal(node: ast.expr) -> str:
    """The text of a literal, also under .format(...) or as the start of a sum; else ""."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return _literal(node.func.value)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _literal(node.left) + _literal(node.right)
    return ""


def _entries(package: str, dropped: Counter[str]) -> Iterator[tuple[str, str]]:
    """Name and docstring of each entry of an installed package, file after file."""
    collecting = gc.isenabled()
    gc.disable()  # syntax trees are many small objects; the collector would double the time
    try:
        for path in sorted(_distribution(package).files or [], key=lambda path: path.as_posix()):
            if path.suffix != ".py" or path.parts[0].startswith("."):
                continue
            if (_SKIPPED | _COPIES) & set(path.parts):
                continue
            parts = [*path.parts[:-1], *([] if path.stem == "__init__" else [path.stem])]
            data = path.locate().read_bytes()  # type: ignore[attr-defined]
            try:
                yield from docstrings(data, ".".join(parts))
            except (SyntaxError, ValueError):
                dropped["file that this Python cannot parse"] += 1
    finally:
        if collecting:
            gc.enable()


def _distribution(name: str) -> importlib.metadata.Distribution:
    remedy = f"pip install {name}=={VERSIONS[name]}"
    try:
        found = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        raise UserError(f"the collection pydocs needs the package {name}", remedy=remedy) from None
    if not found.files:
        raise UserError(f"the installed {name} does not list its files", remedy=remedy)
    return found
