"""Pins what `repro check --dataset` tells of a table of one's own: counts, damage, lengths, sizes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from repro.app.cli import main
from repro.places import ROOT
from tiny import pair_texts


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REPRO_HOME", str(tmp_path / "home"))
    return tmp_path


def write(folder: Path, n: int = 500, **more: Any) -> Path:
    """A CSV with two rows that are no pairs and a line that is not UTF-8, and its dataset file."""
    lines = ["Frage,Antwort", *(f"{query},{passage}" for query, passage in pair_texts(n))]
    lines += [",nobody asks", "nothing answers,", "caf\xe9,th\xe9 et caf\xe9"]
    (folder / "pairs.csv").write_bytes("\n".join(lines).encode("latin-1"))
    columns = {"query": "Frage", "passage": "Antwort"}
    source = {"kind": "pairs", "files": "pairs.csv", "columns": columns}
    about = {
        "name": "mine",
        "language": "en",
        "seed": 1,
        "splits": "auto",
        "source": source,
        **more,
    }
    file = folder / "mine.yaml"
    file.write_text(json.dumps(about))
    return file


def test_the_page_of_a_csv(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--dataset", str(write(folder))]) == 0
    said = capsys.readouterr().out
    assert "dataset mine: 501 pairs of 501 queries and 502 passages (en)" in said
    assert "1 row without a passage" in said
    assert "1 row without a query (its passage stays)" in said
    assert "1 line that is not UTF-8" in said
    assert "source.encoding" in said
    assert said.count("    query    ") == said.count("    passage  ") == 10
    assert (
        "splits     chosen (splits: auto): validation 50, test 50, tuning 50, generator 25" in said
    )
    assert "training  326 pairs" in said
    assert "sizes: [160, 320]" in said
    assert "words" in said
    assert "tokens (median, 95 %, most)" in said


def test_sizes_that_do_not_fit_come_after_what_was_read(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sizes = {"validation": 600, "test": 50, "tuning": 50, "generator": 0, "held_out": 0, "train": 9}
    sets = {"test": {"pairs": 50, "passages": 300}}
    file = write(folder, splits=sizes, evaluation={"sets": sets})
    assert main(["check", "--dataset", str(file)]) == 2
    told = capsys.readouterr()
    assert "501 pairs" in told.out
    assert "too small" in told.err
    assert "these would fit" in told.err


def test_text_that_the_micro_encoders_do_not_know_is_told(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "".join(f"第{i}个问题是什么,这是对第{i}个问题的回答。\n" for i in range(500))
    (folder / "pairs.csv").write_text(f"query,passage\n{text}", encoding="utf-8")
    about = {"name": "zh", "language": "zh", "seed": 1, "splits": "auto", "duplicates": {"drop": False},
             "source": {"kind": "pairs", "files": "pairs.csv"}}  # fmt: skip
    (folder / "zh.yaml").write_text(json.dumps(about))
    code = main(["check", "--dataset", str(folder / "zh.yaml")])
    said = capsys.readouterr()
    assert "NOTE: the micro-encoders refuse this text" in said.out
    assert "repro pretrain --dataset zh" in said.out
    assert code == 2  # its passages are all alike: one block
    assert "join_jaccard" in said.err


def test_nothing_to_check_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check"]) == 2
    assert "name a profile, or a --dataset" in capsys.readouterr().err


def test_the_template_is_a_dataset_file_once_its_table_is_there(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = folder / "mine.yaml"
    file.write_text((ROOT / "params/datasets/template.yaml").read_text())
    assert main(["check", "--dataset", str(file)]) == 2
    assert "pairs.csv" in capsys.readouterr().err
    lines = ["query,passage", *(f"{query},{passage}" for query, passage in pair_texts(500))]
    (folder / "pairs.csv").write_text("\n".join(lines))
    assert main(["check", "--dataset", str(file)]) == 0
    assert "500 pairs of 500 queries and 500 passages" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["Frage,Antwort\n", ""])
def test_a_table_without_a_row_is_refused(
    text: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(folder)
    (folder / "pairs.csv").write_text(text)
    assert main(["check", "--dataset", str(file)]) == 2
    said = "".join(capsys.readouterr())
    assert ("mine has 0 pairs" if text else "the file is empty") in said
