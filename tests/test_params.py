"""Parameter files: whatever is in them, a right answer or one clear error, soon."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repro import params
from repro.errors import UserError
from repro.params import Params


class Inner(Params):
    lr: float = 1e-3
    sizes: list[int] = [1]
    on: bool = False


class Outer(Params):
    name: str = "x"
    train: Inner = Inner()
    description: str = ""


def load(text: str | bytes, folder: Path) -> Outer:
    path = folder / "file.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return params.load(path, Outer)


@pytest.mark.parametrize("text", ["1e-5", "1E-5", "1.e-5", "0.00001", "+1e-5"])
def test_exponents_are_numbers(text: str, tmp_path: Path) -> None:
    assert load(f"train: {{lr: {text}}}", tmp_path).train.lr == 1e-5


@pytest.mark.parametrize("text", ['"\\ud83d\\ude00"', '"😀"', '"\\U0001F600"'])
def test_a_character_may_be_escaped_as_json_does(text: str, tmp_path: Path) -> None:
    assert load(f"name: {text}", tmp_path).name == "😀"


@pytest.mark.parametrize("text", ["﻿name: y", "name: y\r\n", "# only\nname: y", '{"name": "y"}'])
def test_what_editors_do_is_no_fault(text: str, tmp_path: Path) -> None:
    assert load(text, tmp_path).name == "y"


BAD = {
    "a tag": ("train: !!python/object/apply:os.system [echo]\n", ":1", "write the value out"),
    "a tag with keys": ("train: !!python/object:os.system\n  lr: 1\n", ":1", "write the value out"),
    "deep brackets": ("train: " + "[" * 5000, "", "see params/mini.yaml"),
    "deep braces": ("train: " + "{b:" * 3000, "", "see params/mini.yaml"),
    "digits": ("train: {lr: " + "9" * 6000 + "}", "", ""),
    "hexadecimal digits": ("seed: 0x" + "F" * 5000, ":1", "write a smaller one"),
    "half a character": ('train: {name: "\\ud800"}', ":1", "write the character itself"),
    "half a character in a key": ('"\\ud800": 1', ":1", "write the character itself"),
    "deep lines": (
        "\n".join(" " * level + "a:" for level in range(100)),
        ":51",
        "params/mini.yaml",
    ),
    "many values": ("a: [" + "1," * 60_000 + "1]", ":1", "right one"),
    "many keys": ("".join(f"k{i}: 1\n" for i in range(18_000)), "", "right one"),
    "controls": ('name: {"\\e[31m\\0": 1}', "", "params/mini.yaml"),
    "an alias": ("a: &a [1, 1]\nb: [*a, *a]\n", ":2", "write the value out"),
    "too large": ("x: 1\n" * 100_000, "", "right one"),
    "a boolean": ("train: {lr: true}", ":1", "see params/mini.yaml"),
    "not UTF-8": (b"name: \xff\xfe", "", "see params/mini.yaml"),
    "a tab": ("train:\n\tlr: 1\n", ":2", "see params/mini.yaml"),
    "a list": ("- 1\n", ":1", "see params/mini.yaml"),
    "a date": ("name: 2020-01-01\nbad: 2020-01-01\n", "", ""),
    "near": ("train: {lrr: 1}", ":1", "`lr`"),
    "long": ("train: {lr: " + "x" * 10_000 + "}", ":1", "number"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_fault_is_one_screen(name: str, tmp_path: Path) -> None:
    text, where, remedy = BAD[name]
    with pytest.raises(UserError) as caught:
        load(text, tmp_path)
    shown = str(caught.value)
    assert f"file.yaml{where}" in shown
    assert remedy in shown
    assert len(shown) < 2000
    assert len(shown.splitlines()) < 20
    assert shown.replace("\n", "").isprintable()


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(max_size=200), st.binary(max_size=200)))
def test_rubbish_never_ends_in_a_traceback(
    tmp_path_factory: pytest.TempPathFactory, text: object
) -> None:
    data = text if isinstance(text, bytes) else str(text).encode("utf-8", "surrogatepass")
    with contextlib.suppress(UserError):
        assert isinstance(load(data, tmp_path_factory.getbasetemp()), Outer)


def test_every_fault_is_told_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        load("name: [1]\ntrain:\n  lr: fast\n  size: 3\n", tmp_path)
    shown = str(caught.value)
    for line in (":1", ":3", ":4"):
        assert f"file.yaml{line}" in shown
