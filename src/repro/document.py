"""Read a YAML 1.2 file as plain data that knows its lines, and lay others over it.

YAML 1.2 matters: under YAML 1.1 (PyYAML) `lr: 1e-5` is a text.  No aliases and no tags: they can blow up.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.constructor import DuplicateKeyError
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.tokens import (
    AliasToken,
    BlockEndToken,
    BlockMappingStartToken,
    BlockSequenceStartToken,
    FlowMappingEndToken,
    FlowMappingStartToken,
    FlowSequenceEndToken,
    FlowSequenceStartToken,
    TagToken,
)

from repro.errors import UserError

Location = tuple[str | int, ...]
MAX_BYTES = 200_000
MAX_DEPTH = 50
MAX_TOKENS = 10_000  # keys, values, and the marks between them
MOST_INTEGER = 10**30
OPENING = (
    BlockMappingStartToken,
    BlockSequenceStartToken,
    FlowMappingStartToken,
    FlowSequenceStartToken,
)
CLOSING = (BlockEndToken, FlowMappingEndToken, FlowSequenceEndToken)


class Document:
    """The plain data of one YAML file, and the place (`file:line`, from 1) at which each key stands."""

    def __init__(self, path: Path, data: dict[str, Any], places: dict[Location, str]) -> None:
        self.path, self.data, self.places = path, data, places

    def place(self, location: Location = ()) -> str:
        """`file:line` of the deepest part of `location` that stands in the file."""
        for end in range(len(location), 0, -1):
            if location[:end] in self.places:
                return self.places[location[:end]]
        return str(self.path)

    def under(self, overlay: Document) -> Document:
        """This document with what stands in `overlay` put over it: mappings key by key, all else whole."""
        data = _laid_over(self.data, overlay.data)
        return Document(self.path, data, {**self.places, **overlay.places})


def read(path: Path, *overlays: Path) -> Document:
    """The YAML mapping in the file at `path`, under those of `overlays`; raises `UserError`."""
    document = _read(path)
    for overlay in overlays:
        document = document.under(_read(overlay))
    return document


def _read(path: Path) -> Document:
    if not path.exists():
        near = difflib.get_close_matches(path.name, _names(path.parent), n=1)
        raise UserError(
            "there is no such file",
            where=str(path),
            remedy=f"did you mean {path.parent / near[0]}?" if near else "check the path",
        )
    if path.is_dir():
        raise UserError(
            "this is a directory, not a parameter file",
            where=str(path),
            remedy="name a .yaml file",
        )
    try:
        text = _text(path)
        node = YAML(typ="rt").load(text)
        places: dict[Location, str] = {}
        data = _plain(node, (), places, path) if isinstance(node, CommentedMap) else None
    except DuplicateKeyError as error:
        raise UserError(
            f"a key stands twice: {str(error.problem).split(' with value')[0]}",
            where=f"{path}:{_line(error)}",
            remedy="keep one of them",
        ) from None
    except (YAMLError, ValueError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, UserError):
            raise
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise UserError(
            f"this is not YAML 1.2 as it is used here: {problem}",
            where=f"{path}:{_line(error)}",
            remedy="see params/mini.yaml for a file that works",
        ) from None
    if node is None:
        raise UserError("the file is empty", where=str(path), remedy="see params/mini.yaml")
    if data is None:
        raise UserError(
            f"expected `key: value` lines, found a {type(node).__name__}",
            where=f"{path}:1",
            remedy="see params/mini.yaml for a file that works",
        )
    return Document(path, data, places)


def scanned(text: str, where: str) -> Iterator[Any]:
    """The tokens of a YAML text, refused where they nest deeply: ruamel takes quadratic time for that."""
    depth = 0
    for token in YAML(typ="rt").scan(text):
        depth += isinstance(token, OPENING) - isinstance(token, CLOSING)
        if depth > MAX_DEPTH:
            raise UserError(
                f"more than {MAX_DEPTH} levels of nesting",
                where=f"{where}:{token.start_mark.line + 1}",
                remedy="see params/mini.yaml for a file that works",
            )
        yield token


def _laid_over(below: Any, above: Any) -> Any:
    if not (isinstance(below, dict) and isinstance(above, dict)):
        return above
    return {**below, **{key: _laid_over(below.get(key), value) for key, value in above.items()}}


def _text(path: Path) -> str:
    """The text of a file that is small, UTF-8, not nested deeply, and free of aliases and tags.

    Aliases can blow up; the scanner takes quadratic time for deep nesting and long for many values.
    """
    if path.stat().st_size > MAX_BYTES:
        raise UserError(
            f"the file has {path.stat().st_size:,} bytes, more than {MAX_BYTES:,}",
            where=str(path),
            remedy="a parameter file is a page or two; is this the right one?",
        )
    text = path.read_text(encoding="utf-8-sig")
    for number, token in enumerate(scanned(text, str(path))):
        if number > MAX_TOKENS:
            raise UserError(
                f"more than {MAX_TOKENS:,} keys and values",
                where=f"{path}:{token.start_mark.line + 1}",
                remedy="a parameter file is a page or two; is this the right one?",
            )
        if isinstance(token, AliasToken | TagToken):
            kind = "an alias (*)" if isinstance(token, AliasToken) else "a tag (!)"
            raise UserError(
                f"{kind} cannot stand here",
                where=f"{path}:{token.start_mark.line + 1}",
                remedy="write the value out",
            )
    return text


def _plain(node: Any, location: Location, places: dict[Location, str], path: Path) -> Any:
    """`node` as plain dicts, lists and scalars; the place of each key goes into `places`."""
    if isinstance(node, CommentedMap):
        out: dict[str, Any] = {}
        for key, value in node.items():
            line = node.lc.data[key][0] + 1 if key in node.lc.data else 1
            name = _whole_text(str(key), location, places, path)
            here = (*location, name)
            places[here] = f"{path}:{line}"
            out[name] = _plain(value, here, places, path)
        return out
    if isinstance(node, CommentedSeq):
        for index in range(len(node)):
            places[(*location, index)] = f"{path}:{node.lc.data[index][0] + 1}"
        return [_plain(value, (*location, index), places, path) for index, value in enumerate(node)]
    if isinstance(node, bool) or node is None:
        return node
    if isinstance(node, str):
        return _whole_text(str(node), location, places, path)
    if isinstance(node, int) and abs(node) >= MOST_INTEGER:
        raise UserError(
            "a whole number of more than 30 digits cannot stand here",
            where=places.get(location, f"{path}:1"),
            remedy="write a smaller one, or as 1e30",
        )
    for plain in (int, float):
        if isinstance(node, plain):
            return plain(node)
    raise UserError(
        f"a {type(node).__name__} cannot stand here",
        where=places.get(location, f"{path}:1"),
        remedy="use text, numbers, true, false, lists and mappings only",
    )


def _whole_text(text: str, location: Location, places: dict[Location, str], path: Path) -> str:
    """`text`, characters that were escaped in two halves (as JSON does) joined; refused with one half."""
    try:
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise UserError(
            "this text holds half a character (an escape such as \\ud800)",
            where=places.get(location, f"{path}:1"),
            remedy="write the character itself",
        ) from None


def _line(error: Exception) -> int:
    mark = getattr(error, "problem_mark", None) if isinstance(error, MarkedYAMLError) else None
    return mark.line + 1 if mark else 1


def _names(folder: Path) -> list[str]:
    return [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
