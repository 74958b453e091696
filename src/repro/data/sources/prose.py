"""The prose of a docstring: what is left without signatures, tables, code, doctests and mark-up."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

# Sections that list names, and code; what stands under any other heading is prose.
_LISTS = (
    "parameters?|other parameters?|args|arguments|keyword arg(?:ument)?s|kwargs|optional arg(?:ument)?s"
    "|params|returns?|yields?|receives?|raises?|exceptions?|warns|attributes|variables|methods"
    "|properties|fields|functions|classes|see also|references?|bibliography|citation|authors?"
    "|usage|shape|inputs?|outputs?|side effects?|todo|contents|table of contents|availability"
)
_LIST_TITLE = re.compile(rf"(?:{_LISTS})", re.IGNORECASE)
_LIST_LABEL = re.compile(rf"\**(?:{_LISTS})\**\s*:{{1,2}}\**", re.IGNORECASE)  # Google's style
_PROSE_LABEL = re.compile(
    r"\**(?:notes?|warnings?|tips?|examples?|description|summary|overview)\**\s*:{1,2}\**", re.I
)
_ARGUMENT = re.compile(r"[`*]*\w+[`*]*\s*\(.+\)\s*:(?:\s.*)?")  # name (type, optional): text
_UNDERLINE = re.compile(r"([-=~^*#\"'+.])\1{2,}")
_RULE = re.compile(r"[-=+|~^*#\"_:]{3,}(?:\s+[-=+|]{2,})*")
_TABLE = re.compile(r"={2,}(?:\s+={2,})+|-{2,}(?:\s+-{2,})+")
_ADMONITION = re.compile(
    r"\.\. (?:note|warning|important|tip|hint|attention|caution)::\s*(.*)", re.IGNORECASE
)
_DIRECTIVE = re.compile(r"\.\.(?!\.).*")  # and comments, footnotes, targets
_FIELD = re.compile(
    r":(?:param|parameter|arg|type|returns?|rtype|raises?|var|ivar|cvar|keyword)\b.*"
)
_PLACEHOLDER = re.compile(r"%\(\w[^)]*\)s|\{\w*\}|<<.*>>")
_TEMPLATE = re.compile(r"%\(\w[^)]*\)[srd]")
_QUOTE = re.compile(r"^\s*>\s?(?:\[!\w+\])?\s*")  # Markdown's > [!TIP]
_SIGNATURE = re.compile(r"[\w.]+\s*\([^()]*(?:\([^()]*\)[^()]*)*\)(?:\s*->\s*\S.*)?")
_BULLET = re.compile(r"^\s*(?:[-*+•]|\(?\d{1,2}[.)])\s+")
_INLINE = [
    (re.compile(r"!?\[`?([^\]\n`]*)`?\]\([^)\s]*\)"), r"\1"),  # [text](address)
    (re.compile(r"\[`~?([^`\]]*)`\]"), r"\1"),  # [`~package.Name`]
    (re.compile(r"`([^`<]+?)\s*<[^<>`]*>`__?"), r"\1"),  # `text <address>`_
    (re.compile(r":[\w:.+-]+:`([^`<]+?)\s*<[^<>`]*>`"), r"\1"),  # :role:`text <target>`
    (re.compile(r":[\w:.+-]+:`[~!]?([^`]*)`"), r"\1"),  # :role:`target`
    (re.compile(r"\s?\[(?:\d+|\w+\d+)\]_|\s?\[\d+\](?=[\s.,;)]|$)"), ""),  # [1]_
    (re.compile(r"</?(?:Tip|i|b|em|strong|code|br|p|a|img|small)(?:\s[^<>]*)?/?>"), " "),
    (re.compile(r"https?://[^\s)>\]]+"), " "),
    (re.compile(r"\|(\w[^|\n]*)\|_?"), r"\1"),  # |substitution|
    (re.compile(r"`+_{0,2}"), ""),
    (re.compile(r"(?<![\w*])\*\*(?=\S)([^*\n]+)(?<=\S)\*\*(?![\w*])"), r"\1"),
    (re.compile(r"(?<![\w*])\*([A-Za-z][^*\n]*)(?<=\S)\*(?![\w*])"), r"\1"),
]
_SENTENCE_END = re.compile(
    r"(?<=[.!?])(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\betc\.)(?<!\bvs\.)(?<!\bcf\.)(?<!\bal\.)(?<!\bFig\.)"
    r"(?<!\bEq\.)(?<!\bNo\.)(?<!\b[A-Z]\.)\s+(?=[\"'(\[]?[A-Z0-9])"
)


def split(docstring: str) -> tuple[str, str]:
    """The first sentence of a docstring and the rest of its prose, each on one line.

    A sentence ends at its full stop before a capital or a digit, or where its paragraph ends.
    """
    paragraphs = [text for text in map(_plain, _paragraphs(docstring)) if re.search(r"\w", text)]
    while paragraphs and _SIGNATURE.fullmatch(paragraphs[0]):
        paragraphs = paragraphs[1:]
    if not paragraphs:
        return "", ""
    first, *rest = _SENTENCE_END.split(paragraphs[0], maxsplit=1)
    return first, " ".join([*rest, *paragraphs[1:]])


def _paragraphs(docstring: str) -> Iterator[str]:
    """The paragraphs and list items that are prose, their lines joined."""
    held: list[str] = []
    for line in [*_prose_lines(inspect.cleandoc(docstring).split("\n")), ""]:
        if held and (not line.strip() or _BULLET.match(line)):
            yield " ".join(held)
            held = []
        if line.strip():
            held.append(_BULLET.sub("", line, count=1).strip())


def _prose_lines(lines: list[str]) -> Iterator[str]:
    """Each line of prose; "" between paragraphs."""
    at = 0
    while at < len(lines):
        line = lines[at]
        text = line.strip()
        if _heading(lines, at):
            at += 2
            yield ""
            if _LIST_TITLE.fullmatch(text.strip(":")):
                while at < len(lines) and not _heading(lines, at):
                    at += 1
        elif text.startswith(">>>"):
            at = _after_paragraph(lines, at)
        elif text.startswith(("```", "~~~")):
            at = _after_fence(lines, at)
        elif _TABLE.fullmatch(text) or text.startswith(("+--", "+==", "| ")):
            at = _after_paragraph(lines, at)
        elif admonition := _ADMONITION.fullmatch(text):
            yield ""
            yield admonition[1]
            at += 1
        elif any(each.fullmatch(text) for each in (_DIRECTIVE, _FIELD, _LIST_LABEL, _ARGUMENT)):
            at = _after_block(lines, at)
            yield ""
        elif text.endswith("::"):
            yield "" if _PROSE_LABEL.fullmatch(text) else line.rstrip()[:-1]
            at = _after_block(lines, at)
            yield ""
        elif any(each.fullmatch(text) for each in (_PROSE_LABEL, _RULE, _PLACEHOLDER)):
            at += 1
            yield ""
        else:
            yield _QUOTE.sub("", _TEMPLATE.sub(" ", line))
            at += 1


def _heading(lines: list[str], at: int) -> bool:
    """Whether a title stands at line `at`, underlined."""
    if at + 1 >= len(lines) or not lines[at].strip():
        return False
    under = lines[at + 1].strip()
    return bool(_UNDERLINE.fullmatch(under)) and not _RULE.fullmatch(lines[at].strip())


def _after_paragraph(lines: list[str], at: int) -> int:
    while at < len(lines) and lines[at].strip():
        at += 1
    return at


def _after_fence(lines: list[str], at: int) -> int:
    fence = lines[at].strip()[:3]
    at += 1
    while at < len(lines) and not lines[at].strip().startswith(fence):
        at += 1
    return at + 1


def _after_block(lines: list[str], at: int) -> int:
    """The line after the one at `at` and all that is indented under it."""
    indent = _indent(lines[at])
    at += 1
    while at < len(lines) and (not lines[at].strip() or _indent(lines[at]) > indent):
        at += 1
    return at


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _plain(text: str) -> str:
    for pattern, replacement in _INLINE:
        text = pattern.sub(replacement, text)
    return " ".join(text.replace("\\ ", "").split())
