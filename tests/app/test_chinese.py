"""Chinese, from a table to a trained run: the shipped encoders refuse it, encoders made from it read it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from repro.app.cli import main
from repro.app.study import Study
from repro.data.tokens import MAX_UNKNOWN
from repro.errors import UserError
from repro.work.makers import Makers
from tiny import PROFILE

pytestmark = pytest.mark.slow

WORDS = [
    "上海",
    "北京",
    "长江",
    "经济",
    "城市",
    "游客",
    "水稻",
    "农民",
    "春天",
    "数据",
    "记录",
    "火车",
]
RECIPE = {
    "seed": 1,
    "sizes": ["1x32"],
    "shape": {"positions": 40, "output": 16},
    "vocabulary": {"size": 600},
    "training": {
        "steps": 6, "batch": 16, "log_every": 2, "save_every": 6, "warmup_steps": 1,
        "crops": {"query_tokens": [4, 8], "passage_tokens": [8, 16]},
    },
    "text": {"held_out": 20},
}  # fmt: skip


def texts(n: int = 500) -> list[tuple[str, str]]:
    """Questions, and answers that share two characters with them alone."""
    random = np.random.default_rng(4)
    found = []
    for i in range(n):
        own = "".join(chr(0x5000 + (37 * i + k) % 150) for k in (0, 11))
        words = random.choice(WORDS, 9)
        found.append(
            (f"{''.join(words[:2])}与{own}是什么？", f"{''.join(words[2:])}，{own}与什么？是{i}。")
        )
    return found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REPRO_HOME", str(tmp_path / "home"))
    lines = ["问题,回答", *(f"{query},{passage}" for query, passage in texts())]
    (tmp_path / "pairs.csv").write_text("\n".join(lines), encoding="gb18030")
    source = {
        "kind": "pairs", "files": "pairs.csv", "encoding": "gb18030",
        "columns": {"query": "问题", "passage": "回答"},
    }  # fmt: skip
    about = {
        "name": "zh", "language": "zh", "seed": 1, "splits": "auto", "source": source,
        "duplicates": {"drop_jaccard": 0.9, "join_jaccard": 0.8},
    }  # fmt: skip
    (tmp_path / "zh.yaml").write_text(json.dumps(about), encoding="utf-8")
    return tmp_path


def study(folder: Path, weights: str) -> Study:
    profile = {
        **PROFILE,
        "dataset": str(folder / "zh.yaml"),
        "models": {"小": {"weights": weights, "lr": 2e-3}},
        "grid": {"models": ["小"], "sizes": "auto from 32 to 64"},
    }
    (folder / "profile.yaml").write_text(json.dumps(profile), encoding="utf-8")
    return Study(folder / "profile.yaml")


def test_from_a_chinese_table_to_a_trained_run(folder: Path) -> None:
    with pytest.raises(UserError, match="of the tokens of zh are unknown") as caught:
        study(folder, "micro/1x32").planned()
    assert "repro pretrain --dataset" in caught.value.remedy
    (folder / "recipe.yaml").write_text(json.dumps(RECIPE))
    command = ["pretrain", "--params", str(folder / "recipe.yaml"), "--out", str(folder / "made")]
    assert main([*command, "--dataset", str(folder / "zh.yaml")]) == 0

    opened = study(folder, str(folder / "made/1x32"))
    runs = opened.planned()
    assert [run.pairs for run in runs] == [32, 64]
    table = opened.runs.texts(str(folder / "made/1x32")).table
    assert table.unknown_share < MAX_UNKNOWN
    lengths = table.queries.lengths(np.arange(len(table.queries)), 99)
    characters = [len(text) for text in opened.dataset.collection.queries]
    assert abs(np.mean(lengths - 2) - np.mean(characters)) < 1  # a token a character
    assert "小" in opened.describe()

    work = folder / "run"
    work.mkdir()
    Makers(opened.store, "cpu").make(runs[0].train, work, lambda flop, note: None)
    curve = pd.read_parquet(work / "curve.parquet")
    assert np.isfinite(curve["loss"]).all()
    assert json.loads((work / "summary.json").read_text())["state"] != "diverged"
