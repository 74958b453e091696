"""Damage to a file: valid bytes, and a short list of edits that hypothesis draws and can shrink."""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

from hypothesis import strategies as st

DEEP = 1500  # levels of nesting: more than Python recurses
LEVELS = 60  # more than a parameter file has

# What breaks readers of text: marks, line ends, NUL, broken and lone code units, numbers that are
# none or too large, nesting, quotation, and paths that lead outside.
TOKENS = [
    b"\x00", b"\xef\xbb\xbf", b"\r\n", b"\r", b"\n", b"\t", b" ", b'"', b"'", b"\\", b",", b";", b":",
    b"\xff", b"\xc3\x28", b"\xed\xa0\x80", b"\\ud800", b"\x1b[31m", b"\xe2\x80\xa8", b"\x0c", b"\x85",
    b"NaN", b"Infinity", b"-Infinity", b"-0", b"1e999", b"1e-999", b"0x1F", b"1_000", "\u00b2".encode(),
    "\u0663".encode(), b"+-1", b"9" * 25, b"9" * 5000, b"null", b"true", b"[]", b"{}", b'{"a": 1}', b"",
    b"../../x", b"/etc/passwd", b"a" * 300, b"con\x00trol", b"<script>", b"=1+1", b"# ", b"---", b"{",
    b"}", b"[", b"]", b"[" * LEVELS, b'{"a":' * LEVELS, b"-" * 3, b"2024-01-01", b"!!python/object:os.system",
    b"&a", b"*a", b"<<: ", b"? ", b"| ", b"> ", b"%YAML 1.1\n---\n", b"~", b"\x1f\x8b", b"PK\x03\x04",
]  # fmt: skip
_FIELD = re.compile(rb"[^\s,:\t\"\[\]{}]+")

Edit = tuple[str, float, int, int]
KINDS = ("field", "insert", "line", "flip", "drop", "repeat", "cut", "field")


def damaged(bases: Sequence[bytes]) -> st.SearchStrategy[bytes]:
    """One of `bases` after some edits, or bytes of any kind."""

    def build(recipe: bytes) -> bytes:
        base, edits = decoded(recipe)
        return recipe[1:] if base >= 250 else apply(bases[base % len(bases)], edits)

    return recipes().map(build)


def recipes() -> st.SearchStrategy[bytes]:
    """What `decoded` takes: one draw, because hypothesis takes as long for each as a reader for a file."""
    return st.binary(max_size=21)


def decoded(recipe: bytes) -> tuple[int, list[Edit]]:
    """A number below 256, and four edits at most: what kind, where in the file (of 1), what, how much."""
    base, rest = (recipe or b"\0")[0], recipe[1:].ljust(-(-len(recipe[1:]) // 5) * 5, b"\0")
    parts = [rest[at : at + 5] for at in range(0, len(rest), 5)]
    edits = [(KINDS[p[0] % 8], int.from_bytes(p[1:3]) / 2**16, p[3], p[4]) for p in parts]
    return base, edits


def apply(data: bytes, edits: Sequence[Edit]) -> bytes:
    """`data` after each edit in turn."""
    for edit in edits:
        data = _one(data, edit)
    return data


def _one(data: bytes, edit: Edit) -> bytes:
    kind, where, what, much = edit
    at, token = int(where * (len(data) + 1)), TOKENS[what % len(TOKENS)]
    if kind == "insert":
        return data[:at] + token + data[at:]
    if kind == "cut":
        return data[:at]
    if kind == "drop":
        return data[:at] + data[at + 1 + much // 16 :]
    if kind == "flip":
        return data[:at] + bytes(each ^ (much or 1) for each in data[at : at + 1]) + data[at + 1 :]
    if kind == "repeat":
        return data[:at] + data[at : at + 1 + much] * 2 + data[at + 1 + much :]
    if kind == "line":
        lines = data.split(b"\n")
        place = int(where * len(lines))
        moved = [lines[place]] * (much % 3)  # gone, back again, or twice
        target = what * len(lines) // 256
        rest = lines[:place] + lines[place + 1 :]
        return b"\n".join(rest[:target] + moved + rest[target:])
    fields = list(_FIELD.finditer(data))
    if not fields:
        return token
    field = fields[int(where * len(fields))]
    return data[: field.start()] + token + data[field.end() :]


# What stands in place of a value in plain data.
VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 2, 0.5, -0.0, 1e-5, 1e300, 10**19, 10**30, math.nan, math.inf,
    "", " ", "x", "auto", "0", "1e3", "nan", "x" * 300, "../../x", "/etc/passwd", "a/../../b", "~root",
    "con\x00trol", "\x1b[31m", "a\nb", "<script>", "$(touch x)", "-x", "x.yaml", "org/name@../..",
    [], {}, [[]], [None], [1, 1], ["x", "x"], [math.nan], {"x": 1}, {"": None}, {"kind": "pairs"}, [{}],
]  # fmt: skip


def changed(bases: Sequence[Any], values: Sequence[Any] = VALUES) -> st.SearchStrategy[Any]:
    """One of the plain data `bases`, with a few of its values replaced, gone, doubled or moved."""

    def build(recipe: bytes) -> Any:
        base, edits = decoded(recipe)
        data = copy.deepcopy(bases[base % len(bases)])
        for kind, where, what, much in edits:
            places = list(_places(data))
            value = copy.deepcopy(values[what % len(values)])
            if not places:
                return value
            holder, key = places[int(where * len(places))]
            if kind == "drop":
                del holder[key]
            elif kind == "repeat":
                there, other = places[much * len(places) // 256]
                holder[key] = copy.deepcopy(there[other])
            elif kind == "line" and isinstance(holder, dict):
                holder[str(key) + "x"] = value
            else:
                holder[key] = value
        return data

    return recipes().map(build)


def _places(data: Any) -> Iterator[tuple[Any, Any]]:
    """Every (holder, key) in nested lists and dicts."""
    items = (
        data.items()
        if isinstance(data, dict)
        else enumerate(data)
        if isinstance(data, list)
        else ()
    )
    for key, value in list(items):
        yield data, key
        yield from _places(value)
