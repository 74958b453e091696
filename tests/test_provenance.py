"""Where a result comes from: what is recorded of it, and what makes another key."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import repro
from repro.app.study import Study
from repro.measure.ranking import RankingSpec
from repro.params import Params
from repro.provenance import PACKAGES, provenance
from repro.store import Store
from repro.train.labels.kinds import LabelSpec
from repro.train.loop import RunSpec

DIGEST = re.compile("[0-9a-f]{20}|[0-9a-f]{64}")


@pytest.fixture(scope="module")
def made(study: Study) -> dict[str, list[dict]]:
    """The provenance of every result of a study, by kind."""
    assert study.sweep() == {}
    found: dict[str, list[dict]] = {}
    for path in study.store.root.glob("*/*/provenance.json"):
        found.setdefault(path.parents[1].name, []).append(json.loads(path.read_text()))
    return found


def test_each_result_tells_what_made_it(made: dict[str, list[dict]]) -> None:
    assert set(made) == {"collection", "splits", "tokens", "train", "measure"}
    for record in (record for records in made.values() for record in records):
        assert record["commit"] is None or re.fullmatch("[0-9a-f]{40}", record["commit"])
        assert record["dirty"] == (record["dirty_digest"] is not None)
        assert re.fullmatch("[0-9a-f]{64}", record["code"])
        assert set(record["packages"]) == set(PACKAGES)
        assert record["packages"]["torch"]
        assert record["device"] == "cpu"
        assert record["processor"]
        assert record["threads"] == 1
        assert record["cores"] == os.cpu_count()
        assert record["seconds"] >= 0


def test_each_result_names_seeds_and_the_digests_of_what_it_was_made_from(
    study: Study, made: dict[str, list[dict]]
) -> None:
    """A digest in the record of one result is that of another, or of the models given."""
    assert all(record["seeds"] == {"seed": 3} for record in made["splits"])
    assert all(record["seeds"] == {"seed": 1} for record in made["train"])
    for record in made["train"]:
        assert set(record["made_from"]) == {"weights", "tokens", "splits", "validation"}
        assert record["made_from"]["splits"] == study.dataset.splits.digest
        assert record["made_from"]["validation"] == study.dataset.evaluation("validation").digest
        assert record["inputs"]["dataset"]["name"] == "tiny"
        assert "D=" in record["label"]
    trained = set(study.store.keys("train"))
    assert {record["made_from"]["run"] for record in made["measure"]} == trained
    collections = set(study.store.keys("collection"))
    assert {record["made_from"]["collection"] for record in made["splits"]} == collections


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A git checkout of a package that holds the module under test."""
    package = tmp_path / "code" / "repro"
    package.mkdir(parents=True)
    for name in ("provenance.py", "__init__.py"):
        (package / name).write_text((Path(repro.__file__).parent / name).read_text())
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    for command in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "x"]):
        subprocess.run(["git", *command], cwd=tmp_path / "code", check=True)
    return package


def told(package: Path) -> dict:
    """What a fresh process over that package says of its surroundings."""
    code = (
        "import json; from repro.provenance import surroundings; print(json.dumps(surroundings()))"
    )
    env = {**os.environ, "PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def test_changed_code_is_told_from_the_commit(checkout: Path) -> None:
    clean = told(checkout)
    assert clean["commit"]
    assert (clean["dirty"], clean["dirty_digest"]) == (False, None)
    seen = {clean["code"]}
    digests = set()
    for change in ("x = 1\n", "x = 2\n"):
        (checkout / "__init__.py").write_text(change)
        found = told(checkout)
        assert (found["commit"], found["dirty"]) == (clean["commit"], True)
        digests.add(found["dirty_digest"])
        seen.add(found["code"])
    assert len(digests) == 2
    assert None not in digests
    (checkout / "new.py").write_text("y = 1\n")  # a file that git does not know
    seen.add(told(checkout)["code"])
    assert len(seen) == 4
    subprocess.run(["rm", "-rf", str(checkout.parent / ".git")], check=True)
    bare = told(checkout)
    assert (bare["commit"], bare["dirty_digest"]) == (None, None)
    assert bare["code"] in seen


def test_a_failing_git_is_no_failure(monkeypatch: pytest.MonkeyPatch, checkout: Path) -> None:
    monkeypatch.setenv("PATH", str(checkout))
    assert told(checkout)["commit"] is None


def test_seeds_and_digests_are_found_at_any_depth_and_nothing_else() -> None:
    spec = {
        "seed": 0, "subset_seed": None, "deep": {"dropout_seed": 5, "of": {"tokens": "a" * 64}},
        "run": "0" * 20, "name": "deadbeef", "seedling": 1, "list": ["a" * 64],
    }  # fmt: skip
    found = provenance(0.0, spec)
    assert found["seeds"] == {"seed": 0, "deep.dropout_seed": 5}
    assert found["made_from"] == {"deep.of.tokens": "a" * 64, "run": "0" * 20}
    assert provenance(0.0)["seeds"] == {}


def keys(study: Study) -> set[tuple[str, str]]:
    return set(study.tasks())


def changed(study_file: Path, tmp_path: Path, change, *, comments: bool = False) -> Path:
    """A copy of a profile, one key a line, changed."""
    profile = json.loads(study_file.read_text())
    change(profile)
    lines = [f"{key}: {json.dumps(value)}" for key, value in profile.items()]
    if comments:
        lines = ["# my own words", "", *(f"{line}  # on {line[:4]}" for line in lines), "", ""]
    path = tmp_path / "changed.yaml"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(
    "change",
    [
        lambda profile: None,
        lambda profile: profile.update(description="other words", execute={"workers": 2}),
        lambda profile: profile.update(ranking={"depth": 100}, lr_reference=2.0e-03),
    ],
    ids=["comments and empty lines", "words and workers", "a default written out"],
)
def test_what_does_not_change_a_number_changes_no_key(
    study: Study, study_file: Path, tmp_path: Path, change
) -> None:
    path = changed(study_file, tmp_path, change, comments=True)
    assert path.read_text() != study_file.read_text()
    assert keys(Study(path)) == keys(study)


@pytest.mark.parametrize(
    ("change", "kinds"),
    [
        (lambda profile: profile.update(seed=2), {"train", "measure"}),
        (lambda profile: profile.update(ranking={"depth": 200}), {"measure"}),
        (lambda profile: profile["train"].update(batch_pairs=8), {"train", "measure"}),
    ],
    ids=["seed", "depth", "batch"],
)
def test_what_changes_a_number_changes_the_keys_that_rest_on_it(
    study: Study, study_file: Path, tmp_path: Path, change, kinds: set[str]
) -> None:
    path = changed(study_file, tmp_path, change)
    new = keys(Study(path)) - keys(study)
    assert {kind for kind, _ in new} == kinds
    assert len(new) == 4 * len(kinds)


def other(value: object) -> object:
    """Another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return type(value)(value * 2 + 1)
    return f"{value}x"


@pytest.mark.parametrize("model", [RunSpec, RankingSpec, LabelSpec])
def test_a_changed_default_makes_a_different_key(model: type[Params], study: Study) -> None:
    """What a spec does not say is written out with its default: change that, and the key differs.

    For each leaf of a whole spec: any other value is another key, so no default can change unseen.
    """
    run = study.planned()[0]
    specs = {
        RunSpec: ("train", run.train.spec),
        RankingSpec: ("measure", run.ranking.spec if run.ranking else {}),
        LabelSpec: ("labels", LabelSpec.model_validate(
            {"collection": "c", "splits": "s", "kind": {"kind": "ict"}, "sizes": [1], "seed": 1}
        ).determined()),
    }  # fmt: skip
    kind, spec = specs[model]
    store = Store(Path("unused"))
    leaves = [path for path in paths(spec) if value_at(spec, path) is not None]
    found = {store.key(kind, spec)}
    for path in leaves:
        changed = json.loads(json.dumps(spec))
        value_at(changed, path[:-1])[path[-1]] = other(value_at(spec, path))
        found.add(store.key(kind, changed))
    assert len(found) == 1 + len(leaves)
    declared = {
        name
        for name, field in model.model_fields.items()
        # one that is left out at its default stands for what was there before it was a choice
        if not field.is_required() and field.exclude_if is None
    }
    assert declared <= set(spec), "a default that is not written into the spec is not in the key"


def paths(value: object, start: tuple = ()) -> list[tuple]:
    if isinstance(value, dict):
        return [path for key, each in value.items() for path in paths(each, (*start, key))]
    return [start]


def value_at(value, path: tuple):
    for key in path:
        value = value[key]
    return value
