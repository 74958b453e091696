"""Pins: lines of equal compute, the control at matched compute, and the best purchase in dollars."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.experiments import synthetic
from tests.experiments.test_where_to_spend import found, grid, verdict

from repro.errors import UserError
from repro.experiments import allocation, iso_compute, law_fits, matched, spending, steps_law
from repro.laws.fit import fit


def additive(n: np.ndarray, d: np.ndarray) -> np.ndarray:
    """At compute C ~ N^.5 D its best model lies inside the family."""
    return 60 * n**-0.5 + 12 * d**-0.35


def middle(seeds: int = 1, noise: float = 0.002) -> pd.DataFrame:
    table = synthetic.grid_table(additive, synthetic.FIVE, synthetic.SIX, noise, seeds)
    return synthetic.with_steps(table, 0.0, 0.9, noise=0.02)


def flop_law(table: pd.DataFrame) -> Any:
    return steps_law.law(steps_law.readings(table)[-1])


def test_compute_is_a_level_of_each_model_and_one_power() -> None:
    table = synthetic.with_steps(grid(), 0.3, 0.9, noise=0.0)
    compute = iso_compute.compute(table)
    assert compute is not None
    assert compute.slope == pytest.approx(0.9)
    row = table.iloc[7]
    place = compute.models.index(row["model"])
    assert float(compute.flop(place, row["d"])) == pytest.approx(row["flop"])
    assert float(compute.pairs(place, row["flop"])) == pytest.approx(row["d"])


def test_contrasts_are_the_laws_along_equal_compute() -> None:
    """log MAEL changes by (beta (1 - a) / b - alpha) log of the factor in N."""
    table = synthetic.with_steps(grid(noise=0.0), 0.3, 0.9, noise=0.0)
    compute = iso_compute.compute(table)
    assert compute is not None
    for row in iso_compute.contrasts(table, compute):
        factor = synthetic.FIVE[row["large"]] / synthetic.FIVE[row["small"]]
        expected = (0.206 * 0.7 / 0.9 - 0.161) * np.log(factor)
        assert row["difference"]["value"] == pytest.approx(expected, abs=1e-9)
        assert row["cells"] >= 3


def test_no_best_middle_holds_and_fails_as_the_law_has_it() -> None:
    assert verdict(found(synthetic.with_steps(grid(), 0.8, 0.9, noise=0.02)), "M14") == "holds"
    assert verdict(found(synthetic.with_steps(grid(), -0.5, 0.9, noise=0.02)), "M14") == "fails"


def test_noise_of_the_steps_is_in_the_contrasts() -> None:
    widths = []
    for noise in (0.01, 0.4):
        table = synthetic.with_steps(grid(), 0.3, 0.9, noise=noise)
        compute = iso_compute.compute(table)
        assert compute is not None
        rows = iso_compute.contrasts(table, compute)
        widths.append(np.mean([np.ptp(r["difference"]["ci95"]) for r in rows if r["cells"] > 1]))
    assert widths[1] > 5 * widths[0]


def test_lines_stay_inside_the_grid() -> None:
    answers = found(middle())
    assert len(answers["iso"]["lines"]) == iso_compute.LINES
    for line in answers["iso"]["lines"]:
        for point in (*line["law"], *line["cells"]):
            assert 319.9 <= point["d"] <= 10240.1


def test_the_rule_names_the_additive_optimum_and_the_next_model() -> None:
    table = middle()
    pair = matched.choose(table)
    assert pair.ratio == pytest.approx(1.0)
    n = np.array(list(synthetic.FIVE.values()), float)
    d = (pair.optimum.flop / (6.6 * n * 1000 * 0.5)) ** (1 / 0.9)
    inside = (d >= 320) & (d <= 10240)
    best = list(synthetic.FIVE)[int(np.argmin(np.where(inside, additive(n, d), np.inf)))]
    order = list(synthetic.FIVE)
    assert pair.optimum.model == best
    assert order.index(pair.larger.model) == order.index(best) + 1
    assert pair.larger.d < pair.optimum.d
    assert pair.optimum.model != order[0]  # an inner optimum, where there is one


def test_a_family_whose_largest_model_is_always_best_has_no_control() -> None:
    def steep(n: np.ndarray, d: np.ndarray) -> np.ndarray:
        return 4000 * n**-0.9 + 0.5 * d**-0.05

    table = synthetic.grid_table(steep, synthetic.FIVE, noise=0.0005)
    table = synthetic.with_steps(table, 0.9, 0.9, noise=0.01)
    with pytest.raises(UserError, match="is the largest that can be had"):
        matched.choose(table)


def trained(table: pd.DataFrame, gap: float, seeds: int = 3) -> pd.DataFrame:
    """Runs of the two cells of the rule: the larger model's MAEL is `gap` below the optimum's."""
    pair, rows = matched.choose(table), []
    for cell, mael in ((pair.optimum, 2.0), (pair.larger, 2.0 - gap)):
        like = table[table["model"] == cell.model].iloc[0]
        for seed in range(seeds):
            noisy = mael * (1 + 0.002 * (seed - 1))
            rows.append({**like, "d": cell.d, "seed": seed, "mael": noisy, "flop": cell.flop})
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    ("gap", "expected"), [(0.2, "holds"), (-0.2, "fails"), (0.0, "inconclusive")]
)
def test_trained_cells_decide_the_control(gap: float, expected: str) -> None:
    table = middle()
    answer, shown = matched.control(table, trained(table, gap))
    assert shown is not None
    assert shown["trained"]
    assert answer["value"] == pytest.approx(-gap, abs=0.01)
    assert verdict({"M15": answer}, "M15") == expected
    assert "trained for this question" in answer["why"]


def test_evaluation_pairs_widen_the_difference() -> None:
    table = middle()
    runs = trained(table, 0.2)
    rng = np.random.default_rng(0)
    pairs = {
        (r.model, int(r.d), int(r.seed)): r.mael * rng.exponential(size=60)
        for r in runs.itertuples()
    }
    plain, wide = (matched.control(table, runs, losses)[0] for losses in (None, pairs))
    assert np.ptp(wide["ci95"]) > 1.5 * np.ptp(plain["ci95"])
    assert "validation pairs (n = 60, paired)" in wide["why"]


def test_without_training_the_nearest_cells_answer_and_say_so() -> None:
    answer, shown = matched.control(middle(seeds=3))
    assert shown is not None
    assert not shown["trained"]
    assert 1 / matched.FARTHEST <= shown["ratio"] <= matched.FARTHEST
    assert "the nearest cells of the grid" in answer["why"]
    assert answer["ci95"][0] < answer["value"] < answer["ci95"][1]


def test_one_seed_a_cell_gives_no_verdict() -> None:
    answer, _ = matched.control(middle(seeds=1))
    assert answer["value"] is not None
    assert "noise is not known" in answer["blocked"]
    assert verdict({"M15": answer}, "M15") == "inconclusive"


class Plan:
    """Stands for `experiments.runs.Runs` over a table of finished runs."""

    def __init__(self, table: pd.DataFrame, holes: int = 0, asked: bool = True) -> None:
        params = allocation.AllocationParams(seeds=[4, 5]) if asked else None
        models = {name: SimpleNamespace(weights=name) for name in synthetic.FIVE}
        sizes = sorted(int(d) for d in table["d"].unique())
        grid_ = SimpleNamespace(models=list(models), sizes=sizes, seeds=[0], reseeds=0)
        self.profile = SimpleNamespace(grid=grid_, models=models, allocation=params, n="encoder")
        rows = table.iloc[holes:].to_dict("records")
        self.rows = {(row["model"], row["d"], row["seed"]): row for row in rows}

    def trained(self, model: str, *, pairs: int, seed: int, ranked: bool = True) -> Any:
        task = SimpleNamespace(flop=float(synthetic.FIVE[model]))
        return SimpleNamespace(model=model, pairs=pairs, seed=seed, ranked=ranked, train=task)

    def row(self, run: Any) -> dict[str, Any] | None:
        return self.rows.get((run.model, run.pairs, run.seed))


def test_the_control_runs_after_the_grid_where_it_is_asked_for() -> None:
    table = middle()
    runs: list[Any] = allocation.runs(Plan(table))  # type: ignore[arg-type]
    pair = matched.choose(table)
    assert [(r.model, r.pairs, r.seed) for r in runs] == [
        (cell.model, cell.d, seed) for cell in (pair.optimum, pair.larger) for seed in (4, 5)
    ]
    assert not any(r.ranked for r in runs)
    assert allocation.runs(Plan(table, holes=1)) == []  # type: ignore[arg-type]
    assert allocation.runs(Plan(table, asked=False)) == []  # type: ignore[arg-type]
    assert allocation.control_table(Plan(table)) is None  # type: ignore[arg-type]


def test_its_cost_is_estimated_while_the_grid_has_holes() -> None:
    table = middle()
    runs: list[Any] = allocation.stand_ins(Plan(table, holes=1))  # type: ignore[arg-type]
    by_cost = sorted(synthetic.FIVE, key=lambda model: synthetic.FIVE[model])
    sizes = sorted(int(d) for d in table["d"].unique())
    d = sizes[len(sizes) // 2] - 1  # no cell of the grid
    assert [(r.model, r.pairs, r.seed) for r in runs] == [
        (model, d, seed) for model in by_cost[1:3] for seed in (4, 5)
    ]
    assert allocation.stand_ins(Plan(table)) == []  # type: ignore[arg-type]
    assert allocation.stand_ins(Plan(table, holes=1, asked=False)) == []  # type: ignore[arg-type]


def test_the_best_purchase_is_the_one_found_by_hand() -> None:
    table = synthetic.with_steps(grid(), 0.3, 0.9)
    plan = spending.corner(table, flop_law(table), straight=True)
    law = fit("product", law_fits.losses(table))
    usd_per_flop = 3.93 / (312e12 * 3600 * 0.25)
    steps = flop_law(table).parameters
    for i, j in ((3, 0), (9, 20), (15, 30), (25, 39)):
        budget, passages, best = plan["budgets"][i], plan["passages"][j], (np.inf, None)
        for k, n in enumerate(plan["n"]):
            d = np.geomspace(640, 10240, 4000)
            spent = 0.6 * d + usd_per_flop * (
                steps["k"] * n ** (1 - steps["a"]) * d ** steps["b"] + 2 * n * 512 * passages
            )
            if (spent <= budget).any():
                loss = float(law.predict(n=n, d=d[spent <= budget].max()))
                best = min(best, (loss, k))
        assert plan["map"][i][j] == best[1]


def test_serving_makes_room_for_small_models() -> None:
    table = synthetic.with_steps(grid(), 0.3, 0.9)
    plan = spending.corner(table, flop_law(table), straight=True)
    best = np.array([[np.nan if k is None else k for k in row] for row in plan["map"]], float)
    assert (best[:, 0] == len(plan["models"]) - 1).all()  # nothing to speak of is served
    assert (np.diff(best, axis=1)[np.isfinite(np.diff(best, axis=1))] <= 0).all()
    assert 0 in best
    web = [row for row in plan["table"] if row["passages"] == spending.WEB_PASSAGES]
    assert web[0]["model"] is None
    for row in plan["table"]:
        assert row["model"] is None or 640 <= row["d"] <= 10240 * (1 + 1e-9)
