"""Check a parameter file against a model: errors name file, line, key and remedy.

Each room of the package declares its own parameters as a subclass of `Params`; `load` checks a file
against such a model.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from repro.document import Document, Location, read
from repro.errors import UserError, nearest

# What tells a parameter file from those of other kinds, and where it is named.
KINDS = {
    "dataset file": ({"source", "language"}, "DATASET=, --dataset, or after the colon"),
    "profile": ({"models", "grid"}, "PROFILE=, or before the colon"),
}
MOST_NAME = 255  # bytes of a file's name


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
            _check_names(str(name), value, is_path=bool(field and "Path" in str(field.annotation)))
        return values


def switch(default: Any, **limits: Any) -> Any:
    """A field that is left out of specs and digests at its default, so that older keys stay as they are."""
    return Field(default, exclude_if=lambda value: value == default, **limits)


Model = TypeVar("Model", bound=BaseModel)


def load(path: Path, model: type[Model]) -> Model:
    """The parameters in the file at `path`, checked against `model`; raises `UserError`."""
    return validate(read(path), model)


def validate(document: Document, model: type[Model]) -> Model:
    """`document` as a `model`; raises `UserError` with every fault, the first ones first."""
    _check_kind(document, model)
    try:
        return model.model_validate(document.data)
    except ValidationError as error:
        faults = [_fault(document, model, dict(item)) for item in error.errors()]
    shown, more = faults[:5], len(faults) - 5
    what = "\n".join(str(fault) for fault in shown) + (f"\n(and {more} more)" if more > 0 else "")
    if len(faults) == 1:
        raise faults[0]
    raise UserError(f"{len(faults)} faults\n{what}", where=str(document.path))


def _check_kind(document: Document, model: type[BaseModel]) -> None:
    """Refuse a file of another kind than the one that is wanted, told by keys that only one kind has."""
    for kind, (keys, use) in KINDS.items():
        wanted = keys <= model.model_fields.keys()
        if not wanted and keys <= document.data.keys() and not keys & model.model_fields.keys():
            other = next(
                (k for k, (own, _) in KINDS.items() if own <= model.model_fields.keys()), ""
            )
            if other:
                raise UserError(
                    f"this is a {kind}, and a {other} is wanted here",
                    where=str(document.path),
                    remedy=f"name it where a {kind} is meant: {use}",
                )


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


def _check_names(key: str, value: Any, *, is_path: bool) -> None:
    """Refuse texts that no file can be called, among them those of a list."""
    for text in value if isinstance(value, list) else [value]:
        if not isinstance(text, str | Path):
            continue
        if "\0" in str(text):
            raise ValueError(f"{key}: a text here holds no NUL\n  remedy: write it without")
        if is_path and any(
            len(part.encode("utf-8", "replace")) > MOST_NAME for part in str(text).split("/")
        ):
            raise ValueError(
                f"{key}: a file's name is longer than {MOST_NAME} bytes\n  remedy: check the path"
            )


def _fault(document: Document, model: type[BaseModel], item: dict[str, Any]) -> UserError:
    location = _written(item["loc"], document.data, item["type"] == "missing")
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


def _written(location: Location, data: Any, lacking: bool) -> Location:
    """`location` as it stands in the file: without the names of validators and of union members.

    lacking: the last part is a key that the file should hold.
    """
    found: list[str | int] = []
    for place, part in enumerate(location):
        inside = (isinstance(data, dict) and part in data) or (
            isinstance(data, list) and isinstance(part, int) and part < len(data)
        )
        if inside:
            data = data[part]
        elif not (lacking and place == len(location) - 1):
            continue
        found.append(part)
    return tuple(found)


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
