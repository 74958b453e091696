"""Pins docs/experiments.md: its sections are those of a profile, and work beside mini's grid."""

from __future__ import annotations

import re
from pathlib import Path

from repro import params
from repro.experiments.profile import Profile
from repro.experiments.registry import RUNS
from repro.places import ROOT


def test_the_sections_shown_are_those_that_there_are_and_fit_mini(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "experiments.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    mini = (ROOT / "params" / "mini.yaml").read_text(encoding="utf-8")
    (tmp_path / "all.yaml").write_text(mini.partition("lr_study:")[0] + shown, encoding="utf-8")
    profile = params.load(tmp_path / "all.yaml", Profile)
    for name in RUNS.keys() - {"grid"}:
        assert getattr(profile, name) is not None
        assert f"| `{name}` |" in text
