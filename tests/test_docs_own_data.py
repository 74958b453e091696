"""Pins that the commands of docs/own-data.md are commands that there are, and find what they name."""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from repro.app import check, fit, plan, pretrain
from repro.data.dataset import load_dataset_params
from repro.places import ROOT

PAGE = (ROOT / "docs" / "own-data.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```bash\n(.*?)```", PAGE, re.S)
COMMANDS = [
    line.split("  #")[0].strip()
    for block in BLOCKS
    for line in block.replace("\\\n", " ").splitlines()
    if line.strip()
]
REPRO = [line for line in COMMANDS if line.startswith(".venv/bin/repro ")]


def test_there_are_five_steps_with_commands() -> None:
    assert re.findall(r"^## (\d)\.", PAGE, re.M) == list("12345")
    assert len(REPRO) >= 4


@pytest.mark.parametrize("line", REPRO)
def test_a_command_takes_its_options(line: str) -> None:
    parser = argparse.ArgumentParser()
    subparsers = parser.add_subparsers()
    for module in (check, fit, plan, pretrain):
        module.add_parser(subparsers)
    assert parser.parse_args(shlex.split(line)[1:]).run


def test_make_has_the_targets_and_the_profile_is_there() -> None:
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M)
    made = [line.split()[1:] for line in COMMANDS if line.startswith("make ")]
    assert made
    for target, *variables in made:
        assert target in targets
        for name, value in (each.split("=") for each in variables):
            assert name != "PROFILE" or (ROOT / "params" / f"{value}.yaml").is_file()


def test_the_template_becomes_the_dataset_file_of_the_page(tmp_path: Path) -> None:
    (tmp_path / "params/datasets").mkdir(parents=True)
    template = (ROOT / "params/datasets/template.yaml").read_text(encoding="utf-8")
    (tmp_path / "params/datasets/template.yaml").write_text(template, encoding="utf-8")
    first, second = COMMANDS[:2]
    for line in (first, second):
        subprocess.run(["bash", "-c", line], cwd=tmp_path, check=True)
    params = load_dataset_params(str(tmp_path / "own/mine.yaml"))
    assert params.automatic
    columns = params.source.model_dump()["columns"]
    assert (columns["query"], columns["passage"]) == ("question", "answer")
    assert params.source.paths() == {"files": [tmp_path / "own/pairs.csv"]}
