"""Read a parameter file: YAML 1.2 in, a validated model out, and errors that name file, line, key and remedy.

Each room of the package declares its own parameters as a subclass of `Params`; `load` checks a file
against such a model.  YAML 1.2 matters: under YAML 1.1 (PyYAML) `lr: 1e-5` is a text.
"""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.constructor import DuplicateKeyError
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.tokens import AliasToken, TagToken

Location = tuple[str | int, ...]
MAX_BYTES = 200_000


class UserError(ValueError):
    """A fault in what the user gave: `where` it was found, `what` it is, and the `remedy`.

    The command line prints it on one screen and exits with code 2.
    """

    def __init__(self, what: str, *, where: str = "", remedy: str = "") -> None:
        super().__init__(what)
        self.what, self.where, self.remedy = what, where, remedy

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        return f"{place}{self.what}" + (f"\n  remedy: {self.remedy}" if self.remedy else "")


class Params(BaseModel):
    """Base of all parameter models: unknown keys are refused, values are frozen."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())

    @model_validator(mode="before")
    @classmethod
    def _no_booleans_for_numbers(cls, values: Any) -> Any:
        for name, value in values.items() if isinstance(values, dict) else ():
            field = cls.model_fields.get(str(name))
            if isinstance(value, bool) and field and "bool" not in str(field.annotation):
                raise ValueError(
                    f"{name}: {str(value).lower()} is no value for it\n  remedy: see params/mini.yaml"
                )
        return values


class Document:
    """The plain data of one YAML file, and the line (from 1) on which each key stands."""

    def __init__(self, path: Path, data: dict[str, Any], lines: dict[Location, int]) -> None:
        self.path, self.data, self.lines = path, data, lines

    def place(self, location: Location = ()) -> str:
        """`file:line` of the deepest part of `location` that stands in the file."""
        for end in range(len(location), 0, -1):
            if location[:end] in self.lines:
                return f"{self.path}:{self.lines[location[:end]]}"
        return str(self.path)


Model = TypeVar("Model", bound=BaseModel)


def load(path: Path, model: type[Model]) -> Model:
    """The parameters in the file at `path`, checked against `model`; raises `UserError`."""
    return validate(read(path), model)


def read(path: Path) -> Document:
    """The YAML mapping in the file at `path`; raises `UserError` where there is none."""
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
        lines: dict[Location, int] = {}
        data = _plain(node, (), lines, path) if isinstance(node, CommentedMap) else None
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
    return Document(path, data, lines)


def validate(document: Document, model: type[Model]) -> Model:
    """`document` as a `model`; raises `UserError` with every fault, the first ones first."""
    try:
        return model.model_validate(document.data)
    except ValidationError as error:
        faults = [_fault(document, model, dict(item)) for item in error.errors()]
    shown, more = faults[:5], len(faults) - 5
    what = "\n".join(str(fault) for fault in shown) + (f"\n(and {more} more)" if more > 0 else "")
    if len(faults) == 1:
        raise faults[0]
    raise UserError(f"{len(faults)} faults\n{what}", where=str(document.path))


def distinct(values: list[Any]) -> list[Any]:
    """`values`, refused where one of them stands twice."""
    if len(set(values)) != len(values):
        raise ValueError("a value stands twice\n  remedy: keep one of them")
    return values


def rising(values: list[Any]) -> list[Any]:
    """`values`, refused where they do not rise."""
    if sorted(set(values)) != values:
        raise ValueError("the values do not rise\n  remedy: list each once, smallest first")
    return values


def nearest(name: str, allowed: list[str]) -> str:
    """`did you mean X?`, or the list of what is allowed."""
    near = difflib.get_close_matches(name, allowed, n=1, cutoff=0.5)
    return f"did you mean `{near[0]}`?" if near else f"allowed: {', '.join(sorted(allowed))}"


def _text(path: Path) -> str:
    """The text of a file that is small, UTF-8 and free of aliases, which can blow up, and tags."""
    if path.stat().st_size > MAX_BYTES:
        raise UserError(
            f"the file has {path.stat().st_size:,} bytes, more than {MAX_BYTES:,}",
            where=str(path),
            remedy="a parameter file is a page or two; is this the right one?",
        )
    text = path.read_text(encoding="utf-8-sig")
    for token in YAML(typ="rt").scan(text):
        if isinstance(token, AliasToken | TagToken):
            kind = "an alias (*)" if isinstance(token, AliasToken) else "a tag (!)"
            raise UserError(
                f"{kind} cannot stand here",
                where=f"{path}:{token.start_mark.line + 1}",
                remedy="write the value out",
            )
    return text


def _fault(document: Document, model: type[BaseModel], item: dict[str, Any]) -> UserError:
    location: Location = tuple(
        part for part in item["loc"] if not str(part).startswith("function-")
    )
    key = ".".join(str(part) for part in location)
    where = document.place(location)
    if item["type"] == "extra_forbidden":
        return UserError(
            f"unknown key `{key}`",
            where=where,
            remedy=nearest(str(location[-1]), _keys(model, location)),
        )
    if item["type"] == "missing":
        return UserError(f"`{key}` is missing", where=where, remedy=f"add `{location[-1]}:`")
    message = item["msg"].removeprefix("Value error, ")
    message, _, remedy = message.partition("\n  remedy: ")
    value = "" if isinstance(item["input"], dict) else f" is {item['input']!r:.80}"
    return UserError(
        f"`{key}`{value}: {message[:1].lower() + message[1:]}" if key else message,
        where=where,
        remedy=remedy or _remedy(item["type"], item.get("ctx", {})),
    )


def _remedy(kind: str, limits: dict[str, Any]) -> str:
    """What would be right in place of a value that pydantic refused."""
    if kind.startswith("float"):
        return "write a number, such as 1e-5"
    if kind.startswith("int"):
        return "write a whole number"
    words = {"ge": "{} or more", "gt": "more than {}", "le": "{} or less", "lt": "less than {}"}
    found = [words[name].format(limit) for name, limit in limits.items() if name in words]
    if found:
        return f"use {' and '.join(found)}"
    known = "see params/mini.yaml, and docs/experiments.md for its sections"
    return f"allowed: {limits['expected']}" if "expected" in limits else known


def _keys(model: type[BaseModel], location: Location) -> list[str]:
    """The keys that `model` allows where the last part of `location` stands."""
    found: list[str] = []
    models: list[Any] = [model]
    for part in location[:-1]:
        inner: list[Any] = []
        for candidate in models:
            field = getattr(candidate, "model_fields", {}).get(str(part))
            inner += _models(field.annotation) if field else []
        models = inner or models
    for candidate in models:
        found += [field.alias or name for name, field in candidate.model_fields.items()]
    return found


def _models(annotation: Any) -> list[Any]:
    """The parameter models inside a type annotation, however nested."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for part in getattr(annotation, "__args__", ()) for found in _models(part)]


def _plain(node: Any, location: Location, lines: dict[Location, int], path: Path) -> Any:
    """`node` as plain dicts, lists and scalars; the line of each key goes into `lines`."""
    if isinstance(node, CommentedMap):
        out: dict[str, Any] = {}
        for key, value in node.items():
            here = (*location, str(key))
            lines[here] = node.lc.data[key][0] + 1 if key in node.lc.data else 0
            out[str(key)] = _plain(value, here, lines, path)
        return out
    if isinstance(node, CommentedSeq):
        for index in range(len(node)):
            lines[(*location, index)] = node.lc.data[index][0] + 1
        return [_plain(value, (*location, index), lines, path) for index, value in enumerate(node)]
    if isinstance(node, bool) or node is None:
        return node
    for plain in (int, float, str):
        if isinstance(node, plain):
            return plain(node)
    raise UserError(
        f"a {type(node).__name__} cannot stand here",
        where=f"{path}:{lines.get(location, 1)}",
        remedy="use text, numbers, true, false, lists and mappings only",
    )


def _line(error: Exception) -> int:
    mark = getattr(error, "problem_mark", None) if isinstance(error, MarkedYAMLError) else None
    return mark.line + 1 if mark else 1


def _names(folder: Path) -> list[str]:
    return [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
