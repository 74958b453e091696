"""Pins: every figure draws from a whole grid, a ragged one and a tiny one, with its alternative text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.experiments import synthetic

from repro.errors import UserError
from repro.experiments import law_fits
from repro.experiments.bend import LAWS, bend
from repro.experiments.gains import steps
from repro.experiments.regime import find_regime, local_slopes
from repro.experiments.replicates import seed_noise
from repro.laws.fit import fit
from repro.show import claims, style
from repro.show.figures import bend as bends
from repro.show.figures import gains, grid, laws, lr, report, subsets

WHOLE = synthetic.grid_table(synthetic.product, synthetic.MICRO, seeds=2)
RESEEDED = synthetic.reseeded(synthetic.worth_2000)
RAGGED = WHOLE.drop(index=[0, 1, 7]).reset_index(drop=True)
TINY = synthetic.grid_table(synthetic.product, {"1x32": 12_704, "2x64": 99_968}, (160, 320))
TABLES = {"whole": WHOLE, "ragged": RAGGED, "tiny": TINY, "reseeded": RESEEDED}


def save(drawing: style.Drawing, folder: Path) -> None:
    style.save(drawing["figure"], folder, drawing["name"], alt=drawing["alt"], data=drawing["data"])
    assert (folder / f"{drawing['name']}.svg").stat().st_size > 1000
    assert len(drawing["alt"]) > 40
    assert "nan" not in drawing["alt"]


def readings(table: pd.DataFrame) -> pd.DataFrame:
    rows = [
        {"model": run.model, "d": run.d, "seed": run.seed, "step": step, "lr_steps": 50.0 * step,
         "loss": run.mael + 0.1 * np.log(step / run.steps) ** 2}
        for run in table.itertuples()
        for step in np.geomspace(2, 2 * run.steps, 12)
    ]  # fmt: skip
    return pd.DataFrame(rows)


@pytest.mark.slow
@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_figures_of_the_grid(table: pd.DataFrame, tmp_path: Path) -> None:
    for drawing in (grid.heat_map(table), grid.curves(readings(table), table), grid.metrics(table)):
        save(drawing, tmp_path)
    save(grid.metrics(table, "test_entropy"), tmp_path)


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_figures_of_the_laws(table: pd.DataFrame, tmp_path: Path) -> None:
    fitted = fit("product", law_fits.losses(table))
    slopes = local_slopes(table)
    save(laws.along_d(table, fitted), tmp_path)
    save(laws.along_n(table, fitted), tmp_path)
    save(laws.local_slopes(slopes.to_dict("records"), find_regime(slopes).as_dict()), tmp_path)
    save(laws.exponents(law_fits.exponents_by_count(table)), tmp_path)


@pytest.mark.parametrize("table", [*TABLES.values(), TINY.head(2), TINY.iloc[::2]])
def test_figures_of_steps_and_bends(table: pd.DataFrame, tmp_path: Path) -> None:
    """One model and one size, too: then there are no steps one way."""
    save(gains.gains(steps(table, seed_noise(table)), 2.0), tmp_path)
    try:
        found = laws_of(table)
    except UserError:
        found = {}
    save(bends.bend(bend(table, found)), tmp_path)


def laws_of(table: pd.DataFrame) -> dict[str, dict[str, object]]:
    return law_fits.laws(law_fits.losses(table), tuple(LAWS))


def test_weak_steps_are_framed(tmp_path: Path) -> None:
    found = steps(RESEEDED, seed_noise(RESEEDED)).assign(sds=3.0)
    found.loc[[0, 30], "sds"] = [1.0, np.nan]
    drawing = gains.gains(found, 2.0)
    frames = [
        patch for panel in drawing["figure"].axes for patch in panel.patches if not patch.get_fill()
    ]
    assert len(frames) == 1
    assert "under 2 sds: 1" in drawing["alt"]
    save(drawing, tmp_path)


def test_forms_with_figures_that_do_not_exist(tmp_path: Path) -> None:
    law = {"params": {"c": 1.0}, "n": 12, "title": "product law", "loo_model_mre": 0.02}
    law |= {"loo_size_mre": None, "corner_mre": 7.5e6, "loo_model_worst": 0.04}
    drawing = laws.forms({"product": law, "joint": {"params": None, "n": 12}})
    save(drawing, tmp_path)
    said = [text.get_text() for panel in drawing["figure"].axes for text in panel.texts]
    assert "not determined" in said
    assert "over 100" in said


def test_learning_curve_may_be_empty(tmp_path: Path) -> None:
    save(laws.learning_curve([]), tmp_path)
    save(laws.learning_curve([{"runs": 5, "share": 0.1, "mean": 0.02, "worst": 0.05}]), tmp_path)


def test_figures_of_the_subsets(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"text": kind, "split": split, "words": rng.integers(low, 8 * low, 200)}
        for kind, low in (("query", 5), ("passage", 20))
        for split in ("train", "validation")
    ).explode("words", ignore_index=True)
    save(subsets.lengths(frame.astype({"words": int})), tmp_path)
    save(
        subsets.nearest({"validation": rng.random(50) / 4, "test": rng.random(60) / 4}, 0.3),
        tmp_path,
    )


def test_every_claim_has_its_square(tmp_path: Path) -> None:
    rows = claims.verdicts({})
    drawing = report.verdicts(rows)
    save(drawing, tmp_path)
    said = {text.get_text() for text in drawing["figure"].axes[0].texts}
    assert {row["id"] for row in rows} <= said


@pytest.mark.parametrize("kept", ["all", "one size", "one run", "diverged"])
def test_figures_of_the_rates(kept: str, tmp_path: Path) -> None:
    rows = [
        {"model": "2x64", "d": d, "seed": seed, "lr": lr, "mael": 2 - d / 4000 + lr, "state": "turned",
         "reached": lr < 1e-3, "role": "rate", "zero_shot": 2.3}
        for d in (320, 1280) for seed in (1, 2) for lr in (1e-4, 2.5e-4, 2e-3)
    ]  # fmt: skip
    table = pd.DataFrame(rows)
    table = {"one size": table[table["d"] == 320], "one run": table.head(1)}.get(kept, table)
    if kept == "diverged":
        fast = table["lr"] == 2e-3
        table = table.assign(
            mael=table["mael"].mask(fast), state=table["state"].mask(fast, "diverged")
        )
    steps = np.geomspace(4, 400, 12)
    curves = pd.concat(
        pd.DataFrame({"d": run.d, "seed": run.seed, "lr": run.lr, "role": "rate", "step": steps,
                      "lr_steps": steps * run.lr * 1e3,
                      "loss": (run.mael if run.mael > 0 else np.nan) + np.log(steps / 90) ** 2 / 50})
        for run in table.itertuples()
    )  # fmt: skip
    bundles = [{"of": "reached", "d": 320, "ratio": 0.2}, {"of": "all", "d": 320, "ratio": None}]
    save(lr.mael_against_lr(table), tmp_path)
    save(lr.curves(curves, table, bundles), tmp_path)


@pytest.mark.parametrize("kinds", [tuple(lr.BARS), ("rates", "start"), ("noise",), ()])
def test_figure_of_likeness(kinds: tuple[str, ...], tmp_path: Path) -> None:
    rows = [
        {"kind": kind, "text": text, "reached": k < 2, "debiased": 0.9 - 0.1 * k, "biased": 0.95}
        for kind in kinds
        for text in ("queries", "passages")
        for k in range(3)
    ]
    rows += [{**row, "debiased": None, "biased": None} for row in rows[:1]]
    save(lr.likeness(rows), tmp_path)
