"""Text for pre-training: the documentation inside pinned packages, or a user's own files.

Each source is one archive of the package index, named with version and digest; its files are read
as data and never imported.  None of them is the text that the tasks retrieve from.
"""

from __future__ import annotations

import ast
import fnmatch
import gc
import hashlib
import json
import re
import subprocess
import sys
import tarfile
import warnings
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from repro import seeds
from repro.errors import UserError
from repro.files import file_digest, write_bytes
from repro.params import Params


class Source(Params):
    """One archive and how it is read."""

    package: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    version: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9.+!_-]*$")]
    archive: Literal["wheel", "sdist"] = "wheel"
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    licence: str
    reader: Literal["docstrings", "descriptions", "markup"]
    include: list[str]  # shell patterns of paths inside the archive; * matches / too
    exclude: list[str] = []
    drop: list[str] = []  # regular expressions: what a generator wrote and no person
    max_documents: Annotated[int, Field(ge=1)] = 8000


class Text(Params):
    """What becomes a document."""

    sources: list[Source] = []
    min_words: Annotated[int, Field(ge=1, le=1000)] = 20
    max_words: Annotated[int, Field(ge=2, le=100_000)] = 160
    novelty: Annotated[float, Field(ge=0, le=1)] = 0.5  # least share of word 5-grams not yet seen
    held_out: Annotated[int, Field(ge=0)] = 1000  # documents kept from training, to measure on


def collect(params: Text, cache: Path, seed: int, say: Callable[[str], None]) -> list[str]:
    """The documents of all sources, in an order drawn from `seed`; archives and text are cached.

    The first `held_out` of them are for measuring.  Raises `UserError` where an archive cannot be
    had or is not the one that was pinned.
    """
    spec = json.dumps([seed, params.model_dump()], sort_keys=True)
    stored = cache / f"text-{hashlib.sha256(spec.encode()).hexdigest()[:16]}.json"
    if stored.exists():
        found: list[str] = json.loads(stored.read_text(encoding="utf-8"))
        return found
    cache.mkdir(parents=True, exist_ok=True)
    documents: list[str] = []
    seen: set[int] = set()
    for source in params.sources:
        archive = fetch(source, cache)
        new = list(novel(_of_source(source, archive, params), params.novelty, seen))
        order = seeds.stream(seed, "text", source.package, source.reader).permutation(len(new))
        kept = [new[i] for i in sorted(order[: source.max_documents])]
        say(f"{source.package} {source.version}: {len(kept):,} of {len(new):,} documents")
        documents += kept
    documents = shuffled(documents, seed)
    write_bytes(stored, json.dumps(documents, ensure_ascii=False).encode())
    return documents


def read_files(paths: list[Path], params: Text, seed: int) -> list[str]:
    """Documents from a user's .txt (blank lines separate) or .jsonl (field `text`) files."""
    documents: list[str] = []
    for path in paths:
        if not path.is_file():
            raise UserError("there is no such text file", where=str(path), remedy="check the path")
        try:
            content = path.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError as error:
            raise UserError(
                f"not UTF-8 at byte {error.start}", where=str(path), remedy="convert it to UTF-8"
            ) from None
        pieces = _jsonl(path, content) if path.suffix == ".jsonl" else re.split(r"\n\s*\n", content)
        documents += merged((tidy(piece) for piece in pieces), params)
    return shuffled(list(novel(documents, params.novelty, set())), seed)


def shuffled(documents: list[str], seed: int) -> list[str]:
    """The documents in an order drawn from `seed`."""
    return [documents[i] for i in seeds.stream(seed, "text").permutation(len(documents))]


def novel(documents: Iterable[str], least: float, seen: set[int]) -> Iterator[str]:
    """Those documents of whose word 5-grams at least the share `least` was not in earlier ones."""
    for document in documents:
        grams = ngrams(document, 5)
        fresh = grams - seen
        if grams and len(fresh) >= least * len(grams) and len(fresh) > 0:
            seen |= fresh
            yield document


def ngrams(document: str, n: int) -> set[int]:
    """64-bit hashes of the word n-grams of a text, case and punctuation apart.

    A text of fewer than n words is one n-gram; one that is written without spaces counts by
    character.
    """
    words = units(document)
    grams = (" ".join(words[i : i + n]) for i in range(max(1, len(words) - n + 1)))
    return {
        int.from_bytes(hashlib.blake2b(gram.encode(), digest_size=8).digest()) for gram in grams
    }


def units(text: str) -> list[str]:
    """Words, lower-case; each character of a script without spaces is one."""
    return _UNIT.findall(text.lower())


def overlap(documents: list[str], passages: list[str], n: int = 8) -> list[float]:
    """For each passage, the share of its word n-grams that also stand in `documents`."""
    inside: set[int] = set()
    for document in documents:
        inside |= ngrams(document, n)
    own = [ngrams(passage, n) for passage in passages]
    return [len(grams & inside) / len(grams) for grams in own]


def merged(pieces: Iterable[str], params: Text) -> Iterator[str]:
    """Pieces of one file as documents: short neighbours joined, long ones cut at a sentence."""
    held: list[str] = []
    count = 0
    for piece in pieces:
        for part in _cut(piece, params.max_words):
            words = len(units(part))
            if words < 4:  # "The name." says nothing
                continue
            held.append(part)
            count += words
            if count >= params.min_words:
                yield " ".join(held)
                held, count = [], 0


def tidy(text: str) -> str:
    """A text without mark-up, links and field lists, its white space single."""
    for pattern, replacement in _TIDY:
        text = pattern.sub(replacement, text)
    return " ".join(text.split())


def fetch(source: Source, cache: Path) -> Path:
    """The pinned archive, downloaded by pip unless it lies in `cache`; its digest is checked."""
    folder = cache / f"{source.package}-{source.version}"
    archives = [path for path in folder.glob("*") if path.suffix in (".whl", ".gz", ".zip")]
    if not archives:
        binary = "--only-binary" if source.archive == "wheel" else "--no-binary"
        pinned = f"{source.package}=={source.version}"
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += [binary, ":all:", "--dest", str(folder), pinned]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        archives = [path for path in folder.glob("*") if path.suffix in (".whl", ".gz", ".zip")]
        if done.returncode or not archives:
            last = (done.stderr.strip().splitlines() or ["pip said nothing"])[-1]
            raise UserError(
                f"cannot download {pinned}: {last}",
                remedy=f"put its {source.archive} into {folder}, or pre-train on --text FILE",
            )
    found = file_digest(archives[0])
    if found != source.sha256:
        raise UserError(
            f"{archives[0].name} is not the pinned archive: sha256 {found}",
            where=str(folder),
            remedy=f"delete that folder and try again (expected {source.sha256})",
        )
    return archives[0]


def _of_source(source: Source, archive: Path, params: Text) -> Iterator[str]:
    read = READERS[source.reader]
    for name, content in _members(archive):
        wanted = any(fnmatch.fnmatchcase(name, pattern) for pattern in source.include)
        if wanted and not any(fnmatch.fnmatchcase(name, pattern) for pattern in source.exclude):
            pieces = map(tidy, read(content().decode("utf-8", errors="replace")))
            yield from merged((_without(piece, source.drop) for piece in pieces), params)


def _members(archive: Path) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """The files of an archive in the order of their names, and how to read each."""
    if tarfile.is_tarfile(archive):
        with tarfile.open(archive) as tar:
            for member in sorted(tar.getmembers(), key=lambda member: member.name):
                file = tar.extractfile(member) if member.isfile() else None
                if file is not None:
                    yield member.name, file.read
        return
    with zipfile.ZipFile(archive) as wheel:
        for name in sorted(wheel.namelist()):
            yield name, lambda name=name: wheel.read(name)  # type: ignore[misc]


def _docstrings(content: str) -> list[str]:
    """Every text that stands as a statement: docstrings, and descriptions of attributes."""
    gc.disable()  # syntax trees are many small objects; the collector would double the time
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(content)
    except (SyntaxError, ValueError):
        return []
    finally:
        gc.enable()
    found = [
        (node.lineno, node.value.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    ]
    return [piece for _, text in sorted(found) for piece in _FIELD.split(text)]


def _descriptions(content: str) -> list[str]:
    """Every `description` of a JSON document."""
    found: list[str] = []

    def walk(node: Any) -> None:
        if isinstance(node, dict):
            if isinstance(node.get("description"), str):
                found.append(node["description"])
            for value in node.values():
                walk(value)
        elif isinstance(node, list):
            for value in node:
                walk(value)

    walk(json.loads(content))
    return found


def _markup(content: str) -> list[str]:
    """The paragraphs of reStructuredText, Markdown or plain text, code and tables left out."""
    blocks = re.split(r"\n\s*\n", content.replace("\r\n", "\n"))
    return [
        block
        for block in blocks
        if not re.match(r"\s{4,}|\s*(\.\. |[-+=~^|>]{3}|\$ |\|)", block) and len(block.split()) > 5
    ]


def _jsonl(path: Path, content: str) -> list[str]:
    out: list[str] = []
    for number, line in enumerate(content.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            out.append(json.loads(line)["text"])
        except (ValueError, KeyError, TypeError):
            raise UserError(
                "expected an object with a field `text`",
                where=f"{path}:{number}",
                remedy='write one {"text": "..."} a line',
            ) from None
    return out


def _without(text: str, patterns: list[str]) -> str:
    for pattern in patterns:
        text = re.sub(pattern, " ", text)
    return " ".join(text.split())


def _cut(text: str, max_words: int) -> Iterator[str]:
    """`text` in parts of at most `max_words` words, cut after a sentence where there is one."""
    held: list[str] = []
    count = 0
    for sentence in _SENTENCE.split(text):
        size = len(units(sentence))
        if held and count + size > max_words:
            yield " ".join(held)
            held, count = [], 0
        held.append(sentence)
        count += size
    if count:
        yield " ".join(held)


READERS: dict[str, Callable[[str], list[str]]] = {
    "docstrings": _docstrings,
    "descriptions": _descriptions,
    "markup": _markup,
}
_UNIT = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_\u3040-\u30ff\u3400-\u9fff]+")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])")
_FIELD = re.compile(r"(?m)^\s*(?=:(?:param|type|return|rtype|raises)\b)")
_TIDY = [
    (re.compile(r"(?m)^\s*:r?type\b.*$"), " "),
    (re.compile(r"(?m)^\s*:(?:param|returns?|raises)\b[^:\n]*:"), " "),
    (re.compile(r"(?m)^\s*(?:\.\. .*|__ \S+|[-=~^*#\"]{3,}\s*)$"), " "),
    (re.compile(r"<[^<>\n]{1,200}>(__?)?"), " "),
    (re.compile(r"!?\[([^\]\n]{0,200})\]\([^)\n]{0,400}\)"), r"\1"),
    (re.compile(r"https?://\S+"), " "),
    (re.compile(r":[\w:.-]+:`~?([^`]*)`"), r"\1"),
    (re.compile(r"[`*|]+|__\b"), " "),
]
