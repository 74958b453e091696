"""Other root seeds: what is changed and what is kept, the record, and what the report page says of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from repro.app import beside
from repro.app.cli import main
from repro.app.stability import variants
from repro.app.study import Study
from repro.show import agreement
from repro.store import VERSIONS

DIGESTS = {"collection": "a", "profile": "mine"}


def row(claim: str, verdict: str) -> dict[str, Any]:
    about = {"id": claim, "kind": "qual", "claim": "said", "paper": "printed", "verdict": verdict}
    return about | {"ours": 0.2, "ci95": None}


def record(*of_variants: list[dict[str, Any]]) -> dict[str, Any]:
    """A stability.json with the claims of each variant."""
    found = [
        {"name": f"v{i}", "run_seed": 1 + i, "data_seed": 3, "missing": int(i == 1), "claims": rows}
        for i, rows in enumerate(of_variants)
    ]
    return {"digests": DIGESTS, "versions": VERSIONS, "variants": found}


OWN = [row("M5", "holds"), row("M14", "fails"), row("M16", "holds")]
REPORT = {"dataset": "tiny", "digests": DIGESTS, "claims": OWN}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home and an empty checkout."""
    monkeypatch.setenv("REPRO_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(beside, "ROOT", tmp_path / "checkout")
    return tmp_path / "home"


def write(folder: Path, content: Any) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "stability.json").write_text(
        content if isinstance(content, str) else json.dumps(content)
    )


def page() -> str:
    return agreement.stability(beside.stability("mini-tiny", REPORT))


def test_a_study_not_run_under_other_seeds_says_so(home: Path) -> None:
    assert page() == "Not run under other root seeds (`make stability`)."


def test_a_verdict_that_depends_on_the_seed_is_named(home: Path) -> None:
    other = [row("M5", "fails"), row("M14", "fails"), row("M16", "inconclusive")]
    write(home / "build" / "mini-tiny", record(OWN, OWN, other))
    text = page()
    assert text.startswith("3 studies with root seeds of their own: v0 (run seed 1, data seed 3), ")
    assert "v1 (run seed 2, data seed 3), 1 runs missing" in text
    assert "Of 3 verdicts" in text
    assert "1 are the same and 2 are not" in text
    assert "Opposite: **M5** (holds in v0, v1, fails in v2)." in text
    assert "| M5 | said | printed |" in text
    assert "| M14 |" not in text


def test_where_all_are_the_same_no_table_is_shown(home: Path, tmp_path: Path) -> None:
    write(tmp_path / "checkout" / "results" / "mini-tiny", record(OWN, OWN))  # published, no build
    text = page()
    assert "3 are the same and 0 are not" in text
    assert "depend on the seed" not in text


STALE = {
    "another profile": {**record(OWN, OWN), "digests": {**DIGESTS, "profile": "other"}},
    "older results": {**record(OWN, OWN), "versions": {**VERSIONS, "train": 0}},
    "verdicts that code gave which has changed": record([row("M5", "fails")], OWN),
}


@pytest.mark.parametrize("why", STALE)
def test_a_record_of_another_state_is_not_shown(home: Path, why: str) -> None:
    write(home / "build" / "mini-tiny", STALE[why])
    text = page()
    assert text.startswith("build/mini-tiny/stability.json is not shown: it was made of another")


@pytest.mark.parametrize("broken", ["{", "{}", json.dumps(record(OWN))])
def test_a_broken_record_is_told(home: Path, broken: str) -> None:
    write(home / "build" / "mini-tiny", broken)
    assert "it is no record of `make stability` (" in page()


def test_a_new_record_makes_the_page_stale(home: Path) -> None:
    build = home / "build" / "mini-tiny"
    build.mkdir(parents=True)
    (build / "report.json").write_text(json.dumps(REPORT))
    before = beside.seen(build)
    write(build, record(OWN, OWN))
    assert beside.seen(build) != before


def test_one_root_seed_is_changed_at_a_time(fresh: Study) -> None:
    found = variants(fresh)
    assert list(found) == ["base", "run1001", "run2001", "data4", "data5"]
    assert list(variants(fresh, 1)) == ["base", "run1001", "data4"]
    seeds = {name: (s.profile.seed, s.dataset_params.seed) for name, s in found.items()}
    assert seeds["run2001"] == (2001, 3)
    assert seeds["data5"] == (1, 5)
    assert {study.build.parent for study in found.values()} == {fresh.build.parent}
    assert found["data4"].build.name == found["data4"].name == "study-tiny-data4"
    base, other = fresh.digests(), found["data4"].digests()
    assert base["collection"] == other["collection"]
    assert base["splits"] != other["splits"]
    assert base["profile"] == other["profile"]
    specs = {name: study.planned()[0].spec for name, study in found.items()}
    assert len({spec.model_dump_json() for spec in specs.values()}) == 5


def test_a_target_in_the_dataset_itself_follows_the_data_seed(
    study_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pairs held out by the old seed may be trained on under the new one."""
    monkeypatch.setenv("REPRO_HOME", str(tmp_path))
    data = json.loads(study_file.with_name("tiny.yaml").read_text())
    data["targets"] = {"own": {"dataset": str(tmp_path / "tiny.yaml"), "set": "test"}}
    (tmp_path / "tiny.yaml").write_text(json.dumps(data))
    profile = json.loads(study_file.read_text()) | {"dataset": str(tmp_path / "tiny.yaml")}
    (tmp_path / "study.yaml").write_text(json.dumps(profile))
    found = variants(Study(tmp_path / "study.yaml"))
    for name in ("base", "data4"):
        dataset, split = found[name].runs.targets["own"]
        own = found[name].dataset.evaluation("test")
        assert dataset.evaluation(split).digest == own.digest
    one, two = (found[name].runs.targets["own"][0].digests for name in ("base", "data4"))
    assert one["splits"] != two["splits"]


@pytest.mark.slow
def test_a_study_is_run_under_five_seeds_and_its_record_published(
    study_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    monkeypatch.setenv("REPRO_HOME", str(tmp_path))
    assert main(["stability", str(study_file)]) == 0
    said = capsys.readouterr().out
    assert "5 studies of 4 runs: about" in said
    assert "verdicts on runs that more than one study gives" in said
    build = tmp_path / "build" / "study-tiny"
    found = json.loads((build / "stability.json").read_text())
    assert [each["name"] for each in found["variants"]] == [
        "base", "run1001", "run2001", "data4", "data5",
    ]  # fmt: skip
    assert not any(each["missing"] for each in found["variants"])
    assert not any(each["kind"] == "calc" for each in found["claims"])
    by_id = {(each["id"], each["kind"]): each for each in found["claims"]}
    assert set(by_id["M9", "qual"]["verdicts"]) == set(variants(Study(study_file)))
    values = [
        next(each["ours"] for each in variant["claims"] if each["id"] == "M6")
        for variant in found["variants"]
    ]
    assert len({json.dumps(value) for value in values}) == 5  # every seed has numbers of its own

    from repro.app.report import write_report

    study = Study(study_file)
    report = write_report(study)
    shown = beside.stability(study.name, report)
    assert (len(shown["variants"]), shown["fault"]) == (5, "")
    for name in ("notebooks", "figures"):
        (build / name).mkdir()
    monkeypatch.setattr("repro.app.publish.ROOT", tmp_path / "checkout")
    assert main(["publish", str(study_file)]) == 0
    published = tmp_path / "checkout" / "results" / "study-tiny" / "stability.json"
    assert published.read_bytes() == (build / "stability.json").read_bytes()
