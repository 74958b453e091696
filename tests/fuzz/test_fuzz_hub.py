"""Copies of hub repositories, their cards and tables damaged; patterns and names of files."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from fuzz.damage import VALUES, changed, damaged, recipes
from fuzz.harness import REFUSED, Fuzz, attempt
from fuzz.right import rows
from repro import hub
from repro.data.sources.hub import HubParams
from repro.document import Document
from repro.hub import Repository, open_repository
from repro.params import validate

CARD = b"""\
---
license: mit
configs:
- config_name: corpus
  data_files:
  - split: corpus
    path: c/*.jsonl
- config_name: queries
  default: true
  data_files: q.csv
- {config_name: default, data_dir: qrels, data_files: [{split: dev, path: ["qrels/*.tsv", 'qrels/d**']}]}
---
# Text
"""
CORPUS = b'{"_id": "p1", "text": "first"}\n{"_id": 2, "text": "second caf\\u00e9"}\n'
QUERIES = b"_id,text\nq1,one\nq2,two\n"
QRELS = b"query-id\tcorpus-id\tscore\nq1\tp1\t1\nq2\t2\t0.5\n"
FILES = {"README.md": CARD, "c/0.jsonl": CORPUS, "q.csv": QUERIES, "qrels/dev.tsv": QRELS}
SHARES = {"README.md": 0.1, "c/0.jsonl": 0.3, "q.csv": 0.3, "qrels/dev.tsv": 0.1}
SOURCE: dict[str, Any] = {
    "kind": "hub",
    "passages": {"config": "corpus", "split": "corpus"},
    "queries": [{"files": ["q.csv"]}],
    "judgements": {"dev": {"config": "default", "split": "dev", "score": "score"}},
    "min_score": 0.5,
}


@pytest.mark.parametrize("name", FILES)
def test_files_of_a_repository(name: str, fuzz: Fuzz) -> None:
    folder = _write(fuzz)
    source = {**SOURCE, "folder": folder}

    def check(data: bytes) -> bool:
        (folder / name).write_bytes(data)
        read = HubParams.model_validate(source).read
        found = attempt(lambda: rows(read()), folder, folder / name)
        if found is not REFUSED and name == "README.md":
            texts = sorted(text for _, text, _ in found.passages)
            assert texts == ["first", "second café"] * (len(texts) // 2)
        return found is not REFUSED

    fuzz(damaged([FILES[name]]), check, share=SHARES[name])


def _write(fuzz: Fuzz) -> Any:
    folder = fuzz.folder / "org"
    for name, data in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def test_tables_as_a_dataset_file_names_them(fuzz: Fuzz) -> None:
    folder = _write(fuzz)
    path = fuzz.folder / "mine.yaml"
    by_file = {**SOURCE, "folder": str(folder), "passages": {"files": ["c/*.jsonl"]}}
    values = [*VALUES, "*" * 30, "**/" * 20 + "x", "../*", "c/../../*", "**", "_id", "text", "dev"]

    def check(data: Any) -> bool:
        source = attempt(lambda: validate(Document(path, data, {}), HubParams), path)
        if source is REFUSED or source.folder != folder:
            return False
        found = attempt(lambda: rows(source.read()))
        return found is not REFUSED

    fuzz(changed([{**SOURCE, "folder": str(folder)}, by_file], values), check, share=0.1)


def test_patterns_match_as_their_regular_expression_does(fuzz: Fuzz) -> None:
    like = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    letters = ["a", "b", "/", "*", "?", "**", "**/", "."]

    def check(recipe: bytes) -> bool:
        half = len(recipe) // 2
        pattern = "".join(letters[each % 8] for each in recipe[: min(half, 8)])
        name = "".join("ab/."[each % 4] for each in recipe[half:])
        parts = re.split(r"(\*\*/|\*\*|\*|\?)", pattern.removeprefix("./"))
        wanted = re.fullmatch("".join(like.get(part, re.escape(part)) for part in parts), name)
        repository = Repository("org/name", (name,), "dataset", None)
        assert repository.matching(pattern) == ([name] if wanted else [])
        return bool(wanted)

    fuzz(recipes(), check, share=0.1)


def test_names_of_repositories(fuzz: Fuzz, monkeypatch: pytest.MonkeyPatch) -> None:
    mirror = fuzz.folder / "mirror"
    (mirror / "org" / "name").mkdir(parents=True)
    (mirror / "org" / "name@main").mkdir()
    monkeypatch.setenv(hub.MIRROR, str(mirror))

    def check(data: bytes) -> bool:
        name, at, revision = data.decode("utf-8", "replace").partition("@")
        found = attempt(lambda: open_repository(name, revision if at else None, "dataset"))
        if found is REFUSED:
            return False
        assert found.folder.resolve().is_relative_to(mirror.resolve())
        return True

    fuzz(damaged([b"org/name@main", b"org/name"]), check, share=0.05)


def test_the_list_of_files_that_the_cache_keeps(fuzz: Fuzz) -> None:
    snapshot = fuzz.folder / "cache" / "snapshots" / "abc"
    tree = fuzz.folder / "cache" / "trees" / "abc.json"
    snapshot.mkdir(parents=True)
    tree.parent.mkdir()
    whole = json.dumps({"format_version": 1, "files": {"a.csv": {}, "README.md": {}}}).encode()

    def check(data: bytes) -> bool:
        tree.write_bytes(data)
        found = hub._kept_list(snapshot)
        assert found is None or all(isinstance(name, str) for name in found)
        return found is not None

    fuzz(damaged([whole]), check, share=0.05)
