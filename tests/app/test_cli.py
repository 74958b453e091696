"""The command line: broken files stop before work starts, on one screen, with file, line and remedy."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from repro.app.cli import main
from repro.app.study import Study


@pytest.fixture
def profile(
    study_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, study: Study
) -> Path:
    """A copy of the tiny profile, one key a line, over the session's store (its data are there)."""
    monkeypatch.setenv("REPRO_HOME", str(study.store.root.parent))
    path = tmp_path / "mine.yaml"
    data = json.loads(study_file.read_text())
    path.write_text("\n".join(lines(data, 0)) + "\n")
    return path


def lines(data: dict[str, Any], depth: int) -> list[str]:
    """Block-style YAML of nested mappings."""
    out = []
    for key, value in data.items():
        if isinstance(value, dict):
            out += ["  " * depth + f"{key}:", *lines(value, depth + 1)]
        else:
            out.append("  " * depth + f"{key}: {json.dumps(value)}")
    return out


def swap(old: str, new: str) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        text = path.read_text()
        assert re.search(old, text), old
        path.write_text(re.sub(old, new, text, count=1))

    return change


def swap_name(path: Path) -> None:
    path.rename(path.with_name("mime.yaml"))


def same_split(path: Path) -> None:
    """A dataset file that evaluates on what it trains on."""
    dataset = json.loads((path.parent / "data.yaml").read_text())
    dataset["evaluation"]["sets"]["train"] = dataset["evaluation"]["sets"].pop("validation")
    (path.parent / "data.yaml").write_text("\n".join(lines(dataset, 0)) + "\n")


BROKEN: dict[str, tuple[Callable[[Path], None], str, str]] = {
    "unknown key": (swap("batch_pairs", "batch_pears"), "mine.yaml:", "batch_pairs"),
    "lr is a word": (swap("lr: 0.002", "lr: fast"), "mine.yaml:", "write a number"),
    "negative size": (swap(r"sizes: \[32", "sizes: [-32"), "mine.yaml:", "2 or more"),
    "more pairs than there are": (swap(r"160\]", "99999]"), "mine.yaml:", "at or below"),
    "no such model folder": (swap("/small", "/smal"), "mine.yaml:", "did you mean"),
    "evaluation is training": (same_split, "data.yaml", "validation"),
    "a key twice": (swap("seed: 1", "seed: 1\nseed: 2"), "mine.yaml:", "keep one"),
    "empty": (lambda path: path.write_text(""), "mine.yaml", "empty"),
    "not YAML": (lambda path: path.write_text("a: [1,\nb: }"), "mine.yaml:", "YAML"),
    "a directory": (lambda path: path.unlink() or path.mkdir(), "mine.yaml", "directory"),
    "no such file": (swap_name, "mine.yaml", "mime.yaml"),
}  # fmt: skip


@pytest.mark.parametrize("fault", BROKEN)
@pytest.mark.parametrize("command", ["check", "reproduce"])
def test_broken_files_stop_before_work_starts(
    fault: str, command: str, profile: Path, study_file: Path, study: Study,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    data = profile.parent / "data.yaml"
    data.write_text(study.dataset_file.read_text())
    swap(r'dataset: ".*?"', f'dataset: "{data}"')(profile)
    damage, where, remedy = BROKEN[fault]
    damage(profile)
    before = set(study.store.root.glob("train/**/*"))
    assert main([command, str(profile)]) == 2
    text = capsys.readouterr().err
    assert where in text
    assert remedy in text
    assert "Traceback" not in text
    assert len(text.splitlines()) < 20
    assert set(study.store.root.glob("train/**/*")) == before


def test_a_right_file_is_checked_and_priced(
    profile: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", str(profile), "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["runs"] == 4
    assert plan["seconds"] >= 0
    assert {"flop", "memory_bytes", "disk_bytes", "workers"} <= set(plan)
    assert main(["check", str(profile)]) == 0
    assert "runs     4" in capsys.readouterr().out


def test_runs_that_follow_from_others_are_priced_by_stand_ins(
    profile: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Decay 1 is the middle of the scan; the grid's seed is the first of the comparison's."""
    asked = {"model": "small", "decays": [0.1, 1, 10], "sizes": [32], "compare": [32], "seeds": 2}
    asked |= {"law_models": ["large"], "law_sizes": [32, 160]}
    with profile.open("a") as file:
        file.write("\n".join(lines({"weight_decay": asked}, 0)) + "\nallocation: {}\n")
    swap("seed: 1\n", "seed: 77\n")(profile)  # no run of this seed is stored
    assert main(["check", str(profile), "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    found = plan["experiments"]
    assert list(found) == ["grid", "weight_decay", "allocation (later)", "weight_decay (later)"]
    counts = {name: (line["runs"], line["shared"]) for name, line in found.items()}
    assert counts["weight_decay"] == (4, 1)  # without decay it is the grid's cell
    assert counts["allocation (later)"] == (6, 0)
    assert counts["weight_decay (later)"] == (8, 4)  # one of the scan, three of the grid
    assert (plan["runs"], plan["runs_later"]) == (4 + 3, 6 + 4)
    assert min(line["training"] for line in found.values()) > 0
    assert plan["flop"] == pytest.approx(sum(line["flop"] for line in found.values()))
    assert main(["check", str(profile)]) == 0
    text = capsys.readouterr().out
    assert "; about 10 more follow from them (later), estimated below" in text
    assert "weight_decay (later)" in text


@pytest.mark.parametrize("text", ["1e-5", "1E-5", "0.00001", "1.0e-5"])
def test_a_rate_in_exponent_notation_is_a_number(profile: Path, text: str) -> None:
    swap("lr: 0.002", f"lr: {text}")(profile)
    assert Study(profile).profile.models["small"].lr == 1e-5


def test_an_unknown_profile_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "smok"]) == 2
    assert "did you mean `smoke`?" in capsys.readouterr().err


def test_help_does_not_import_torch() -> None:
    code = "import sys; from repro.app.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
    code += (
        "assert not {'torch', 'transformers', 'pandas', 'scipy'} & set(sys.modules), sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "reproduce" in done.stdout
