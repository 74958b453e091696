"""The numbers of tiny runs, pinned: when they move on purpose, raise the kind's result version.

One run for each option that changes numbers.  A refactoring that keeps these keeps every stored
result; a change that moves them must raise `store.VERSIONS["train"]`, so that no old result is
taken for a new one.  Renew with: python tests/test_golden.py > tests/golden.json
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from repro.experiments.runs import Trained
from repro.store import VERSIONS
from repro.work.makers import Makers
from repro.work.queue import Task

GOLDEN = Path(__file__).with_name("golden.json")

OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "dot": {"encoder": {"scoring": "dot", "scale": 0.2}},
    "cls": {"encoder": {"pooling": "cls"}},
    "no dropout": {"encoder": {"dropout": 0.0}},
    "cached": {"train": {"step_tokens": 64}},
    "own negatives": {"train": {"negatives": {"count": 16, "sharing": "query"}}},
    "decay": {"train": {"weight_decay": 0.5}},
    "all decayed": {"train": {"weight_decay": 0.5, "decayed": "all"}},
    "other pairs": {"subset_seed": 3},
    "other dropout": {"dropout_seed": 3},
    "warm-up": {"train": {"warmup_steps": 6}},
    "seldom read": {"curve": {"share": 0.05}},
    "short texts": {"texts": {"query_tokens": 5, "passage_tokens": 9}},
    "other seed": {"seed": 9},
}


def golden_task(task: Task, option: str) -> Task:
    """`task` with the option's changes and a curve of eight steps."""
    spec = {**task.spec, "curve": {**task.spec["curve"], "max_steps": 8, "share": 0.9}}
    for name, change in OPTIONS[option].items():
        spec[name] = {**spec[name], **change} if isinstance(change, dict) else change
    return Task(task.kind, spec, task.label, task.flop, task.inputs)


def numbers(makers: Makers, task: Task, folder: Path) -> dict[str, list[float]]:
    """Validation and training losses of the run."""
    makers.make(task, folder, lambda flop, note: None)
    curve = pd.read_parquet(folder / "curve.parquet")
    return {"loss": curve["loss"].tolist(), "train_loss": curve["train_loss"].tolist()}


@pytest.mark.parametrize("option", OPTIONS)
def test_numbers_are_those_of_this_result_version(
    option: str, makers: Makers, cell: Trained, tmp_path: Path
) -> None:
    golden = json.loads(GOLDEN.read_text())
    assert golden["versions"] == VERSIONS, "raised a result version? renew the golden numbers too"
    found = numbers(makers, golden_task(cell.train, option), tmp_path)
    for name, values in golden["numbers"][option].items():
        assert found[name] == pytest.approx(values, rel=1e-5), (
            f"{option}: {name} moved; if that is meant, raise store.VERSIONS['train']"
        )


def test_the_options_differ(makers: Makers, cell: Trained) -> None:
    golden = json.loads(GOLDEN.read_text())["numbers"]
    assert set(golden) == set(OPTIONS)
    curves = {
        name: tuple(round(x, 6) for x in values["train_loss"]) for name, values in golden.items()
    }
    same = {"plain", "cached"}  # equal up to rounding, on purpose
    assert len({curve for name, curve in curves.items() if name not in same}) == len(OPTIONS) - 2


def renew() -> None:
    """Print the numbers of this code."""
    import os
    import sys
    import tempfile

    sys.path.insert(0, str(Path(__file__).parent))
    import tiny
    from repro.app.study import Study

    with tempfile.TemporaryDirectory() as name:
        os.environ["REPRO_HOME"] = name
        study = Study(tiny.write_study(Path(name)))
        makers, task = (
            Makers(study.store, "cpu"),
            next(run for run in study.planned() if run.pairs == 160).train,
        )
        found = {}
        for option in OPTIONS:
            folder = Path(name) / option
            folder.mkdir()
            found[option] = numbers(makers, golden_task(task, option), folder)
    print(json.dumps({"versions": VERSIONS, "numbers": found}, indent=1))


if __name__ == "__main__":
    renew()
