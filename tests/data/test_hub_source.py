"""Pins: how tables of hub repositories are found and read, one collection whatever the layout.

Every layout holds the same content, so the digest must be one.  Where the hub's own library is
installed it is the referee of which files make up a config and split.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import copies
import pytest
from pydantic import ValidationError

from repro.data.collection import Collection, assemble
from repro.data.dataset import DatasetParams
from repro.data.sources.beir import BeirParams
from repro.data.sources.card import files_of
from repro.data.sources.hub import HubParams
from repro.data.sources.rows import as_text, rows
from repro.errors import UserError
from repro.hub import open_folder

CONTENT = copies.Content(n=40, n_test=20, unjudged=50)
PARTS = {"train": "train", "test": "test"}
MTEB = {
    "repo": "mteb/msmarco",
    "passages": {"config": "corpus", "split": "corpus", "title": "title"},
    "queries": [{"config": "queries", "split": "queries"}],
    "judgements": {part: {"split": part, "score": "score"} for part in PARTS},
}
T2RANKING = {
    "repo": "THUIR/T2Ranking",
    "passages": {"files": ["data/collection.tsv"], "id": "pid"},
    "queries": [{"files": [f"data/queries.{part}.tsv"], "id": "qid"} for part in ("train", "dev")],
    "judgements": {
        part: {
            "files": [f"data/qrels.retrieval.{split}.tsv"],
            "query": "qid",
            "passage": "pid",
        }
        for part, split in (("train", "train"), ("test", "dev"))
    },
}
GRADED = {
    **T2RANKING,
    "min_score": 2,
    "judgements": {
        part: {
            "files": [f"data/qrels.{split}.tsv"],
            "query": "qid",
            "passage": "pid",
            "score": "rel",
        }
        for part, split in (("train", "train"), ("test", "dev"))
    },
}
BEIR = {
    "repo": "BeIR/fiqa",
    "revision": "refs/convert/parquet",
    "passages": {"config": "corpus", "split": "corpus", "title": "title"},
    "queries": [{"config": "queries", "split": "queries"}],
    "judgements": {
        part: {"repo": "BeIR/fiqa-qrels", "split": part, "score": "score"} for part in PARTS
    },
}
MIXED = {  # passages and queries with ids as numbers, judgements with ids as texts
    "passages": {
        "repo": "sentence-transformers/msmarco-corpus",
        "config": "passage",
        "split": "train",
        "id": "pid",
    },
    "queries": [
        {
            "repo": "sentence-transformers/msmarco-corpus",
            "config": "query",
            "split": "train",
            "id": "qid",
        }
    ],
    "judgements": {
        part: {"repo": "mteb/msmarco", "split": part, "score": "score"} for part in PARTS
    },
}
LAYOUTS = {"mteb": MTEB, "t2ranking": T2RANKING, "graded": GRADED, "beir": BEIR, "mixed": MIXED}


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    copies.mteb(tmp_path / "mteb/msmarco", CONTENT, PARTS)
    copies.t2ranking(tmp_path / "THUIR/T2Ranking", CONTENT)
    copies.beir(tmp_path, "fiqa", CONTENT)
    copies.sentence_transformers(tmp_path / "sentence-transformers/msmarco-corpus", CONTENT)
    monkeypatch.setenv("REPRO_HUB_MIRROR", str(tmp_path))
    return tmp_path


def params(layout: dict[str, Any], **more: object) -> HubParams:
    return HubParams.model_validate({"kind": "hub", **layout, **more})


def read(layout: dict[str, Any], **more: object) -> Collection:
    return assemble("hub", "en", params(layout, **more).read())


def change(layout: dict[str, Any], table: str, **more: object) -> dict[str, Any]:
    return {**layout, table: {**layout[table], **more}}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_equal_content_is_an_equal_collection_in_every_layout(layout: str, mirror: Path) -> None:
    collection = read(LAYOUTS[layout])
    assert collection.digest == read(MTEB).digest
    assert collection.counts == {"queries": 59, "passages": 109, "pairs": 59}
    assert collection.parts == ("train", "test")
    assert Counter(collection.part.tolist()) == {0: 39, 1: 20}


def test_equal_content_in_a_beir_folder_is_the_same_collection(
    mirror: Path, tmp_path: Path
) -> None:
    copies.beir_folder(tmp_path / "folder", CONTENT)
    beir = BeirParams(kind="beir", folder=tmp_path / "folder", qrels=["train", "test"])
    collection = assemble("hub", "en", beir.read())
    assert collection.digest == read(MTEB).digest
    assert collection.parts == ("train", "test")


def test_the_order_of_the_rows_does_not_matter(mirror: Path) -> None:
    ordered = read(MTEB).digest
    corpus = mirror / "mteb/msmarco/corpus.jsonl"
    corpus.write_text("".join(reversed(corpus.read_text().splitlines(keepends=True))))
    assert read(MTEB).digest == ordered


def test_what_is_left_out_or_repaired_is_counted(mirror: Path) -> None:
    collection = read(GRADED)
    assert (
        collection.dropped
        == {
            "judgement of a missing or dropped passage": 3,  # the empty one, and one that is nowhere, twice
            "judgement of a missing or dropped query": 2,
            "judgement with a score under 2": 4,
            "passage with an empty text": 1,
            "query without a judgement": 1,
        }
    )
    assert collection.repaired == {
        "byte order mark of a file": 1,
        "file line ending in CRLF": 21 + 25,
    }


def test_several_queries_may_share_a_passage(mirror: Path) -> None:
    collection = read(MTEB)
    passage = collection.pairs[:, 1].tolist()
    three = collection.passage_ids.index("3")
    assert passage.count(three) == 2


def test_ids_that_parts_use_twice_are_kept_apart_or_refused(mirror: Path) -> None:
    data = mirror / "THUIR/T2Ranking/data"
    for part in ("train", "dev"):
        copies.tsv(data / f"queries.{part}.tsv", "qid,text", [(0, f"zero of {part}"), (1, "one")])
        pairs = [(0, 10 if part == "train" else 20)]
        copies.tsv(data / f"qrels.retrieval.{part}.tsv", "qid,pid", pairs)
    with pytest.raises(UserError, match="the query '0' has another text") as caught:
        read(T2RANKING)
    assert caught.value.where == f"{data / 'queries.dev.tsv'}:2"
    tables = [
        {**table, "part": part}
        for table, part in zip(T2RANKING["queries"], ("train", "test"), strict=True)
    ]
    collection = read({**T2RANKING, "queries": tables})
    asked = [(collection.queries[q], collection.passage_ids[p]) for q, p in collection.pairs]
    assert sorted(asked) == [("zero of dev", "20"), ("zero of train", "10")]
    tables[0]["part"] = "tset"
    with pytest.raises(ValidationError, match="no judgements of the part 'tset'"):
        params({**T2RANKING, "queries": tables})


def test_a_folder_is_a_repository_wherever_it_lies(mirror: Path) -> None:
    layout = {**MTEB, "repo": None, "folder": mirror / "mteb/msmarco"}
    assert read(layout).digest == read(MTEB).digest
    first = params(layout).fingerprint()
    (mirror / "mteb/msmarco").rename(mirror / "moved")
    layout["folder"] = mirror / "moved"
    assert params(layout).fingerprint() == first


def test_gzipped_files_give_the_same_collection(mirror: Path) -> None:
    plain = read(MTEB).digest
    folder = mirror / "mteb/msmarco"
    corpus = [{"_id": str(i), "title": "", "text": text} for i, text in enumerate(CONTENT.passages)]
    copies.jsonl(folder / "corpus.jsonl.gz", corpus)
    (folder / "corpus.jsonl").unlink()
    card = folder / "README.md"
    card.write_text(card.read_text().replace("path: corpus.jsonl", "path: corpus.jsonl.gz"))
    assert read(MTEB).digest == plain


def test_the_fingerprint_follows_the_files_that_are_read_and_no_others(mirror: Path) -> None:
    before = params(MTEB).fingerprint()["files"]
    assert set(before) == {
        "mteb/msmarco/corpus.jsonl",
        "mteb/msmarco/queries.jsonl",
        "mteb/msmarco/qrels/train.jsonl",
        "mteb/msmarco/qrels/test.jsonl",
    }
    (mirror / "mteb/msmarco/other.jsonl").write_text("{}\n")
    assert params(MTEB).fingerprint()["files"] == before
    with (mirror / "mteb/msmarco/corpus.jsonl").open("a") as file:
        file.write('{"_id": "x", "title": "", "text": "one more"}\n')
    after = params(MTEB).fingerprint()["files"]
    assert {name for name in before if before[name] != after[name]} == {"mteb/msmarco/corpus.jsonl"}


@pytest.mark.parametrize(
    ("layout", "says", "remedy"),
    [
        (change(MTEB, "passages", config="corpsu"), "has no config `corpsu`", "mean `corpus`"),
        (change(MTEB, "passages", split="train"), "has no split `train`", "allowed: corpus"),
        (change(MTEB, "passages", text="txt"), "the column `txt` is not there", "mean `text`"),
        (change(MTEB, "passages", config=None), "has no split `corpus`", "allowed: test, train"),
        ({**MTEB, "repo": "mteb/msmarko"}, "the mirror of the hub has no", "mteb/msmarco"),
        ({**MTEB, "repo": "msmarco"}, "no name of a repository", "org/name"),
        ({**MTEB, "repo": "../x/y"}, "no name of a repository", "org/name"),
        (
            change(T2RANKING, "passages", files=["data/colection.tsv"]),
            "has no file `data/colection.tsv`",
            "mean `data/collection.tsv`",
        ),
        (
            change(T2RANKING, "passages", files=[], config="collection", split="train"),
            "has a loading script (T2Ranking.py)",
            "refs/convert/parquet",
        ),
        (change(BEIR, "passages", config="copus"), "no file for the split `corpus`", "corpus/"),
        (
            change(
                MIXED,
                "passages",
                repo="sentence-transformers/msmarco-corpus",
                config=None,
            ),
            "has several configs: passage, query",
            "passage",
        ),
    ],
)
def test_what_is_not_there_is_refused_with_what_is(
    layout: dict[str, Any], says: str, remedy: str, mirror: Path
) -> None:
    with pytest.raises(UserError) as caught:
        read(layout)
    assert says in str(caught.value)
    assert remedy in caught.value.remedy


def test_a_score_that_is_no_number_is_refused_with_its_line(mirror: Path) -> None:
    path = mirror / "mteb/msmarco/qrels/train.jsonl"
    path.write_text('{"query-id": "0", "corpus-id": "0", "score": "good"}\n')
    with pytest.raises(UserError, match="the score is 'good'") as caught:
        read(MTEB)
    assert caught.value.where == f"{path}:1"


@pytest.mark.parametrize(
    ("layout", "says"),
    [
        (change(MTEB, "passages", files=["x.tsv"]), "name a split (and config), or files"),
        (change(MTEB, "passages", split=None), "name a split (and config), or files"),
        (change(MTEB, "passages", revision="v1"), "a revision of which repository"),
        ({**MTEB, "folder": "here"}, "a folder is one repository"),
        ({**MTEB, "repo": None}, "no repository is named"),
        ({**MTEB, "judgements": {}}, "at least 1 item"),
    ],
)
def test_a_source_that_says_two_things_or_none_is_refused(
    layout: dict[str, Any], says: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        params(layout)
    assert says in str(caught.value)


def test_a_damaged_row_is_dropped_or_mended_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "table.tsv"
    path.write_bytes(b'pid\ttext\n1\ta "quoted" word\n2\n3\ttwo\tcells\n4\tcaf\xe9\n')
    dropped: Counter[str] = Counter()
    repaired: Counter[str] = Counter()
    found = [cells for _, cells in rows(path, ["pid", "text"], dropped, repaired)]
    assert found == [["1", 'a "quoted" word'], ["3", "two\tcells"], ["4", "caf\ufffd"]]
    assert dropped == {"row with too few columns": 1}
    assert repaired == {"row with tabs in its last column": 1, "line that is not UTF-8": 1}


@pytest.mark.parametrize("name", ["table.xlsx", "table.zip", "table.parquet.gz", "table"])
def test_a_file_of_another_kind_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("x")
    with pytest.raises(UserError, match="of no kind that is read"):
        list(rows(tmp_path / name, ["a"], Counter(), Counter()))


def test_a_broken_parquet_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "table.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(UserError, match="this Parquet file cannot be read"):
        list(rows(tmp_path / "table.parquet", ["a"], Counter(), Counter()))


@pytest.mark.parametrize(
    ("value", "text"),
    [(7, "7"), (7.0, "7"), (0.5, "0.5"), ("007", "007"), (None, ""), (float("nan"), ""), ("", "")],
)
def test_a_cell_is_a_text(value: object, text: str) -> None:
    assert as_text(value, "id", "here") == text


NAMED = {  # layouts without a card: file names, the split asked for, and the files that are of it
    "shards": (["data/train-00000-of-00002.parquet", "data/train-00001-of-00002.parquet",
                "data/test-00000-of-00001.parquet"], "train", 2),
    "one each": (["train.jsonl", "test.jsonl"], "test", 1),
    "folders": (["train/a.parquet", "train/b.parquet", "test/a.parquet"], "train", 2),
}  # fmt: skip


@pytest.mark.parametrize("layout", NAMED)
def test_without_a_card_the_names_tell_the_split(tmp_path: Path, layout: str) -> None:
    names, split, n = NAMED[layout]
    for name in names:
        write = copies.parquet if name.endswith(".parquet") else copies.jsonl
        write(tmp_path / name, [{"_id": name, "text": name}])
    found = files_of(open_folder(tmp_path), None, split)
    assert len(found) == n
    assert found == library_files(tmp_path, None, split)


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (["corpus/partial-train/0000.parquet"], "in part only"),
        (["corpus/train.jsonl", "corpus/train.tsv"], "files of several kinds (.jsonl, .tsv)"),
        (["corpus/strain.jsonl", "train/corpus.jsonl"], "no file for the split `train` in corpus/"),
        ([], "no file for the split `train`"),
    ],
)
def test_names_that_do_not_tell_are_refused(tmp_path: Path, names: list[str], says: str) -> None:
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    with pytest.raises(UserError) as caught:
        files_of(open_folder(tmp_path), "corpus", "train")
    assert says in caught.value.what


@pytest.mark.parametrize(
    "head", ["configs: [", "configs: none", "- a list", "configs: [1, {a: b}]"]
)
def test_a_card_that_says_nothing_leaves_the_names_to_tell(tmp_path: Path, head: str) -> None:
    copies.jsonl(tmp_path / "train.jsonl", [{"_id": "1", "text": "one"}])
    (tmp_path / "README.md").write_text(f"---\n{head}\n---\n")
    if head == "configs: [":
        with pytest.raises(UserError, match="is not YAML"):
            files_of(open_folder(tmp_path), None, "train")
    else:
        assert files_of(open_folder(tmp_path), None, "train") == ["train.jsonl"]


@pytest.mark.parametrize(
    ("repository", "config", "split"),
    [
        ("mteb/msmarco", None, "train"),
        ("mteb/msmarco", "corpus", "corpus"),
        ("mteb/msmarco", "queries", "queries"),
        ("BeIR/fiqa-qrels", None, "test"),
        ("sentence-transformers/msmarco-corpus", "passage", "train"),
        ("sentence-transformers/msmarco-corpus", "query", "train"),
    ],
)
def test_the_card_is_read_as_the_library_reads_it(
    repository: str, config: str | None, split: str, mirror: Path
) -> None:
    folder = mirror / repository
    assert files_of(open_folder(folder), config, split) == library_files(folder, config, split)


@pytest.mark.parametrize(
    ("data_files", "split", "expected"),
    [
        ("a.jsonl", "train", ["a.jsonl"]),
        ("[a.jsonl, b.jsonl]", "train", ["a.jsonl", "b.jsonl"]),
        ("[{split: dev, path: [b.jsonl, a.jsonl]}]", "dev", ["b.jsonl", "a.jsonl"]),
        ("[{split: dev, path: '*.jsonl'}]", "dev", ["a.jsonl", "b.jsonl"]),
        ("[{split: dev, path: '**/*.jsonl'}]", "dev", ["a.jsonl", "b.jsonl", "in/c.jsonl"]),
        ("[{split: dev, path: 'in/?.jsonl'}]", "dev", ["in/c.jsonl"]),
    ],
)
def test_every_form_of_data_files_is_read(
    tmp_path: Path, data_files: str, split: str, expected: list[str]
) -> None:
    for name in ("a", "b", "in/c"):
        copies.jsonl(tmp_path / f"{name}.jsonl", [{"_id": name, "text": name}])
    text = f"---\nconfigs:\n- config_name: default\n  data_files: {data_files}\n---\n"
    (tmp_path / "README.md").write_text(text)
    assert files_of(open_folder(tmp_path), None, split) == expected
    assert sorted(library_files(tmp_path, None, split)) == sorted(expected)


def library_files(folder: Path, config: str | None, split: str) -> list[str]:
    """The files of a config and split as the hub's own library finds them."""
    datasets = pytest.importorskip("datasets")
    builder = datasets.load_dataset_builder(str(folder), config)
    root = folder.resolve()
    return [Path(path).relative_to(root).as_posix() for path in builder.config.data_files[split]]


def test_official_parts_are_checked_against_the_tables(mirror: Path) -> None:
    file = {
        "name": "tiny",
        "language": "en",
        "seed": 1,
        "source": {"kind": "hub", **MTEB},
        "duplicates": {"drop": False},
        "splits": {"official": {"train": ["train"], "test": ["tset"]}},
    }
    with pytest.raises(ValidationError, match="no part 'tset'"):
        DatasetParams.model_validate(file)


# What is 512 times as long as a text as it is here; each letter more doubles it.
ALIASES = (
    "a: &a [1, 1]\n"
    + "".join(f"{b}: &{b} [*{a}, *{a}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True))
    + "configs: [{config_name: *i}, {config_name: x, data_files: [{split: *i, path: *i}]}]"
)


@pytest.mark.parametrize(
    "head",
    [
        "configs: " + "[" * 1000,
        ALIASES,
        "configs:\n- {config_name: x, data_dir: 7}",
        "configs:\n- {config_name: x, data_files: {split: [x], path: {a: b}}}",
        "configs:\n- {config_name: 2020-13-45, data_files: x}",
        "!!python/object/apply:os.system [echo]",
    ],
)  # fmt: skip
def test_a_card_that_is_made_to_break_readers_is_refused(tmp_path: Path, head: str) -> None:
    copies.jsonl(tmp_path / "a.jsonl", [{"_id": "1", "text": "one"}])
    (tmp_path / "README.md").write_text(f"---\n{head}\n---\n")
    with pytest.raises(UserError, match="remedy"):
        files_of(open_folder(tmp_path), None, "train")
