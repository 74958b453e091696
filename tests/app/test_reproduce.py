"""End to end on a study of seconds: report, notebooks, nothing done twice, failures told.

Pins the shape of report.json, that it round-trips the grid, that every notebook of the project runs
on a study that it was not written for, and that a second call does nothing until something changes.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import nbformat
import pandas as pd
import pytest

from repro.app.cli import main
from repro.places import ROOT

pytestmark = pytest.mark.slow

COLUMNS = {
    "model", "n_encoder", "n_encoder_pooler", "n_drscale", "n_total", "d", "seed", "lr", "batch",
    "negatives", "weight_decay", "zero_shot", "mael", "test_entropy", "steps", "sum_lr", "flop",
    "state", "mrr10", "recall100", "ndcg10", "map10",
}  # fmt: skip

LAW = {"params", "ci95", "aicc", "r2_log", "loo_model_mre", "loo_size_mre", "corner_mre"}


@pytest.fixture(scope="module")
def home(study_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which the study has been reproduced once."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REPRO_HOME", str(home))
        assert main(["reproduce", str(study_file)]) == 0
    return home


def test_the_report_is_whole(home: Path) -> None:
    build = home / "build" / "study-tiny"
    report = json.loads((build / "report.json").read_text())
    assert {"profile", "dataset", "digests", "provenance", "grid", "laws", "claims"} <= set(report)
    assert report["versions"]
    assert {"text", "status"} == set(report["limits"][0])
    assert report["missing"] == 0
    assert len(report["grid"]) == 4
    assert all(set(row) >= COLUMNS for row in report["grid"])
    for form in report["laws"].values():
        assert set(form) >= LAW
    for claim in report["claims"]:
        assert {"id", "source", "paper", "ours", "ci95", "verdict", "why"} <= set(claim)
        assert claim["why"]
    assert not any(c["verdict"] == "differs" for c in report["claims"] if c.get("kind") == "num")
    runs = pd.read_csv(build / "runs.csv")
    assert runs["run"].is_unique
    assert set(runs["experiments"].str.split().explode()) >= {"grid"}
    table = pd.read_csv(build / "grid.csv")
    assert set(table["run"]) <= set(runs["run"])
    assert table["mael"].tolist() == [row["mael"] for row in report["grid"]]


def test_every_notebook_ran_without_an_error(home: Path) -> None:
    executed = sorted((home / "build" / "study-tiny" / "notebooks").glob("*.ipynb"))
    sources = sorted((ROOT / "notebooks").glob("*.ipynb"))
    assert [path.name for path in executed] == [path.name for path in sources]
    for path in executed:
        assert str(home) not in path.read_text(encoding="utf-8")
        assert str(ROOT) not in path.read_text(encoding="utf-8")
        notebook = nbformat.read(path, as_version=4)
        outputs = [o for c in notebook.cells if c.cell_type == "code" for o in c.outputs]
        assert not [o for o in outputs if o.output_type == "error"]
        assert not [o for o in outputs if o.get("name") == "stderr"], path.name
        assert any("text/markdown" in o.get("data", {}) for o in outputs)


def test_every_figure_has_its_three_files_and_words(home: Path) -> None:
    folder = home / "build" / "study-tiny" / "figures"
    names = {path.stem for path in folder.iterdir()}
    assert names
    for name in names:
        assert (folder / f"{name}.svg").stat().st_size > 0
        assert (folder / f"{name}.png").stat().st_size > 0
        assert len(json.loads((folder / f"{name}.json").read_text())["alt"]) > 20


def test_a_second_call_does_nothing_until_something_changes(
    home: Path, study_file: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setenv("REPRO_HOME", str(home))
    notebook = home / "build" / "study-tiny" / "notebooks" / "10_report.ipynb"
    before = notebook.stat().st_mtime_ns
    assert main(["reproduce", str(study_file)]) == 0
    assert "nothing changed" in capsys.readouterr().out
    assert notebook.stat().st_mtime_ns == before
    from repro.app import stamp

    assert stamp.unchanged(str(study_file))
    run = next(iter((home / "runs" / "train").glob("[0-9a-f]*")))
    run.rename(tmp_path / run.name)
    assert not stamp.unchanged(str(study_file))
    (tmp_path / run.name).rename(run)
    assert stamp.unchanged(str(study_file))
    text, times = study_file.read_text(), study_file.stat()
    study_file.write_text(text + " ")
    assert not stamp.unchanged(str(study_file))
    study_file.write_text(text)
    os.utime(study_file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert stamp.unchanged(str(study_file))
    report = (home / "build" / "study-tiny" / "report.json").read_text()
    monkeypatch.setattr("repro.app.beside.ROOT", tmp_path)
    for name, same in (("study-tiny", True), ("another-tiny", False)):  # its own, and another's
        (tmp_path / "results" / name).mkdir(parents=True)
        (tmp_path / "results" / name / "report.json").write_text(report)
        assert bool(stamp.unchanged(str(study_file))) == same


def test_a_build_knows_whose_it_is_and_what_lies_in_it(
    home: Path, study_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from repro.app import stamp

    monkeypatch.setenv("REPRO_HOME", str(home))
    build = home / "build" / "study-tiny"
    assert stamp.unchanged(str(study_file))
    for output in ("report.json", "notebooks/10_report.ipynb"):
        (build / output).rename(build / "away")
        assert not stamp.unchanged(str(study_file))
        (build / "away").rename(build / output)
        assert stamp.unchanged(str(study_file))
        held = (build / output).read_bytes()
        (build / output).write_bytes(held)  # as a notebook run by hand writes its figures
        os.utime(build / output, ns=(0, 0))
        assert stamp.unchanged(str(study_file))
        (build / output).write_bytes(held + b" ")
        assert not stamp.unchanged(str(study_file))
        (build / output).write_bytes(held)
    record = json.loads((build / stamp.NAME).read_text())
    assert record["name"] == str(study_file)
    (build / stamp.NAME).write_text(json.dumps({**record, "name": "another study"}))
    assert not stamp.unchanged(str(study_file))
    stamp.remove(build)
    assert not stamp.unchanged(str(study_file))


def test_a_damaged_result_is_made_again_before_anything_is_told(
    home: Path, study_file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("REPRO_HOME", str(home))
    monkeypatch.setattr(
        "repro.app.reproduce.ROOT", tmp_path
    )  # no notebooks: the sweep is the matter
    before = json.loads((home / "build" / "study-tiny" / "report.json").read_text())["grid"]
    for kind, name in (("train", "best.safetensors"), ("measure", "metrics.json")):
        damaged = next((home / "runs" / kind).glob(f"[0-9a-f]*/{name}"))
        damaged.write_bytes(damaged.read_bytes()[:100])
    assert main(["reproduce", str(study_file), "--force"]) == 0
    after = json.loads((home / "build" / "study-tiny" / "report.json").read_text())["grid"]
    drop = {"seconds"}
    assert [{k: v for k, v in row.items() if k not in drop} for row in after] == [
        {k: v for k, v in row.items() if k not in drop} for row in before
    ]


def test_publish_refuses_what_is_not_there(
    study_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("REPRO_HOME", str(tmp_path))
    assert main(["publish", str(study_file)]) == 2
    assert "make reproduce" in capsys.readouterr().err


def test_a_notebook_that_fails_is_told_and_the_others_are_kept(
    home: Path, study_file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "params").mkdir()
    for name, source in (("01_good", "print(profile)"), ("02_bad", "1 / 0")):
        spec = {"name": "python3", "display_name": "Python 3", "language": "python"}
        notebook = nbformat.v4.new_notebook(metadata={"kernelspec": spec})
        parameters = nbformat.v4.new_code_cell(
            'profile = "mini"', metadata={"tags": ["parameters"]}
        )
        notebook.cells = [parameters, nbformat.v4.new_code_cell(source)]
        nbformat.write(notebook, tmp_path / "notebooks" / f"{name}.ipynb")
    monkeypatch.setenv("REPRO_HOME", str(home))
    monkeypatch.setattr("repro.app.reproduce.ROOT", tmp_path)
    assert main(["reproduce", str(study_file), "--force"]) == 1
    error = capsys.readouterr().err
    assert "02_bad" in error
    assert "ZeroDivisionError: division by zero" in error
    assert "Traceback" not in error
    target = home / "build" / "study-tiny" / "notebooks"
    assert (target / "01_good.ipynb").exists()
    assert not (target / "02_bad.ipynb").exists()
