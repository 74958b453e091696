"""`repro check` of the papers' profiles: without network, without data, without weights."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tiny
from repro.app import forecast
from repro.app.check import as_text, estimate
from repro.app.cli import main
from repro.app.named import files
from repro.app.study import Study
from repro.errors import UserError
from repro.experiments.doors import DECLARED
from repro.places import ROOT
from repro.work.devices import DEVICES

# Profile -> experiment -> runs, those shared with an experiment above, counted by hand:
# paper: 5 x 7 cells and 2 x 5 seeds; 5 rates x 7; 4 sizes x (none and 10 decays), and 10 the other way
COUNTS = {
    "paper": {
        "grid": (45, 0),
        "lr_study": (35, 7),
        "weight_decay": (84, 4),
        "allocation (later)": (6, 0),
        "weight_decay (later)": (52, 27),
    },
    "sigir24": {"grid": (144, 0), "labels": (5, 5), "labels (later)": (15, 0)},
    "t2ranking": {"grid": (40, 0)},
    "transfer": {"grid": (9, 0), "transfer": (405, 9)},
    "paper+own-negatives": {"grid": (7, 0)},
}


@pytest.fixture(autouse=True)
def _no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setenv("REPRO_HOME", str(tmp_path))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    for name in ("connect", "connect_ex", "sendto"):
        monkeypatch.setattr(socket.socket, name, refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def opened(name: str) -> Study:
    return Study(*files(name), doors=DECLARED)


@pytest.fixture(scope="module")
def plans() -> Callable[[str], dict[str, Any]]:
    known: dict[str, dict[str, Any]] = {}

    def plan(name: str) -> dict[str, Any]:
        if name not in known:
            known[name] = estimate(opened(name))
        return known[name]

    return plan


@pytest.mark.slow
@pytest.mark.parametrize("name", COUNTS)
def test_the_runs_of_each_experiment(name: str, plans: Callable[[str], dict[str, Any]]) -> None:
    found = plans(name)["experiments"]
    assert {key: (line["runs"], line["shared"]) for key, line in found.items()} == COUNTS[name]
    assert all(line["stored"] == 0 for line in found.values())


@pytest.mark.parametrize("name", COUNTS)
def test_what_is_printed(name: str, plans: Callable[[str], dict[str, Any]]) -> None:
    plan = plans(name)
    text = as_text(plan)
    json.dumps(plan)
    assert plan["device"]["name"] == "a100"
    assert plan["device"]["hours"] > 0.1
    assert sum(plan["device"]["experiments"].values()) == pytest.approx(plan["device"]["hours"])
    for said in (
        "assumed",
        "datasheet",
        "passes over the pairs",
        "hours of one a100",
        "not on this",
    ):
        assert said in text
    steps = {key: line["steps"] for key, line in plan["experiments"].items()}
    assert steps["grid"] > 1000
    assert f"{steps['grid']:,.0f}" in text
    assert 1e9 < plan["memory"]["training"] < DEVICES["a100"].memory
    assert 1e8 < plan["memory"]["ranking"] < plan["memory"]["training"]
    assert plan["disk_bytes"] > 1e9


def test_downloads_are_told_with_sizes(plans: Callable[[str], dict[str, Any]]) -> None:
    found = {each["name"]: each for each in plans("paper")["downloads"]}
    assert {name for name, each in found.items() if each["kind"] == "dataset"} == {
        "msmarco", "nq", "hotpotqa", "fiqa",
    }  # fmt: skip
    assert found["google/bert_uncased_L-12_H-768_A-12"]["bytes"] == 4 * 109_482_240  # FACTS E1
    assert sum(each["kind"] == "model" for each in found.values()) == 5
    writers = {each["name"]: each["bytes"] for each in plans("sigir24")["downloads"]}
    assert writers["castorini/doc2query-t5-base-msmarco"] == 4 * 222_903_552
    assert all(writers.values())
    transfer = plans("transfer")
    assert len(transfer["downloads"]) == 15 + 3  # the grid's model is the last checkpoint
    assert transfer["disk"]["models"] == 15 * 2 * 4 * 109_482_240  # downloaded and converted


def test_every_model_of_the_profiles_has_the_size_the_facts_state() -> None:
    """Encoder parameters: FACTS E1 and E3."""
    want = {
        "paper": [396_544, 3_159_040, 12_609_536, 25_219_072, 85_054_464],
        "t2ranking": [4_688_736, 7_097_856, 10_646_784, 42_527_232, 85_054_464],
    }
    for name, sizes in want.items():
        runs = opened(name).runs
        assert [runs.size(m.weights).encoder for m in runs.profile.models.values()] == sizes
    runs = opened("sigir24").runs
    found = {key: runs.size(model.weights) for key, model in runs.profile.models.items()}
    assert len(found) == 24
    for key, size in found.items():
        layers, width = (int(part) for part in key.split("x"))
        assert size.encoder == layers * (12 * width**2 + 13 * width)


def test_the_flop_of_a_base_run_are_6nd_and_a_little_attention() -> None:
    """6 N tokens, and attention: 12 x layers x width x length^2, a few percent at this width."""
    runs = opened("paper").runs
    run = runs.trained("base", pairs=320_000, ranked=False)
    text = runs.text_cost(run.train.inputs["weights"])
    steps = 1.7 * 2.5 * 320_000 / 128
    tokens = steps * (128 * text.query_tokens + (128 + 256) * text.passage_tokens)
    assert run.train.flop / (6 * 85_054_464 * tokens) == pytest.approx(1.03, abs=0.025)


def test_a_draw_for_each_query_costs_about_a_hundred_times_a_shared_one() -> None:
    """128 x 256 passages a query's step against 256: 85 times the passages, positives counted."""
    shared, own = (opened(name).runs for name in ("paper", "paper+own-negatives"))
    flop = [each.trained("tiny", pairs=5000, ranked=False).train.flop for each in (shared, own)]
    assert 60 < flop[1] / flop[0] < 100


def test_a_lower_rate_takes_its_steps_in_proportion() -> None:
    runs = opened("paper").runs
    usual, slow = (
        runs.trained("medium", pairs=20_000, lr=lr, ranked=False).train.flop
        for lr in (None, 1.25e-6)
    )
    assert slow / usual == pytest.approx(8, rel=1e-3)


def changed(tmp_path: Path, text: str, profile: str = "paper") -> str:
    (tmp_path / "change.yaml").write_text(text, encoding="utf-8")
    return f"{profile}+{tmp_path / 'change.yaml'}"


def test_more_pairs_than_the_data_has_are_refused(tmp_path: Path) -> None:
    name = changed(tmp_path, "grid:\n  sizes: [5000, 600000]\n")
    with pytest.raises(UserError, match="600,000 pairs, but msmarco has 509,751") as fault:
        estimate(opened(name))
    assert fault.value.where == f"{tmp_path / 'change.yaml'}:2"


def test_more_negatives_than_the_pool_has_are_refused(tmp_path: Path) -> None:
    text = "dataset: fiqa\ntrain:\n  negatives: {count: 100000}\n"
    with pytest.raises(UserError, match=r"100,000 negatives, but there are 51,874 passages"):
        estimate(opened(changed(tmp_path, text, "transfer")))


@pytest.mark.parametrize(
    ("text", "what", "key"),
    [
        ("train:\n  step_tokens: 1000000\n  batch_pairs: 512\n", "training", "step_tokens"),
        ("# two lines\ntexts: {chunk_tokens: 1000000}\n", "ranking", "chunk_tokens"),
    ],
)
def test_what_a_device_cannot_hold_is_refused_with_its_remedy(
    text: str, what: str, key: str, tmp_path: Path
) -> None:
    study = opened(changed(tmp_path, text))
    base = study.runs.trained("base", pairs=5000)
    with pytest.raises(
        UserError, match=rf"{what} needs about \d+ GB at its peak; l4 has 24"
    ) as fault:
        forecast.memory(study, [base], DEVICES["l4"])
    assert key in fault.value.remedy
    assert fault.value.where == f"{tmp_path / 'change.yaml'}:2"
    plain = opened("paper")
    run = plain.runs.trained("base", pairs=5000)
    assert max(forecast.memory(plain, [run], DEVICES["l4"]).values()) < 24e9


def test_the_command_names_device_and_faults(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["check", str(ROOT / "params" / "t2ranking.yaml"), "--device", "h100"]) == 0
    said = capsys.readouterr().out
    assert "hours of one h100" in said
    assert "USD" not in said  # no source of ours states its price
    hour = ["--device", "h100", "--usd-per-hour", "2"]
    assert main(["check", str(ROOT / "params" / "t2ranking.yaml"), *hour]) == 0
    said = capsys.readouterr().out
    hours, usd = re.search(r"about ([\d.]+) hours", said), re.search(r"([\d.]+) USD, at 2", said)
    assert hours
    assert usd
    assert float(usd[1]) == pytest.approx(2 * float(hours[1]), abs=0.11)
    assert main(["check", "t2ranking", "--usd-per-hour", "2"]) == 2
    assert "--device NAME" in capsys.readouterr().err
    assert main(["check", "t2ranking", "--device", "h10"]) == 2
    assert "did you mean `h100`" in capsys.readouterr().err
    assert main(["check", "t2ranking", "--calibrate"]) == 2
    assert "not on this machine" in capsys.readouterr().err
    assert not (tmp_path / "runs" / "collection").exists()  # nothing was made


def test_data_that_says_too_little_of_itself_is_refused(tmp_path: Path) -> None:
    text = (ROOT / "params" / "datasets" / "fiqa.yaml").read_text(encoding="utf-8")
    (tmp_path / "some.yaml").write_text(text.partition("declared:")[0], encoding="utf-8")
    with pytest.raises(UserError, match="does not say how large it is"):
        estimate(opened(f"transfer:{tmp_path / 'some.yaml'}"))


def test_models_that_are_not_here_are_planned_on_data_that_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`team` on one's own files before any model was downloaded: lengths come from the words."""
    (tmp_path / "own").mkdir()
    file = tiny.write_study(tmp_path / "own").with_name("tiny.yaml")
    overlay = tmp_path / "own.yaml"
    overlay.write_text(
        "train: {batch_pairs: 8, negatives: {count: 8}}\ngrid: {sizes: [16, 32]}\nlr_study: null\n"
    )
    found = estimate(opened(f"team+{overlay}:{file}"))
    assert found["runs"] > 0
    assert found["flop"] > 0
    cut = found["texts_cut"]
    assert {name: each["tokens"] for name, each in cut.items()} == {"queries": 32, "passages": 128}
    assert "of the passages after 128 tokens" in as_text(found)


def test_what_is_cut_is_not_told_of_data_that_is_elsewhere(
    plans: Callable[[str], dict[str, Any]],
) -> None:
    assert plans("t2ranking")["texts_cut"] is None
    assert "of the passages after" not in as_text(plans("t2ranking"))
