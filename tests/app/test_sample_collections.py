"""Collections that the project was not written for, through `repro reproduce smoke`, from end to end.

Pins that the sample collections give whole reports; that the same content in another container, under
columns of odd names, trains nothing anew and gives the same numbers; that a Chinese collection is
refused by the shipped vocabulary and runs on encoders that `repro pretrain` makes of its text.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from repro.app.cli import main

pytestmark = pytest.mark.slow

PARTS = ["train", "dev", "test"]
COLUMNS = {"query": "Frage ?", "passage": "l'answer", "query_id": "q#", "passage_id": "p id"}
RECIPE = {
    "seed": 1,
    "sizes": ["1x32", "2x64"],
    "shape": {"positions": 64, "output": 64},
    "vocabulary": {"size": 4000},
    "training": {
        "steps": 20, "batch": 32, "log_every": 10, "save_every": 20, "warmup_steps": 2,
        "crops": {"query_tokens": [6, 16], "passage_tokens": [16, 48]},
    },
    "text": {"held_out": 50},
}  # fmt: skip


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REPRO_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def write(path: Path, data: dict[str, Any]) -> str:
    path.write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")
    return str(path)


def beir(path: Path, folder: Path, language: str) -> str:
    source = {"kind": "beir", "folder": str(folder), "qrels": PARTS}
    return write(
        path,
        {"name": path.stem, "language": language, "seed": 1, "splits": "auto", "source": source},
    )


def reproduce(home: Path, dataset: str, study: str = "smoke") -> dict[str, Any]:
    """The report of a study that went well."""
    assert main(["reproduce", study, "--dataset", dataset]) == 0
    name = "+".join(Path(part).stem for part in study.split("+"))
    build = home / "build" / f"{name}-{Path(dataset).stem}"
    report: dict[str, Any] = json.loads((build / "report.json").read_text(encoding="utf-8"))
    assert report["missing"] == 0
    assert len(report["grid"]) >= 4
    assert len(list((build / "notebooks").glob("*.ipynb"))) == 10
    return report


def parquet(path: Path, folder: Path) -> dict[str, Any]:
    """The judged pairs of a BEIR folder in one table of odd names, shuffled; returns its source."""
    queries, corpus = (
        pd.read_json(folder / name, lines=True, dtype=False).set_index("_id")["text"]
        for name in ("queries.jsonl", "corpus.jsonl")
    )
    judged = pd.concat(
        [pd.read_csv(folder / f"qrels/{part}.tsv", sep="\t", dtype=str) for part in PARTS]
    ).sample(frac=1, random_state=0)
    q, p = judged["query-id"], judged["corpus-id"]
    cells = {"query": q.map(queries), "passage": p.map(corpus), "query_id": q, "passage_id": p}
    table = pd.DataFrame({COLUMNS[key]: column for key, column in cells.items()})
    table.to_parquet(path, index=False)
    return {"kind": "pairs", "files": str(path), "columns": COLUMNS}


def test_wiki_leads_in_two_containers_is_one_study(
    sample_data: Path, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = sample_data / "wiki-leads"
    first = reproduce(home, beir(tmp_path / "wiki-leads.yaml", folder, "en"))
    trained = sorted(path.name for path in (home / "runs/train").iterdir())
    source = parquet(tmp_path / "rows.parquet", folder)
    other = write(
        tmp_path / "rows.yaml",
        {"name": "rows", "language": "en", "seed": 1, "splits": "auto", "source": source},
    )
    second = reproduce(home, other)
    assert sorted(path.name for path in (home / "runs/train").iterdir()) == trained
    assert second["digests"] == first["digests"]
    assert second["grid"] == first["grid"]
    assert second["laws"] == first["laws"]


def test_a_chinese_collection_runs_on_encoders_made_of_its_text(
    sample_data: Path, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dataset = beir(tmp_path / "cmrc.yaml", sample_data / "cmrc2018-zh", "zh")
    assert main(["reproduce", "smoke", "--dataset", dataset]) == 2
    assert "repro pretrain --dataset" in capsys.readouterr().err
    recipe, made = write(tmp_path / "recipe.yaml", RECIPE), tmp_path / "made"
    assert main(["pretrain", "--params", recipe, "--dataset", dataset, "--out", str(made)]) == 0
    models = {size: {"weights": str(made / size)} for size in RECIPE["sizes"]}
    over = write(
        tmp_path / "own.yaml", {"models": models, "grid": {"models": RECIPE["sizes"]},
                                "encoder": {"projection": 64}}
    )  # fmt: skip
    report = reproduce(home, dataset, f"smoke+{over}")
    assert {row["model"] for row in report["grid"]} == set(RECIPE["sizes"])
