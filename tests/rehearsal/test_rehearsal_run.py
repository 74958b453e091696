"""The runner: what it calls a fault, what its report holds, and one profile rehearsed from end to end."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from rehearsal.run import Rehearsed, main, unwanted, write_report


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("paper: 3 of 9 done, running tiny D=16 seed 1", False),
        ("  01_subsets 28 s", False),
        ("lib.py:3: FutureWarning: this will go", True),
        ("Traceback (most recent call last):", True),
    ],
)
def test_warnings_and_tracebacks_are_faults(line: str, fault: bool) -> None:
    assert unwanted(line) == fault


def test_one_faulty_notebook_is_enough() -> None:
    assert Rehearsed("paper", notebooks={"01_subsets": []}).clean
    assert not Rehearsed("paper", notebooks={"01_subsets": ["cell 3: an error"]}).clean
    assert not Rehearsed("paper", faults=["2 runs are missing"]).clean


def test_the_report_has_every_notebook_and_every_claim(tmp_path: Path) -> None:
    claims = [{"id": "M1", "verdict": "not comparable"}]
    notebooks = {"01_subsets": [], "02_lr_invariance": ["cell 1: an error"]}
    done = Rehearsed("paper", [(1.0, "a line")], 2.0, 3.0, [], notebooks, claims)
    write_report(tmp_path / "report.json", [done], 4.0)
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["meaningless"] is True
    found = report["profiles"]["paper"]
    assert {name: each["result"] for name, each in found["notebooks"].items()} == {
        "01_subsets": "clean", "02_lr_invariance": "faulty",
    }  # fmt: skip
    assert found["claims"] == claims


@pytest.mark.slow
def test_a_profile_is_rehearsed_from_end_to_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["t2ranking", "--folder", str(tmp_path)]) == 0, capsys.readouterr().out
    found = json.loads((tmp_path / "report.json").read_text())["profiles"]["t2ranking"]
    assert len(found["notebooks"]) == 10
    assert {each["result"] for each in found["notebooks"].values()} == {"clean"}
    assert {row["verdict"] for row in found["claims"]} >= {"not comparable", "inconclusive"}
    assert not [row for row in found["claims"] if row["verdict"] == "not run"
                and row["notebook"] in ("01", "04", "09")
                and row["id"] != "C2"]  # fmt: skip


@pytest.mark.slow
def test_a_rehearsal_that_is_ended_leaves_no_study_behind(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "rehearsal", "t2ranking", "--folder", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        until = time.monotonic() + 300
        children: list[psutil.Process] = []
        while not children and process.poll() is None and time.monotonic() < until:
            time.sleep(0.2)
            if (tmp_path / "t2ranking.log").exists():
                children = psutil.Process(process.pid).children(recursive=True)
        process.terminate()
        assert process.wait(60) == 143
    assert children
    _, alive = psutil.wait_procs(children, timeout=30)
    assert not alive
