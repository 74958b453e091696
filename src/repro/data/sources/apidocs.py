"""The embedded collection: documentation of some 445 cloud services, from a pinned package.

The distribution botocore 1.44.8 (Apache-2.0) is never imported; its data files are read as JSON.
An entry is an operation, a shape or a member of a shape.  Query: the first sentence of its
documentation; passage: the rest.  The label is the author's own summary, not a searcher's question.
"""

from __future__ import annotations

import gzip
import html
import importlib.metadata
import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Literal

from repro.data.collection import Records
from repro.data.sources.sentences import SentenceParams
from repro.errors import UserError

DISTRIBUTION, VERSION = "botocore", "1.44.8"
RULES = 3  # raise it when the reading rules below change on purpose
FILES = re.compile(r"botocore/data/([^/]+)/([^/]+)/service-2\.json(\.gz)?")

# Only tags known as markup are stripped: <account-id> and the like are placeholders, thus text.
_BLOCK = "p|ul|ol|li|dl|dt|dd|note|important|h2|br|pre|table|tr|td|th|para|function"
_INLINE = (
    "code|a|i|b|em|strong|u|fullname|zonbook|xhtml|replaceable|link|ulink|filename|text|emphasis"
)
_BLOCK_TAG = re.compile(rf"</?(?:{_BLOCK})(?:\s[^<>]*)?/?>", re.IGNORECASE)
_INLINE_TAG = re.compile(rf"</?(?:{_INLINE})(?:\s[^<>]*)?/?>|<!--.*?-->", re.IGNORECASE)
# Paging and idempotency are worded alike in every service: such members are no test of retrieval.
_PLUMBING = re.compile(
    r"(?:next|prev|previous|pagination|paging|continuation|page|starting|nextpage)token|(?:next)?marker"
    r"|max(?:results|items|records|keys)?|pagesize|limit|istruncated"
    r"|(?:client|idempotency|request|clientrequest|clientidempotency)token",
    re.IGNORECASE,
)
_NOTICE = re.compile(
    r"no longer (?:be )?(?:open|available) to new customers|^End of support notice"
    r"|^This API works with the following fleet types",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(
    r"(?<=[.!?])(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\betc\.)(?<!\bvs\.)(?<!\bInc\.)(?<!\bNo\.)(?<!\b[A-Z]\.)"
    r"\s+(?=[\"'(\[]?[A-Z0-9])"
)


class ApidocsParams(SentenceParams):
    """Which entries count."""

    kind: Literal["apidocs"]

    def fingerprint(self) -> dict[str, Any]:
        """The pinned version and the number of the reading rules."""
        _distribution()
        return {"distribution": DISTRIBUTION, "version": VERSION, "rules": RULES}

    def read(self) -> Records:
        """One query and one passage an entry; the group of a passage is its service."""
        dropped: Counter[str] = Counter()
        return self.records(cut(dropped), dropped)


def cut(dropped: Counter[str]) -> Iterator[tuple[str, str, str, str]]:
    """Service, entry, first sentence and the rest, of each entry that is not plumbing."""
    for service, model in _services():
        for entry, documentation in _entries(model):
            if _PLUMBING.fullmatch(entry.rpartition("/")[2]):
                dropped["entry on paging or idempotency"] += 1
            else:
                yield service, entry, *split(documentation)


def split(documentation: str) -> tuple[str, str]:
    """The first sentence of an entry's documentation and the rest, as plain text on one line each.

    A sentence ends at its full stop before a capital or a digit, or where its paragraph ends.
    Notices of availability in front are passed over: they say nothing about the entry.
    """
    text = _BLOCK_TAG.sub("\n", " ".join(documentation.split()))
    text = html.unescape(_INLINE_TAG.sub("", text))
    lines = [line for line in (" ".join(line.split()) for line in text.split("\n")) if line]
    while lines:
        end = _SENTENCE_END.search(lines[0])
        if end:
            lines[0:1] = [lines[0][: end.start()], lines[0][end.end() :]]
        if not _NOTICE.search(lines[0]):
            return lines[0], " ".join(lines[1:])
        lines = lines[1:]
    return "", ""


def _distribution() -> importlib.metadata.Distribution:
    remedy = f"pip install {DISTRIBUTION}=={VERSION}"
    try:
        found = importlib.metadata.distribution(DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        raise UserError(
            f"the collection apidocs needs {DISTRIBUTION} {VERSION}", remedy=remedy
        ) from None
    if found.version != VERSION:
        raise UserError(
            f"the collection apidocs is read from {DISTRIBUTION} {VERSION}; "
            f"{found.version} is installed",
            where=str(found.locate_file(DISTRIBUTION)),
            remedy=remedy,
        )
    return found


def _services() -> Iterator[tuple[str, dict[str, Any]]]:
    """Each service's name and model, in order of the names; of several dated models the last."""
    newest: dict[str, importlib.metadata.PackagePath] = {}
    for path in sorted(_distribution().files or [], key=str):
        match = FILES.fullmatch(path.as_posix())
        if match:
            newest[match[1]] = path
    for service, path in newest.items():
        data = path.locate().read_bytes()  # type: ignore[attr-defined]
        yield service, json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)


def _entries(model: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Each documented operation, shape and member: its name and its documentation."""
    for name, operation in model["operations"].items():
        if "documentation" in operation:
            yield f"operation/{name}", operation["documentation"]
    for name, shape in model["shapes"].items():
        if "documentation" in shape:
            yield f"shape/{name}", shape["documentation"]
        for member, reference in shape.get("members", {}).items():
            if "documentation" in reference:
                yield f"shape/{name}/{member}", reference["documentation"]
