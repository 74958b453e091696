"""Pins what the report page finds beside its own report: published studies on the same data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from repro.app import beside
from repro.show import agreement, claims
from repro.store import VERSIONS

DIGESTS = {"collection": "a", "splits": "b", "profile": "mine"}


def row(claim: str, verdict: str, kind: str = "qual", **more: Any) -> dict[str, Any]:
    return {
        "id": claim, "kind": kind, "claim": f"sentence of {claim}", "paper": "printed", "ours": 0.1,
        "ci95": [0.05, 0.15], "verdict": verdict, "why": "because", **more,
    }  # fmt: skip


def report(*rows: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A report of the profile `other` on the data `DIGESTS`, with these rows."""
    digests = {**DIGESTS, "profile": "other"}
    return {"dataset": "tiny", "digests": digests, "versions": VERSIONS, "claims": rows, **more}


OWN = {"dataset": "tiny", "digests": DIGESTS, "claims": [row("M5", "holds"), row("M14", "fails")]}


@pytest.fixture
def publish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Publishes a report (or a text) under a name, in a checkout of its own."""
    monkeypatch.setattr(beside, "ROOT", tmp_path)

    def write(name: str, content: dict[str, Any] | str) -> None:
        folder = tmp_path / "results" / name
        folder.mkdir(parents=True, exist_ok=True)
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / "report.json").write_text(text)

    return write


def page() -> str:
    return agreement.beside("mini-tiny", OWN["claims"], beside.others("mini-tiny", OWN))


def test_nothing_published_is_no_error(publish: Any) -> None:
    assert beside.others("mini-tiny", OWN) == {"studies": [], "faults": []}
    assert page() == "No other study on this dataset is published."


def test_the_other_studies_on_the_same_dataset_are_found(publish: Any) -> None:
    publish("mini-tiny", report(row("M5", "fails")))  # its own
    publish("midi-else", report(row("M5", "fails"), dataset="else"))
    publish("midi-tiny", report(row("M5", "fails"), row("M14", "fails")))
    (found,) = beside.others("mini-tiny", OWN)["studies"]
    assert (found["name"], found["marks"]) == ("midi-tiny", [])
    text = page()
    assert "Of 2 verdicts" in text
    assert "**M5** (holds in mini-tiny, fails in midi-tiny)" in text
    assert "†" not in text
    assert "| M5 | sentence of M5 | printed | **● holds**<br>0.1 [0.05, 0.15] | **○ fails**" in text


def test_what_is_of_other_data_or_versions_is_marked_and_not_counted(publish: Any) -> None:
    fails = row("M5", "fails")
    publish("data-tiny", report(fails, digests={**DIGESTS, "splits": "c"}))
    publish("late-tiny", report(fails, versions={**VERSIONS, "train": 0}))
    publish("old-tiny", report(fails, versions={}))
    studies = beside.others("mini-tiny", OWN)["studies"]
    marks = {each["name"]: each["marks"] for each in studies}
    assert marks["data-tiny"] == ["other data (splits)"]
    assert marks["late-tiny"] == ["other result versions (train)"]
    assert marks["old-tiny"] == ["published before reports named their result versions"]
    text = page()
    assert "† data-tiny: other data (splits). Shown, not counted." in text
    assert "| data-tiny † | late-tiny † | old-tiny † |" in text
    assert "verdicts on runs" not in text


def test_only_the_claims_that_older_results_bear_on_are_left_out(publish: Any) -> None:
    own = {**OWN, "claims": [row("M5", "holds"), row("S7", "fails")]}
    late = {**VERSIONS, "labels": 0}
    publish("midi-tiny", report(row("M5", "fails"), row("S7", "fails"), versions=late))
    found = beside.others("mini-tiny", own)
    (study,) = found["studies"]
    assert (study["marks"], [each["id"] for each in study["claims"]]) == ([], ["M5"])
    assert found["faults"] == ["S7, S8, S9 of midi-tiny are of other result versions: left out."]
    text = agreement.beside("mini-tiny", own["claims"], found)
    assert "Of 1 verdict" in text
    assert found["faults"][0] in text


def test_a_claim_that_kinds_bear_on_is_one_of_that_notebook() -> None:
    of_labels = {claim.id for claim in claims.load().claims if claim.notebook == "05"}
    assert of_labels >= beside.BEARS_ON["labels"]
    assert of_labels - beside.BEARS_ON["labels"] == {"S6"}  # planted in the grid's own losses


def test_nothing_is_counted_beside_a_test_of_the_plumbing(publish: Any) -> None:
    publish("midi-tiny", report(row("M5", "fails")))
    found = beside.others("smoke-tiny", {**OWN, "meaningless": True})
    assert found["studies"][0]["marks"] == ["the study of this page tests the plumbing alone"]
    assert "verdicts on runs" not in agreement.beside("smoke-tiny", OWN["claims"], found)


BROKEN = {
    "no JSON": "{",
    "no report": "[]",
    "no rows": json.dumps({"dataset": "tiny"}),
    "an unknown verdict": json.dumps(report(row("M5", "perhaps"))),
    "a number that is none": json.dumps(report(row("M5", "holds", ours=float("nan")))),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_report_is_told_and_left_out(publish: Any, fault: str, tmp_path: Path) -> None:
    publish("bad-tiny", BROKEN[fault])
    publish("midi-tiny", report(row("M5", "holds")))
    text = page()
    assert "results/bad-tiny/report.json is left out: it is no report of a study (" in text
    assert str(tmp_path) not in text
    assert "midi-tiny" in text


def test_what_the_page_shows_decides_whether_it_is_up_to_date(publish: Any, tmp_path: Path) -> None:
    build = tmp_path / "mini-tiny"
    build.mkdir()
    (build / "report.json").write_text(json.dumps(OWN))
    before = beside.seen(build)
    publish("mini-tiny", report(row("M5", "fails")))
    publish("midi-else", report(row("M5", "fails"), dataset="else"))
    assert beside.seen(build) == before
    publish("midi-tiny", report(row("M5", "fails"), provenance={"commit": "a"}))
    after = beside.seen(build)
    assert after != before
    publish("midi-tiny", report(row("M5", "fails"), provenance={"commit": "b"}))
    assert beside.seen(build) == after  # the page does not show it
    publish("midi-tiny", report(row("M5", "holds")))
    assert beside.seen(build) != after
