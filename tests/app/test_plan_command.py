"""Pins: `repro plan` and `repro design` from a stored fit: figures by hand, warnings, refusals."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path

import numpy as np
import pytest

from repro.app import design, plan
from repro.errors import UserError
from repro.laws.fit import fit
from repro.laws.metric import metric_line
from repro.laws.planning import MOST_MODELS
from repro.laws.report import data
from repro.laws.table import Table

N = np.array([4e5, 3e6, 1.3e7, 2.5e7, 8.5e7])
D = 5e3 * 2.0 ** np.arange(7)


def call(command: str, *arguments: object) -> int:
    parser = argparse.ArgumentParser()
    subparsers = parser.add_subparsers()
    plan.add_parser(subparsers)
    design.add_parser(subparsers)
    args = parser.parse_args([command, *map(str, arguments)])
    return int(args.run(args))


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A product law with a metric, and a steps law beside it."""
    folder = tmp_path_factory.mktemp("fits")
    n, d = (v.ravel() for v in np.meshgrid(N, D, indexing="ij"))
    rng = np.random.default_rng(0)
    noise = np.exp(0.01 * rng.normal(size=35))
    table = Table(100 * n**-0.161 * d**-0.206 * noise, n, d)
    record = data(fit("product", table))
    record["metric"] = metric_line("mrr10", table.loss, 0.6 - 0.25 * table.loss).to_dict()
    (folder / "fit.json").write_text(json.dumps(record))
    steps = Table(300 * n**-0.5064 * d**0.9231 * noise, n, d)
    (folder / "steps.json").write_text(fit("steps", steps).to_json())
    floor = 100 * n**-0.161 * d**-0.206 * noise + 0.4
    (folder / "floor.json").write_text(fit("product_floor", Table(floor, n, d)).to_json())
    (folder / "single.json").write_text(fit("single_d", Table(table.loss[:7], d=D)).to_json())
    return folder


def test_target_loss_is_the_law_turned_round(
    stored: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("plan", stored / "fit.json", "--target-loss", 0.7) == 0
    said = capsys.readouterr().out
    fitted, _ = plan.load(stored / "fit.json")
    p = fitted.parameters
    needed = (p["c"] * 8.5e7 ** -p["alpha"] / 0.7) ** (1 / p["beta"])
    assert f"{needed:,.0f}" in said
    assert re.search(r"4e\+05 .*extrapolates", said)


def test_a_metric_target_goes_through_the_line(
    stored: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("plan", stored / "fit.json", "--target-metric", 0.35) == 0
    assert "mrr10 of 0.35 goes with a loss of 1.0000" in capsys.readouterr().out
    assert call("plan", stored / "fit.json", "--target-metric", 0.55) == 0
    assert "Outside the runs seen" in capsys.readouterr().out
    with pytest.raises(UserError, match="below 0"):
        call("plan", stored / "fit.json", "--target-metric", 0.7)
    with pytest.raises(UserError, match="--metric"):
        call("plan", stored / "floor.json", "--target-metric", 0.3)


def test_dollars_are_split_and_labels_capped(
    stored: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--usd", 50_000, "--max-pairs", 20_000, "--queries-per-day", 1e6)
    assert call("plan", stored / "fit.json", *options) == 0
    said = capsys.readouterr().out
    assert "What holds it: largest model, labels available" in said
    assert "labels 1.2e+04" in said
    assert "serving" in said
    assert call("plan", stored / "fit.json", "--usd", 600) == 0  # a thousand pairs at .6 USD
    said = capsys.readouterr().out
    assert re.search(r"\b1,000\b|\b999\b", said)
    assert "Assumed: 0.6 USD a pair; 3.93 USD an hour" in said


def test_flop_budgets_need_steps(stored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UserError, match="--steps"):
        call("plan", stored / "fit.json", "--flop", 1e16)
    assert call("plan", stored / "fit.json", "--flop", 1e16, "--steps", stored / "steps.json") == 0
    assert "largest model" in capsys.readouterr().out  # M14: no best middle
    assert call("plan", stored / "fit.json", "--flop", 1e16, "--epochs", 5) == 0
    with pytest.raises(UserError, match="not the steps law"):
        call("plan", stored / "fit.json", "--flop", 1e16, "--steps", stored / "fit.json")


def test_a_target_below_the_floor_is_never_reached(
    stored: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("plan", stored / "floor.json", "--target-loss", 0.2) == 0
    assert "never: the law stays above" in capsys.readouterr().out
    assert call("plan", stored / "fit.json", "--target-loss", 1e-30) == 0  # a law without a floor
    said = capsys.readouterr().out
    assert "more than 1e+15 pairs" in said
    assert "never" not in said


def test_at_names_what_larger_models_save(stored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("plan", stored / "fit.json", "--at", 4e5, 320_000) == 0
    said = capsys.readouterr().out
    assert "320,000 pairs: loss" in said
    assert "Weight decay" in said
    assert "320,000  (3.2e+05 to 3.2e+05)" in said  # its own loss: nothing about it is uncertain


def test_of_many_models_a_few_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    n, d = np.geomspace(1e5, 1e8, 40), np.geomspace(1e3, 1e5, 8)[np.arange(40) % 8]
    loss = 100 * n**-0.161 * d**-0.206 * np.exp(0.01 * np.random.default_rng(0).normal(size=40))
    (tmp_path / "fit.json").write_text(json.dumps(data(fit("product", Table(loss, n, d)))))
    assert call("plan", tmp_path / "fit.json", "--target-loss", 1) == 0
    said = capsys.readouterr().out
    assert f"Of its 40 model sizes {MOST_MODELS} are shown" in said
    assert len(re.findall(r" USD", said)) >= MOST_MODELS
    assert all(f"{size:,.4g} " in said for size in (1e5, 1e8))
    assert call("plan", tmp_path / "fit.json", "--target-loss", 1, "--models", "3e6") == 0
    assert "are shown" not in capsys.readouterr().out


def test_what_cannot_be_planned_is_refused(stored: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="model size and pairs"):
        call("plan", stored / "single.json", "--target-loss", 1)
    with pytest.raises(UserError, match="no such file"):
        call("plan", tmp_path / "none.json", "--target-loss", 1)
    (tmp_path / "text.json").write_text("hello")
    with pytest.raises(UserError, match="not a fit"):
        call("plan", tmp_path / "text.json", "--target-loss", 1)
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match="cannot be read"):
        call("plan", tmp_path / "binary.json", "--target-loss", 1)


@pytest.mark.parametrize(
    ("command", "options", "flag"),
    [
        ("plan", ("--usd", -5), "--usd -5"),
        ("plan", ("--usd", "inf"), "--usd inf"),
        ("plan", ("--usd", 500, "--query-tokens", -9), "--query-tokens -9"),
        ("plan", ("--usd", 500, "--models", "nan"), "--models nan"),
        ("plan", ("--usd", 500, "--draws", 1), "--draws 1"),
        ("plan", ("--usd", 500, "--utilisation", 3), "--utilisation 3"),
        ("design", ("--flop-cap", "inf"), "--flop-cap inf"),
        ("design", ("--flop-cap", 1e17, "--query-tokens", -9), "--query-tokens -9"),
        ("design", ("--flop-cap", 1e17, "--runs", 0), "--runs 0"),
        ("design", ("--flop-cap", 1e17, "--batch", 0), "--batch 0"),
        ("design", ("--flop-cap", 1e17, "--models", "nan"), "--models nan"),
    ],
)
def test_numbers_out_of_range_name_their_option(
    stored: Path, command: str, options: tuple[object, ...], flag: str
) -> None:
    with pytest.raises(UserError, match=f"{flag} is out of range"):
        call(command, stored / "fit.json", *options)


@pytest.mark.parametrize(
    ("keys", "value", "message"),
    [
        (("internal", "theta"), [float("nan")] * 3, "not numbers"),
        (("internal", "theta"), [1.0], "its parameters are not"),
        (("cost",), float("inf"), "not numbers"),
        (("table", "loss"), [float("nan")] * 35, "'loss'"),
        (("metric", "slope"), float("nan"), "metric of this fit"),
        (("metric", "slop"), 1.0, "metric of this fit"),
    ],
)
def test_a_damaged_fit_is_refused(
    stored: Path, tmp_path: Path, keys: tuple[str, ...], value: object, message: str
) -> None:
    record = json.loads((stored / "fit.json").read_text())
    place = record
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    (tmp_path / "fit.json").write_text(json.dumps(record))
    with pytest.raises(UserError, match=message):
        call("plan", tmp_path / "fit.json", "--target-metric", 0.35)


def test_the_best_cell_says_that_it_extrapolates(
    stored: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("plan", stored / "fit.json", "--usd", 5e6) == 0
    assert re.search(r"Best between these sizes: .*extrapolates", capsys.readouterr().out)


def test_design_names_runs_within_the_cap(stored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("design", stored / "fit.json", "--flop-cap", 1e17, "--epochs", 10) == 0
    said = capsys.readouterr().out
    widths = [float(v) for v in re.findall(r"\+-([\d.e-]+)", said)]
    assert len(widths) == 4
    assert widths == sorted(widths, reverse=True)
    spent = float(re.search(r"In all ([\d.e+]+)", said).group(1))  # type: ignore[union-attr]
    assert spent <= 1e17
    options = ("--answer", "loss", "--at", 3e8, 1e6, "--flop-cap", 1e18, "--runs", 1)
    assert call("design", stored / "fit.json", *options) == 0
    assert "log loss at (3e+08, 1e+06)" in capsys.readouterr().out
    with pytest.raises(UserError, match="cheapest"):
        call("design", stored / "fit.json", "--flop-cap", 1)
    with pytest.raises(UserError, match="no parameter"):
        call("design", stored / "fit.json", "--flop-cap", 1e17, "--answer", "gamma")
    with pytest.raises(UserError, match="go together"):
        call("design", stored / "fit.json", "--flop-cap", 1e17, "--answer", "loss")


def test_importing_the_commands_is_light() -> None:
    import subprocess
    import sys

    heavy = "numpy pandas scipy matplotlib torch"
    code = (
        "import sys, repro.app.fit, repro.app.plan, repro.app.design;"
        f"print([m for m in '{heavy}'.split() if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
