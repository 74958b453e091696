"""The check at the end of a rehearsal: it finds each kind of fault, and lets a clean build pass."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rehearsal import check
from repro import params
from repro.experiments.profile import MEANINGLESS, Profile
from repro.experiments.public_tables import UNSET
from repro.places import ROOT
from repro.show.claims import load


def build(folder: Path, *texts: str, **output: Any) -> Path:
    """A build whose notebooks all show `texts`, and whose first one has a further output."""
    (folder / "notebooks").mkdir()
    for number, source in enumerate(sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))):
        shown = [{"output_type": "stream", "name": "stdout", "text": [text]} for text in texts]
        shown += [{"output_type": "stream", **output}] if output and not number else []
        cells = [{"cell_type": "code", "outputs": shown}]
        (folder / "notebooks" / source.name).write_text(json.dumps({"cells": cells}))
    return folder


def test_a_clean_build_has_no_faults(tmp_path: Path) -> None:
    found = check.notebooks(build(tmp_path, MEANINGLESS, "see runs/train and a/b, about 3/4"))
    assert len(found) == 10
    assert not any(found.values())


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("UserWarning: this is odd", "a warning"),
        ("Traceback (most recent call last):", "a traceback"),
        ("see /tmp/x/runs", "an absolute path"),
        ("file:///home/somebody/a", "an absolute path"),
        ("the exponent is nan", "a number that is none"),
    ],
)
def test_each_unwanted_text_is_found(tmp_path: Path, text: str, what: str) -> None:
    found = check.notebooks(build(tmp_path, MEANINGLESS, name="stdout", text=[text]))
    assert [what in fault for fault in found["01_subsets"]] == [True]
    assert not found["10_report"]


def test_errors_standard_error_and_missing_notebooks_are_found(tmp_path: Path) -> None:
    folder = build(tmp_path, "nothing", name="stderr", text=["hello"])
    (folder / "notebooks" / "10_report.ipynb").unlink()
    found = check.notebooks(folder)
    assert found["10_report"] == ["it was not executed"]
    assert "stderr" in found["01_subsets"][0]
    assert found["03_grid"] == ["it does not say that it means nothing"]


def report(**changes: Any) -> dict[str, Any]:
    rows = [
        {
            "id": claim.id, "kind": kind, "notebook": claim.notebook, "why": "because",
            "verdict": "not comparable" if kind == "num" else "inconclusive",
        }
        for claim in load().claims
        for kind in claim.kinds
    ]  # fmt: skip
    return {"meaningless": True, "missing": 0, "claims": rows, **changes}


@pytest.fixture(scope="module")
def profile() -> Profile:
    return params.load(ROOT / "params" / "paper.yaml", Profile)


def test_a_whole_report_passes(profile: Profile) -> None:
    assert check.claims(report(), profile) == []


def test_each_fault_of_a_report_is_found(profile: Profile) -> None:
    assert check.claims(report(missing=2), profile) == ["2 runs are missing"]
    assert "mean nothing" in check.claims(report(meaningless=False), profile)[0]
    rows = report()["claims"]
    assert len(check.claims(report(claims=rows[1:]), profile)) <= 1
    gone = [row for row in rows if row["id"] != rows[0]["id"]]
    assert check.claims(report(claims=gone), profile) == [f"{rows[0]['id']} has no row"]
    for change in ({"verdict": "maybe"}, {"why": ""}):
        assert len(check.claims(report(claims=[{**rows[0], **change}, *rows[1:]]), profile)) == 1
    number = next(row for row in rows if row["kind"] == "num")
    compared = [{**row, "verdict": "match"} if row is number else row for row in rows]
    assert "compare with none" in check.claims(report(claims=compared), profile)[0]


@pytest.mark.slow
def test_a_claim_is_not_run_only_where_the_profile_does_not_ask(profile: Profile) -> None:
    assert profile.lr_study
    assert profile.transfer is None
    rows = report()["claims"]

    def faults(name: str, of: Profile = profile) -> list[str]:
        changed = [{**row, "verdict": "not run"} if row["id"] == name else row for row in rows]
        return check.claims(report(claims=changed), of)

    assert faults("M1")  # of notebook 02, which the profile asks for
    assert not faults("T1")  # of notebook 08, which it does not
    assert faults("M7")  # of notebook 04, which every profile asks for
    assert not faults("C2")  # which no profile asks for
    assert not faults("S10")
    without = [
        {**row, "verdict": "not run", "why": UNSET} if row["id"] == "C6" else row for row in rows
    ]
    assert not check.claims(report(claims=without), profile)
    assert faults("C6")
    assert faults("S10", profile.model_copy(update={"comparable": ["S10"]}))
