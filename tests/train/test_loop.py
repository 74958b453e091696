"""A run: it learns, it is the same every time, it goes on where it was stopped, it survives NaN.

Also pins that step_tokens (gradient caching) changes memory and not the numbers beyond rounding.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from repro.app.study import Study
from repro.experiments.runs import Trained
from repro.store import Spoilt
from repro.train import loop
from repro.train.pause import Pause, Paused, Wish
from repro.work.makers import Makers
from repro.work.queue import Task


def made(makers: Makers, task: Task, folder: Path) -> pd.DataFrame:
    folder.mkdir(exist_ok=True)
    makers.make(task, folder, lambda flop, note: None)
    return pd.read_parquet(folder / "curve.parquet")


def changed(task: Task, **changes: Any) -> Task:
    return Task(task.kind, {**task.spec, **changes}, task.label, task.flop, task.inputs)


NUMBERS = ["step", "lr_steps", "loss", "se", "train_loss", "tokens", "flop"]


def test_it_learns_and_writes_what_it_promises(
    makers: Makers, cell: Trained, tmp_path: Path
) -> None:
    curve = made(makers, cell.train, tmp_path / "run")
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["mael"] == curve["loss"].min() < summary["zero_shot"]
    assert summary["state"] in ("turned", "plateau", "censored")
    best = np.load(tmp_path / "run" / "validation.npy")
    assert best.mean() == pytest.approx(summary["mael"], abs=1e-12)
    files = {path.name for path in (tmp_path / "run").iterdir()}
    assert files == {"best.safetensors", "curve.parquet", "validation.npy", "summary.json"}
    at_best = curve.loc[curve["loss"].idxmin()]
    assert abs(np.log(summary["lr_steps"] / at_best["lr_steps"])) < 0.6


def test_the_same_run_twice_is_the_same_bit_for_bit(
    makers: Makers, cell: Trained, tmp_path: Path
) -> None:
    first, second = (made(makers, cell.train, tmp_path / name) for name in ("a", "b"))
    pd.testing.assert_frame_equal(first[NUMBERS], second[NUMBERS], check_exact=True)
    weights = [(tmp_path / name / "best.safetensors").read_bytes() for name in ("a", "b")]
    assert weights[0] == weights[1]
    other = made(makers, changed(cell.train, seed=2), tmp_path / "c")
    assert not other["loss"].equals(first["loss"])


@pytest.mark.parametrize("stops", [[3], [1, 2, 8]])
def test_a_stopped_run_ends_with_the_same_numbers(
    makers: Makers, cell: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stops: list[int]
) -> None:
    whole = made(makers, cell.train, tmp_path / "whole")
    assert len(whole) > 8
    step, pieces = loop.Trainer.step, tmp_path / "pieces"
    for stop in stops:

        def fail(trainer: loop.Trainer, stop: int = stop) -> torch.Tensor:
            if trainer.done >= stop:
                raise KeyboardInterrupt
            return step(trainer)

        monkeypatch.setattr(loop.Trainer, "step", fail)
        with pytest.raises(KeyboardInterrupt):
            made(makers, cell.train, pieces)
        assert (pieces / "last.safetensors").exists() == (stop >= whole["step"].iloc[0])
    monkeypatch.setattr(loop.Trainer, "step", step)
    resumed = made(makers, cell.train, pieces)
    pd.testing.assert_frame_equal(whole[NUMBERS], resumed[NUMBERS], check_exact=True)
    for name in ("best.safetensors", "validation.npy"):
        assert (tmp_path / "whole" / name).read_bytes() == (pieces / name).read_bytes()


@pytest.mark.parametrize("stops", [[1], [1, 14], [11, 12, 23], [20, 21]])
@pytest.mark.parametrize("wish", ["stop", "keep"])
def test_asked_to_stop_between_readings_it_loses_no_step(
    study: Study,
    cell: Trained,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    stops: list[int],
    wish: Wish,
) -> None:
    """A wish (of a time limit, of preemption) in any step: no step is taken twice, no number changes."""
    makers = Makers(study.store, "cpu")
    whole = made(makers, cell.train, tmp_path / "whole")
    assert set(stops) - set(whole["step"])  # some lie between readings
    step, taken, pieces = loop.Trainer.step, [], tmp_path / "pieces"

    def asking(trainer: loop.Trainer) -> torch.Tensor:
        taken.append(trainer.done)
        if trainer.done + 1 in stops and taken.count(trainer.done) == 1:
            makers.pause.ask(wish)
        elif wish == "keep" and trainer.done in stops and taken.count(trainer.done) == 1:
            raise KeyboardInterrupt  # killed after its state was kept
        return step(trainer)

    monkeypatch.setattr(loop.Trainer, "step", asking)
    for _ in stops if wish == "stop" else [s for s in stops if s + 1 not in stops]:
        with pytest.raises(Paused if wish == "stop" else KeyboardInterrupt):
            made(makers, cell.train, pieces)
        assert (pieces / "last.safetensors").exists()
    resumed = made(makers, cell.train, pieces)
    if wish == "stop":
        assert taken == list(range(len(taken)))
    pd.testing.assert_frame_equal(whole[NUMBERS], resumed[NUMBERS], check_exact=True)
    for name in ("best.safetensors", "validation.npy"):
        assert (tmp_path / "whole" / name).read_bytes() == (pieces / name).read_bytes()


def test_work_that_does_not_listen_is_stopped_where_it_is() -> None:
    pause = Pause()
    pause.ask("keep")  # nothing to keep
    with pytest.raises(Paused):
        pause.ask("stop")
    pause.listens = True
    pause.ask("stop")
    pause.ask("keep")  # comes later and does not undo it
    with pytest.raises(Paused):
        pause.heed()
    pause.heed()
    assert not issubclass(Paused, Exception)


def flipped(data: bytes, place: int) -> bytes:
    return data[:place] + bytes([data[place] ^ 4]) + data[place + 1 :]


HARM = {
    "rubbish": ("last.safetensors", lambda data: b"\x10rubbish"),
    "emptied": ("last.safetensors", lambda data: b""),
    "cut short": ("last.safetensors", lambda data: data[:-100]),
    "a bit of a weight": ("last.safetensors", lambda data: flipped(data, len(data) - 50)),
    "a digit of the record": (
        "last.safetensors", lambda data: flipped(data, data.index(b"tokens") + 10)
    ),
    "a bit of the best weights": ("best.safetensors", lambda data: flipped(data, len(data) - 50)),
    "the best weights gone": ("best.safetensors", None),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("harm", "lowest"),
    [
        *((harm, "the last") for harm in HARM),
        *((harm, "an earlier") for harm in HARM if HARM[harm][0].startswith("best")),
    ],
)
def test_a_damaged_resume_state_is_set_aside_and_no_number_is_another(
    study: Study, cell: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harm: str,
    lowest: str, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """Killed where the reading is the lowest so far, or where an earlier one is; then harmed."""
    makers = Makers(study.store, "cpu")
    validate, folder = loop.Trainer.validate, tmp_path / ".work" / "run"
    folder.parent.mkdir()

    def steered(trainer: loop.Trainer) -> np.ndarray:
        if lowest == "the last":
            return validate(trainer) - 0.1 * trainer.done
        return validate(trainer) + (trainer.done >= 6)

    monkeypatch.setattr(loop.Trainer, "validate", steered)
    short = {**cell.train.spec["curve"], "max_steps": 14}
    task = changed(cell.train, curve=short)
    whole = made(makers, task, tmp_path / "whole")
    step = loop.Trainer.step

    def stop(trainer: loop.Trainer) -> torch.Tensor:
        if trainer.done >= 9:
            raise KeyboardInterrupt
        return step(trainer)

    monkeypatch.setattr(loop.Trainer, "step", stop)
    with pytest.raises(KeyboardInterrupt):
        made(makers, task, folder)
    monkeypatch.setattr(loop.Trainer, "step", step)
    name, change = HARM[harm]
    data = (folder / name).read_bytes()
    (folder / name).write_bytes(change(data)) if change else (folder / name).unlink()
    again = made(makers, task, folder)
    pd.testing.assert_frame_equal(whole[NUMBERS], again[NUMBERS], check_exact=True)
    for file in ("best.safetensors", "validation.npy"):
        assert (tmp_path / "whole" / file).read_bytes() == (folder / file).read_bytes()
    aside = list((tmp_path / ".aside").glob("run.*.last.safetensors"))
    said = capsys.readouterr().out
    if name.startswith("best") and lowest == "the last":  # written again from the resume state
        assert (aside, said) == ([], "")
    else:
        assert len(aside) == 1
        assert f"moved to {aside[0]}, and the run begins again" in said


def test_best_weights_that_are_damaged_while_the_run_goes_on_are_not_published(
    makers: Makers, cell: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save, folder = loop.save, tmp_path / "run"

    def harming(encoder: Any, path: Path) -> None:
        save(encoder, path)
        path.write_bytes(flipped(path.read_bytes(), 5000))

    monkeypatch.setattr(loop, "save", harming)
    with pytest.raises(Spoilt, match="was changed on disk"):
        made(makers, cell.train, folder)
    assert not (folder / "last.safetensors").exists()  # it begins again, and not from here


def test_gradient_caching_changes_nothing_but_rounding(
    makers: Makers, cell: Trained, tmp_path: Path
) -> None:
    train = cell.train.spec["train"]
    plain = made(makers, cell.train, tmp_path / "plain")
    cached = made(
        makers, changed(cell.train, train={**train, "step_tokens": 64}), tmp_path / "cached"
    )
    summary = json.loads((tmp_path / "cached" / "summary.json").read_text())
    assert summary["gradient_caching"] is True
    np.testing.assert_allclose(plain["loss"][:4], cached["loss"][:4], rtol=2e-5)


def test_not_a_number_ends_the_run_as_diverged(
    makers: Makers, cell: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = loop.Trainer.step

    def poisoned(trainer: loop.Trainer) -> torch.Tensor:
        loss = step(trainer)
        if trainer.done == 6:
            with torch.no_grad():
                trainer.encoder.projection.weight.fill_(float("nan"))
        return loss

    monkeypatch.setattr(loop.Trainer, "step", poisoned)
    curve = made(makers, cell.train, tmp_path / "run")
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["state"] == "diverged"
    assert summary["mael"] == np.nanmin(curve["loss"])
    assert curve["step"].iloc[-1] <= 8
    assert np.isfinite(np.load(tmp_path / "run" / "validation.npy")).all()


@pytest.mark.parametrize(("decayed", "least"), [("matrices", 2), ("all", 1)])
def test_weight_decay_touches_what_it_should(
    makers: Makers, cell: Trained, decayed: str, least: int
) -> None:
    train = {**cell.train.spec["train"], "weight_decay": 0.5, "decayed": decayed}
    spec = loop.RunSpec.model_validate({**cell.train.spec, "train": train})
    encoder, _, _ = makers.parts(spec, cell.train.inputs)
    shrunk, kept = loop.optimizer(encoder, spec).param_groups
    assert shrunk["weight_decay"] == 0.5
    assert kept["weight_decay"] == 0.0
    assert all(p.ndim >= least for p in shrunk["params"])
    assert all(p.ndim < least for p in kept["params"])
    assert any(p is encoder.log_scale for p in kept["params"])  # the temperature never
    n_trained = sum(p.requires_grad for p in encoder.parameters())
    assert len(shrunk["params"]) + len(kept["params"]) == n_trained


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"lr": 5.0, "train": {"weight_decay": 0.2}}, "turn the weights over"),
        ({"pairs": 8}, "larger than"),
    ],
)
def test_impossible_runs_are_refused(cell: Trained, changes: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        loop.RunSpec.model_validate({**cell.train.spec, **changes})


def test_rates_warm_up_in_a_line_and_stay(cell: Trained) -> None:
    train = cell.spec.train.model_copy(update={"warmup_steps": 4})
    spec = cell.spec.model_copy(update={"train": train, "lr": 0.4})
    assert spec.rates(6).tolist() == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.4, 0.4])
    assert spec.rates(2).tolist() == pytest.approx([0.1, 0.2])  # as the first two of any number
    still = spec.model_copy(update={"train": train.model_copy(update={"warmup_steps": 0})})
    assert still.rates(3).tolist() == pytest.approx([0.4, 0.4, 0.4])
