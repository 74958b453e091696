"""Why a result exists: told from plans, its own record, and the results that name it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from repro import store as stores
from repro.errors import UserError
from repro.files import write_json
from repro.store import Store
from repro.work.explain import as_text, explain, resolve
from repro.work.plans import Asked
from stored import add, plan_of

CONTENT = "ab" * 32  # digest of the splits' content


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Splits, a run that stands on them, and a ranking of the run."""
    found = Store(tmp_path / "runs")
    found.get_or_make(
        "splits", {"seed": 3}, lambda f: write_json(f / "splits.json", {"digest": CONTENT})
    )
    run = add(found, "train", {"seed": 1, "splits": CONTENT, "lr": 0.001})
    add(found, "measure", {"run": run})
    return found


def test_who_asks_what_it_rests_on_and_who_uses_it(store: Store) -> None:
    (splits,), (run,), (ranking,) = (store.keys(kind) for kind in ("splits", "train", "measure"))
    asked = Asked("small D=160", 10.0, ("grid", "lr_study"))
    plans = [
        plan_of("mini-apidocs", {("train", run): asked}, reads=(("splits", splits),)),
        plan_of("midi-apidocs", {("train", run): Asked("small D=160", 10.0, ("grid",))}),
        plan_of("other", {}),
    ]
    found = explain(store, ("train", run), plans)
    assert found["asked_by"] == {"mini-apidocs": ["grid", "lr_study"], "midi-apidocs": ["grid"]}
    assert found["rests_on"] == {"splits": f"{CONTENT[:12]} (splits/{splits})"}
    assert found["used_by"] == [f"measure/{ranking}"]
    assert found["seeds"] == found["made"]["seeds"] == {"seed": 1}
    text = as_text(found)
    for part in (
        f"train/{run}  small D=160", "finished, and its files match", "by mini-apidocs: grid, lr_study",
        "by 3 experiments of 2 studies", "lr = 0.001", "commit ", "seed 1", "not when",
    ):  # fmt: skip
        assert part in text
    assert "STALE" not in text
    data = explain(store, ("splits", splits), plans)
    assert data["asked_by"] == {"mini-apidocs": ["data"]}
    assert data["used_by"] == [f"train/{run}"]
    assert explain(store, ("measure", ranking), [])["rests_on"] == {"run": f"train/{run}"}
    json.dumps(found, allow_nan=False)


def test_an_old_result_version_is_stale(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    (run,) = store.keys("train")
    now = stores.VERSIONS["train"]
    monkeypatch.setitem(stores.VERSIONS, "train", now + 1)
    text = as_text(explain(store, ("train", run), []))
    assert f"STALE       it has result version {now}; this code makes {now + 1}" in text
    assert "by no study with a plan" in text


def test_the_state_is_told_before_it_is_there(store: Store) -> None:
    place = ("train", store.key("train", {"a": 1}))
    plans = [plan_of("s", {place: Asked("run a", 1.0, ("grid",))})]
    assert explain(store, place, plans)["state"] == "not made yet"
    (store.root / "train" / ".work" / f"{place[1]}.01234567").mkdir()
    assert explain(store, place, plans)["state"] == "interrupted, to be gone on with"
    with store.claim(*place):
        assert f"process {os.getpid()}" in explain(store, place, plans)["state"]
    failed = store.root / "train" / ".failed" / f"{place[1]}.json"
    failed.parent.mkdir()
    write_json(failed, {"error": "ValueError: no\nTraceback"})
    found = explain(store, place, plans)
    assert found["state"] == "failed: ValueError: no"
    assert "run a" in as_text(found)


def test_a_damaged_result_is_explained_too(store: Store) -> None:
    (run,) = store.keys("train")
    for name in ("spec.json", "provenance.json"):
        (store.path("train", run) / name).write_text("{")
        found = explain(store, ("train", run), [])
        assert found["state"].startswith("damaged: ")
        as_text(found)


def test_an_old_record_is_explained_by_its_spec(store: Store) -> None:
    """Results made before seeds, inputs and device were recorded."""
    (run,) = store.keys("train")
    path = store.path("train", run) / "provenance.json"
    kept = json.loads(path.read_text())
    for name in ("seeds", "made_from", "device", "processor", "code", "dirty_digest"):
        del kept[name]
    path.write_text(json.dumps(kept))
    found = explain(store, ("train", run), [])
    assert list(found["rests_on"]) == ["splits"]
    assert "device      not recorded" in as_text(found)
    assert "seeds       seed 1" in as_text(found)


def test_a_key_may_be_written_short(store: Store) -> None:
    (run,) = store.keys("train")
    planned = ("train", "f" * 20)
    plans = [plan_of("s", {planned: Asked("a", 1.0, ())})]
    for name in (run, f"train/{run}", run[:8], f"train/{run[:6]}"):
        assert resolve(store, name, plans) == ("train", run)
    assert resolve(store, "ffff", plans) == planned


@pytest.mark.parametrize("name", ["", "train/", "zz", "splits/zz", "../x", "tokens/"])
def test_an_unknown_key_is_refused(store: Store, name: str) -> None:
    with pytest.raises(UserError, match="no result"):
        resolve(store, name, [])


def test_a_beginning_of_several_keys_is_refused_with_them(store: Store) -> None:
    many = {("train", f"aa{index:018d}"): Asked("a", 1.0, ()) for index in range(6)}
    with pytest.raises(UserError, match=r"beginning of 6 keys: train/aa0.* \.\.\."):
        resolve(store, "aa", [plan_of("s", many)])
