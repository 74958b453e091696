"""The one rule by which text is cleaned, and what counts as a word."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

# Scripts written without spaces: there every character counts as a word of its own.
_UNSPACED = (
    "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
)
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")
_SPACED = re.compile(rf"[{_UNSPACED}]|[^\s{_UNSPACED}]+")
_ASCII_WORD = re.compile(r"[a-z0-9_]+")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_SURROGATE = re.compile("[\ud800-\udfff]")


def clean(text: str, repaired: Counter[str]) -> str:
    """`text` under the cleaning rule; each kind of repair adds one to its count in `repaired`.

    In this order: byte order marks go; CRLF and CR become LF; control characters other than tab
    and LF become a space; lone surrogates become U+FFFD; the whole becomes NFC; white space at
    either end goes (not counted).
    """
    if "\ufeff" in text:
        repaired["byte order mark"] += 1
        text = text.replace("\ufeff", "")
    if "\r" in text:
        repaired["CR or CRLF line ends"] += 1
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if _CONTROL.search(text):
        repaired["control characters"] += 1
        text = _CONTROL.sub(" ", text)
    if _SURROGATE.search(text):
        repaired["broken encoding"] += 1
        text = _SURROGATE.sub("\ufffd", text)
    if not unicodedata.is_normalized("NFC", text):
        repaired["not NFC"] += 1
        text = unicodedata.normalize("NFC", text)
    return text.strip()


def words(text: str) -> list[str]:
    """The case-folded words of `text`: runs of letters and digits; in CJK each character."""
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())  # the same, at twice the speed
    return _WORD.findall(text.casefold())


def spans(text: str) -> list[tuple[int, int]]:
    """Where the words of `text` start and end, punctuation with them: runs without white space.

    In CJK each character.
    """
    return [found.span() for found in _SPACED.finditer(text)]


def normal(text: str) -> str:
    """`text` case-folded, with single spaces: queries alike in this form are identical."""
    return " ".join(text.casefold().split())
