"""Pins `repro compare`: reports side by side, exponents and verdicts, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from repro.app.cli import main

ROOT = Path(__file__).parents[2]


def test_two_published_studies_side_by_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("REPRO_HOME", str(tmp_path))
    assert main(["compare", "mini", "midi", "--figure", str(tmp_path / "both.svg")]) == 0
    said = capsys.readouterr().out
    assert "| product law | mini-apidocs | 30 | **0.0678** [0.0238, 0.112] |" in said
    assert "| midi-apidocs | apidocs | 126 | 6 | 7 | 0 |" in said
    assert "are the same and" in said
    assert "| M5 | A product of powers" in said
    drawn = json.loads((tmp_path / "both.json").read_text())
    assert set(drawn["data"]) == {"mini-apidocs", "midi-apidocs"}
    assert "midi-apidocs, product: alpha 0.054" in drawn["alt"]
    assert (tmp_path / "both.png").stat().st_size > 10_000


def test_a_report_of_other_data_by_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A build comes before what is published; a law that one study lacks has a row for the other."""
    monkeypatch.setenv("REPRO_HOME", str(tmp_path))
    report = json.loads((ROOT / "results" / "mini-apidocs" / "report.json").read_text())
    report |= {"dataset": "mine"}
    report["laws"]["product"]["params"]["alpha"] = 0.5
    del report["laws"]["product_d0"]
    folder = tmp_path / "build" / "first-mine"
    folder.mkdir(parents=True)
    (folder / "report.json").write_text(json.dumps(report))
    assert main(["compare", "mini", "first:mine", "--figure", str(tmp_path / "b.svg")]) == 0
    by_name = capsys.readouterr().out
    assert "| product law | first-mine | 30 | **0.5** [" in by_name
    assert by_name.count("product law with head start |") == 1
    assert (
        main(["compare", "mini", str(folder / "report.json"), "--figure", str(tmp_path / "b.svg")])
        == 0
    )
    assert capsys.readouterr().out == by_name


def test_laws_that_could_not_be_fitted_and_old_results_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("REPRO_HOME", str(tmp_path))
    report = json.loads((ROOT / "results" / "mini-apidocs" / "report.json").read_text())
    report["laws"]["product"] |= {"params": None, "ci95": None}
    report["versions"]["labels"] -= 1
    folder = tmp_path / "build" / "smoke-apidocs"
    folder.mkdir(parents=True)
    (folder / "report.json").write_text(json.dumps(report))
    assert main(["compare", "mini", "smoke", "--figure", str(tmp_path / "b.svg")]) == 0
    said = capsys.readouterr().out
    assert "| product law | mini-apidocs" in said
    assert "| product law | smoke-apidocs" not in said
    assert "S7, S8, S9 of smoke-apidocs are of other result versions: left out." in said
    assert "| S8 " in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["mini"], "one study has nothing beside it"),
        (["mini", "mixi-apidocs"], "did you mean `mini-apidocs`"),
        (["mini", "midi", "--law", "produkt"], "product"),
        (["mini", "no.json"], "cannot be read"),
        (
            ["mini", "results/mini-apidocs/stability.json"],
            "this is no report of a study: it lacks dataset",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setenv("REPRO_HOME", str(tmp_path))
    monkeypatch.chdir(ROOT)
    assert main(["compare", *arguments]) == 2
    assert said in capsys.readouterr().err
