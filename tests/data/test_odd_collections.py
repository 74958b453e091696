"""Pins what becomes of collections that are odd in one way each: they work as documented, or are refused.

`splits: auto` is the rule by which each is split, where it can be.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from repro.data import tokens
from repro.data.automatic import CAPS, SHARES
from repro.data.dataset import Dataset, load_dataset_params, prepare
from repro.data.splits import DRAWN
from repro.errors import UserError
from repro.store import Store
from tiny import pair_texts, write_beir


def write(folder: Path, source: dict[str, Any], **more: Any) -> Path:
    """A dataset file."""
    about = {"name": "odd", "language": "en", "seed": 3, "splits": "auto", "source": source, **more}
    path = folder / "odd.yaml"
    path.write_text(json.dumps(about), encoding="utf-8")
    return path


def made(file: Path) -> Dataset:
    return prepare(Store(file.parent / "runs"), load_dataset_params(str(file)))


def rows(folder: Path, n: int, passages_each: int = 1, encoding: str = "utf-8") -> Path:
    """A CSV of `n` judged pairs of short texts, each with further passages without a query."""
    lines = ["query,passage"]
    for i, (query, passage) in enumerate(pair_texts(n)):
        lines.append(f"{query} café,{passage}")
        lines += [f",other {i} {k} {i * k} alone" for k in range(1, passages_each)]
    path = folder / "pairs.csv"
    path.write_bytes("\n".join(lines).encode(encoding))
    return path


def only_a_test_split(folder: Path) -> Path:
    beir = write_beir(folder / "beir", 500)
    (beir / "qrels/train.tsv").rename(beir / "qrels/test.tsv")
    return write(folder, {"kind": "beir", "folder": "beir", "qrels": ["test"]})


def only_graded(folder: Path) -> Path:
    """Grades 0 to 3 for each query, on passages of its own."""
    path = folder / "pairs.jsonl"
    found = [
        {"query": query, "passage": f"{passage} {grade} {i * grade}", "grade": grade}
        for i, (query, passage) in enumerate(pair_texts(500))
        for grade in range(4)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in found), encoding="utf-8")
    columns = {"score": "grade"}
    source = {"kind": "pairs", "files": path.name, "columns": columns, "min_score": 3}
    return write(folder, source, duplicates={"drop": False})


def many_queries_a_passage(folder: Path) -> Path:
    path = folder / "pairs.tsv"
    texts = pair_texts(600)
    lines = [f"{query}\t{texts[i // 4][1]}" for i, (query, _) in enumerate(texts)]
    path.write_text("\n".join(["query\tpassage", *lines]), encoding="utf-8")
    return write(folder, {"kind": "pairs", "files": path.name})


def latin_1(folder: Path) -> Path:
    return write(folder, {"kind": "pairs", "files": rows(folder, 420, encoding="latin-1").name})


def few_passages_to_a_query(folder: Path) -> Path:
    source = {"kind": "pairs", "files": rows(folder, 450, passages_each=40).name}
    return write(folder, source)


WORK: dict[str, Callable[[Path], Path]] = {
    "only a test split": only_a_test_split,
    "only graded judgements": only_graded,
    "several queries on one passage": many_queries_a_passage,
    "Latin-1 bytes": latin_1,
    "18,000 passages and 450 pairs": few_passages_to_a_query,
}


@pytest.mark.parametrize("what", WORK)
def test_it_is_split_by_the_rule(what: str, tmp_path: Path) -> None:
    dataset = made(WORK[what](tmp_path))
    pairs, splits = len(dataset.collection.pairs), dataset.splits
    for name in DRAWN:
        wanted = min(int(SHARES[name] * pairs), CAPS[name])
        assert wanted - 3 <= len(getattr(splits, name)) <= wanted  # blocks are of four at the most
    assert len(splits.train) > pairs / 2
    assert splits.counts["unused"] == 0
    k = dataset.params.evaluation.negatives
    assert k in (256, 128, 64, 32, 16)
    for name, each in dataset.evaluations.items():
        assert each.negatives.shape == (len(each.pairs), k)
        assert len(each.pairs) < len(getattr(splits, name)) or name != "tuning"
    assert not np.intersect1d(splits.train, np.concatenate([splits.test, splits.validation])).size


def test_a_collection_with_many_passages_has_the_papers_k(tmp_path: Path) -> None:
    dataset = made(few_passages_to_a_query(tmp_path))
    assert dataset.params.evaluation.negatives == 256
    assert len(dataset.collection.passages) == 450 * 40


def test_bytes_that_are_not_utf8_are_counted_or_read_as_told(tmp_path: Path) -> None:
    file = latin_1(tmp_path)
    assert made(file).collection.repaired == {"line that is not UTF-8": 420}
    about = json.loads(file.read_text())
    about["source"]["encoding"] = "latin-1"
    file.write_text(json.dumps(about))
    told = made(file).collection
    assert told.repaired == {}
    assert all(query.endswith("café") for query in told.queries)


def test_long_passages_are_cut_where_a_model_cannot_read_on(tmp_path: Path) -> None:
    from data.made import word_tokenizer

    path = tmp_path / "pairs.csv"
    lines = [f"{query},{passage} {'word ' * 20_000}" for query, passage in pair_texts(4)]
    path.write_text("\n".join(["query,passage", *lines]))
    file = write(tmp_path, {"kind": "pairs", "files": path.name}, duplicates={"drop": False})
    from repro.data.dataset import collect

    collection, _, _ = collect(Store(tmp_path / "runs"), load_dataset_params(str(file)))
    assert min(len(text.split()) for text in collection.passages) > 20_000
    texts = [*collection.queries, *collection.passages]
    known = {word for text in texts for word in text.split()}
    tokens.write_table(tmp_path / "tokens", collection, word_tokenizer(sorted(known)))
    table = tokens.TokenTable.load(tmp_path / "tokens")
    lengths = table.passages.lengths(np.arange(4), 10**6)
    assert lengths.tolist() == [tokens.MAX_IDS + 2] * 4
    assert json.loads((tmp_path / "tokens/tokens.json").read_text())["texts_cut"] == 4


def test_two_hundred_pairs_are_refused_or_split_as_stated(tmp_path: Path) -> None:
    source = {"kind": "pairs", "files": rows(tmp_path, 200, passages_each=40).name}
    with pytest.raises(UserError, match="has 200 pairs; `splits: auto` needs 400") as caught:
        made(write(tmp_path, source))
    assert "beir-example.yaml" in caught.value.remedy
    sizes = {
        "validation": 20,
        "test": 20,
        "tuning": 20,
        "generator": 0,
        "held_out": 0,
        "train": 100,
    }
    sets = {name: {"pairs": 20, "passages": 300} for name in ("validation", "test")}
    dataset = made(write(tmp_path, source, splits=sizes, evaluation={"sets": sets}))
    assert len(dataset.collection.passages) == 8000
    assert dataset.evaluation("validation").negatives.shape == (20, 256)


def test_cranfield_hangs_together_and_is_refused_with_a_remedy(
    sample_data: Path, tmp_path: Path
) -> None:
    """Its 225 queries share passages: nearly all of its judgements are one block."""
    source = {"kind": "beir", "folder": str(sample_data / "cranfield"), "qrels": ["test"]}
    with pytest.raises(UserError, match="hang together too much") as caught:
        made(write(tmp_path, source))
    assert "min_score" in caught.value.remedy
    sizes = {"validation": 100, "test": 100, "tuning": 100, "generator": 0, "held_out": 0}
    sets = {name: {"pairs": 100, "passages": 300} for name in ("validation", "test")}
    with pytest.raises(UserError, match="tearing apart") as caught:
        made(write(tmp_path, source, splits={**sizes, "train": 900}, evaluation={"sets": sets}))
    assert "these would fit" in caught.value.remedy
    fit = {part: int(n) for part, n in re.findall(r"(\w+): (\d+)", caught.value.remedy)}
    sets = {name: {"pairs": fit[name], "passages": 50} for name in ("validation", "test")}
    evaluation = {"negatives": 30, "sets": sets}
    dataset = made(write(tmp_path, source, splits={**sizes, **fit}, evaluation=evaluation))
    assert {part: len(getattr(dataset.splits, part)) for part in fit if part != "train"} == {
        part: n for part, n in fit.items() if part != "train"
    }


@pytest.mark.parametrize("negatives", [5000, 600, 250])
def test_a_stated_k_above_the_eligible_pool_is_refused(negatives: int, tmp_path: Path) -> None:
    write_beir(tmp_path / "beir", 500)
    source = {"kind": "beir", "folder": "beir", "qrels": ["train"]}
    with pytest.raises(UserError, match="too few passages beside those that train") as caught:
        made(write(tmp_path, source, evaluation={"negatives": negatives}))
    assert "evaluation.negatives" in caught.value.remedy


def test_sets_stated_beside_auto_are_refused(tmp_path: Path) -> None:
    sets = {"validation": {"pairs": 20, "passages": 300}}
    file = write(tmp_path, {"kind": "pairs", "files": "p.csv"}, evaluation={"sets": sets})
    with pytest.raises(UserError, match="chooses the evaluation sets as well"):
        load_dataset_params(str(file))


def test_auto_is_stated_in_what_is_prepared(tmp_path: Path) -> None:
    """So that a worker, a stored run and a page have numbers, and the same ones."""
    dataset = made(many_queries_a_passage(tmp_path))
    params = dataset.params
    assert not params.automatic
    assert params.splits.test == len(dataset.splits.test)
    again = prepare(Store(tmp_path / "runs"), params.model_validate_json(params.model_dump_json()))
    assert again.digests == dataset.digests
    assert "test 60" in params.in_words()
    assert "(256 are not eligible)" in params.in_words()
