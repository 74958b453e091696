"""Pins that equal content is an equal collection, whatever files it stands in and in what order.

BEIR folder, its zip, tables of ids, and rows of pairs as CSV, TSV, JSONL and Parquet with columns of odd
names; with ids all are one digest, without ids all rows of pairs are.
"""

from __future__ import annotations

import csv
import gzip
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from repro.data.collection import Collection, assemble
from repro.data.dataset import load_dataset_params, prepare
from repro.data.sources.beir import BeirParams
from repro.errors import UserError
from repro.store import Store
from tiny import write_beir

NAMES = {"query": "Frage ?", "passage": "l'answer", "title": "Überschrift", "query_id": "q#",
         "passage_id": "p id"}  # fmt: skip
Row = dict[str, str]


def rows_of(folder: Path, qrels: list[str]) -> list[Row]:
    """The judged pairs of a BEIR folder, then its passages without one, as rows of five cells."""

    def objects(name: str) -> dict[str, dict[str, str]]:
        text = (folder / name).read_text("utf-8")
        return {row["_id"]: row for row in map(json.loads, text.splitlines())}

    queries, corpus = objects("queries.jsonl"), objects("corpus.jsonl")
    judged = [
        line.split("\t")[:2]
        for name in qrels
        for line in (folder / f"qrels/{name}.tsv").read_text("utf-8").splitlines()[1:]
    ]
    found = [(q, queries[q]["text"], p) for q, p in judged if p in corpus and q in queries]
    found += [("", "", p) for p in corpus if p not in {p for _, p in judged}]
    return [
        {"query_id": q, "query": text, "passage_id": p, "passage": corpus[p]["text"],
         "title": corpus[p].get("title", "")}
        for q, text, p in found
    ]  # fmt: skip


def write_csv(path: Path, rows: list[Row]) -> Path:
    path = path.with_suffix(".csv")
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, list(NAMES.values()))
        writer.writeheader()
        writer.writerows({NAMES[key]: value for key, value in row.items()} for row in rows)
    return path


def write_tsv(path: Path, rows: list[Row]) -> Path:
    path = path.with_suffix(".tsv")
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter="\t", lineterminator="\n")
        writer.writerow(["more", *reversed(NAMES.values())])
        writer.writerows([i, *(row[key] for key in reversed(NAMES))] for i, row in enumerate(rows))
    return path


def write_jsonl(path: Path, rows: list[Row]) -> Path:
    path = path.with_suffix(".jsonl.gz")
    named = [{NAMES[key]: value for key, value in row.items()} for row in rows]
    text = "".join(json.dumps(row, ensure_ascii=i % 2 == 0) + "\n" for i, row in enumerate(named))
    path.write_bytes(gzip.compress(text.encode()))
    return path


def write_parquet(path: Path, rows: list[Row]) -> Path:
    path = path.with_suffix(".parquet")
    columns = {NAMES[key]: [row[key] or None for row in rows] for key in NAMES}
    pq.write_table(pa.table(columns | {"more": list(range(len(rows)))}), path, row_group_size=999)
    return path


WRITERS: dict[str, Callable[[Path, list[Row]], Path]] = {
    "csv": write_csv, "tsv": write_tsv, "jsonl": write_jsonl, "parquet": write_parquet,
}  # fmt: skip


def write_zip(path: Path, folder: Path, top: str) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for each in sorted(folder.rglob("*.*")):
            archive.write(each, f"{top}{each.relative_to(folder)}")
    return path


def write_tables(folder: Path, rows: list[Row]) -> dict[str, Any]:
    """The files of kind `tsv`, which have no titles."""
    corpus = {row["passage_id"]: row["passage"] for row in reversed(rows)}
    queries = {row["query_id"]: row["query"] for row in rows if row["query_id"]}
    texts = {
        "corpus": [f"{name}\t{text}" for name, text in corpus.items()],
        "queries": ["qid\tquery", *(f"{name}\t{text}" for name, text in queries.items())],
        "qrels": [f"{r['query_id']} 0 {r['passage_id']} 2" for r in rows if r["query_id"]],
    }
    for name, lines in texts.items():
        (folder / f"{name}.tsv").write_text("\n".join(lines), encoding="utf-8")
    return {"kind": "tsv", "min_score": 2, **{name: folder / f"{name}.tsv" for name in texts}}


def read(source: dict[str, Any]) -> Collection:
    from pydantic import TypeAdapter

    from repro.data.sources.registry import Source

    params: Any = TypeAdapter(Source).validate_python(source)
    params.fingerprint()
    return assemble("any", "en", params.read())


def pairs_source(path: Path, *, ids: bool = True) -> dict[str, Any]:
    columns = {key: name for key, name in NAMES.items() if ids or not key.endswith("_id")}
    return {"kind": "pairs", "files": path, "columns": columns}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["wiki-leads", "cmrc2018-zh"])
def test_a_sample_collection_is_the_same_in_every_container(
    name: str, sample_data: Path, tmp_path: Path
) -> None:
    qrels = ["train", "dev", "test"]
    folder = sample_data / name
    beir = read({"kind": "beir", "folder": folder, "qrels": qrels})
    zipped = write_zip(tmp_path / "all.zip", folder, f"{name}/")
    assert read({"kind": "beir", "folder": zipped, "qrels": qrels[::-1]}).digest == beir.digest
    rows = rows_of(folder, qrels)
    shuffled = [rows[i] for i in np.random.default_rng(1).permutation(len(rows))]
    without = set()
    for kind, write in WRITERS.items():
        path = write(tmp_path / kind, shuffled if kind == "jsonl" else rows)
        assert read(pairs_source(path)).digest == beir.digest, kind
        found = read(pairs_source(path, ids=False))
        assert found.counts == beir.counts
        without.add(found.digest)
    assert len(without) == 1
    if name == "wiki-leads":  # its passages have no titles and no line ends
        assert read(write_tables(tmp_path, rows)).digest == beir.digest


def test_equal_content_gives_equal_splits_and_sets(tmp_path: Path) -> None:
    """And so the same runs: nothing but these digests and the token table goes into a run's key."""
    folder = write_beir(tmp_path / "beir")
    rows = rows_of(folder, ["train"])
    sources: dict[str, dict[str, Any]] = {
        "beir": {"kind": "beir", "folder": "beir", "qrels": ["train"]},
        "zip": {"kind": "beir", "folder": write_zip(tmp_path / "b.zip", folder, "").name,
                "qrels": ["train"]},
        "tsv": {k: v.name if isinstance(v, Path) else v
                for k, v in write_tables(tmp_path, rows).items()},
        **{kind: {**pairs_source(write(tmp_path / f"rows-{kind}", rows[::-1])),
                  "files": f"rows-{kind}{suffix}"}
           for (kind, write), suffix in zip(
               WRITERS.items(), (".csv", ".tsv", ".jsonl.gz", ".parquet"), strict=True)},
    }  # fmt: skip
    found = {}
    for kind, source in sources.items():
        file = tmp_path / f"{kind}.yaml"
        about = {"name": "same", "language": "en", "seed": 3, "splits": "auto", "source": source}
        file.write_text(json.dumps(about), encoding="utf-8")
        dataset = prepare(Store(tmp_path / "runs"), load_dataset_params(str(file)))
        found[kind] = dataset.digests
        assert len(dataset.splits.train) > 100
    assert all(digests == found["beir"] for digests in found.values())


def test_a_zip_that_names_a_place_outside_itself_is_refused(tmp_path: Path) -> None:
    for name in ("../corpus.jsonl", "/etc/corpus.jsonl"):
        path = tmp_path / "bad.zip"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(name, "{}")
        with pytest.raises(UserError, match="outside itself"):
            BeirParams.model_validate({"kind": "beir", "folder": path}).fingerprint()


def test_a_zip_that_lacks_a_file_or_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "b.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("nq/corpus.jsonl", '{"_id": "1", "text": "x"}')
    params = BeirParams.model_validate({"kind": "beir", "folder": path, "qrels": ["test"]})
    with pytest.raises(UserError, match=r"there is no queries\.jsonl, nor"):
        params.fingerprint()
    path.write_text("no zip")
    with pytest.raises(UserError, match="this is no zip"):
        params.fingerprint()
