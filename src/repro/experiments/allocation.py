"""Where to spend?  The answers of notebook 06: steps, compute, efficiencies, control, dollars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import pandas as pd
from pydantic import Field, field_validator

from repro.errors import UserError
from repro.experiments import (
    allocation_claims,
    grid,
    iso_compute,
    law_fits,
    matched,
    published,
    spending,
)
from repro.experiments.law_fits import COUNTS
from repro.experiments.regime import Regime, find_regime, local_slopes
from repro.experiments.replicates import PairLosses
from repro.experiments.steps_law import (
    MOST,
    Reading,
    at_first,
    bounds,
    exponents,
    fitted,
    law,
    readings,
)
from repro.laws import efficiency as eff
from repro.laws.fit import fit
from repro.params import Params, distinct

if TYPE_CHECKING:
    from repro.experiments.runs import Runs, Trained


class AllocationParams(Params):
    """The control at matched compute: both cells trained with these seeds, once the grid is there."""

    seeds: Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=2)] = [0, 1, 2]

    _distinct = field_validator("seeds")(distinct)

    def later(self) -> str:
        """The runs that follow from the grid's, in words."""
        return f"after the grid: two cells at matched compute, {len(self.seeds)} seeds each"


def runs(plan: Runs) -> list[Trained]:
    """The runs of the control: none where the profile asks for none, or while the grid has holes.

    The two cells follow from the grid's laws by the rule of `experiments.matched`; none either where
    that rule finds none.
    """
    asked = plan.profile.allocation
    if asked is None:
        return []
    table = _whole_grid(plan)
    if table is None:
        return []
    try:
        pair = matched.choose(table, f"n_{plan.profile.n}")
    except UserError:
        return []
    return [
        plan.trained(cell.model, pairs=cell.d, seed=seed, ranked=False)
        for cell in (pair.optimum, pair.larger)
        for seed in asked.seeds
    ]


def stand_ins(plan: Runs) -> list[Trained]:
    """Runs that cost about as much as those to come, while the grid has holes.

    The rule takes the middle one of the budgets, so they are the two models in the middle, by cost,
    on the middle size, one pair less: the grid's own cell is no stand-in for a run that is not in it.
    """
    asked = plan.profile.allocation
    if asked is None or _whole_grid(plan) is not None:
        return []
    sizes, models = sorted(plan.profile.grid.sizes), plan.profile.grid.models
    d = sizes[len(sizes) // 2] - 1
    cells = {
        model: [plan.trained(model, pairs=d, seed=seed, ranked=False) for seed in asked.seeds]
        for model in models
    }
    by_cost = sorted(cells.values(), key=lambda own: own[0].train.flop)
    middle = max(len(by_cost) // 2 - 1, 0)
    return [run for own in by_cost[middle : middle + 2] for run in own]


def control_table(plan: Runs) -> pd.DataFrame | None:
    """One row a finished run of the control; None where there is none."""
    rows = [plan.row(run) for run in runs(plan)]
    found = [row for row in rows if row is not None]
    return pd.DataFrame(found) if found else None


def answers(
    table: pd.DataFrame,
    control: pd.DataFrame | None = None,
    pair_losses: PairLosses | None = None,
    n: str = "n_encoder",
    seed: int = 1,
) -> dict[str, Any]:
    """Claim -> answer, with `readings`, `papers`, `steps`, `bounds`, `flops`, `iso`, `control` and
    `dollars` beside; all plain data.

    table: one row a run (see `experiments.grid`).  control: the runs of `control_table`.  Verdicts on
    the ratio of the efficiencies are taken inside the power-law regime alone (see `regime`).
    """
    regime = find_regime(local_slopes(table, n))
    all_readings = readings(table, n)
    rows = [fitted(reading, regime.sizes, n, seed) for reading in all_readings]
    by_name = {row["name"]: row for row in rows}
    m15, compared = matched.control(table, control, pair_losses, n)
    iso = _iso(table, all_readings[-1], regime, n)
    return {
        "M10": allocation_claims.steps(by_name["raw"], table),
        "M11": allocation_claims.compute(by_name["raw"], by_name["flop"]),
        "M12": allocation_claims.ratio(by_name["raw"], regime),
        "M14": allocation_claims.no_middle(by_name["flop"], iso, regime),
        "M15": m15,
        "M21": allocation_claims.turns(by_name["raw"], by_name["lr_steps"], regime),
        "regime": regime.as_dict(),
        "readings": rows,
        "papers": published.ratios(MOST),
        "rates": _rates(table, n),
        "bounds": bounds(table),
        "steps": _points(table, all_readings[0], n),
        "flops": flops(table),
        "iso": iso,
        "control": compared,
        "dollars": _dollars(table, all_readings[-1], regime, n, seed),
    }


def flops(table: pd.DataFrame) -> list[dict[str, Any]]:
    """FLOP both ways, a row a count of N: 6 N a token, and what was really spent.

    exponent and counted_exponent: of N, by this count, in the FLOPs spent and in 6 N x tokens;
    low and high: spent over counted, of the models' means.
    """
    usable, out = table[table["state"] != "diverged"], []
    for column, meaning in COUNTS.items():
        counted = 6.0 * usable[column] * usable["tokens"]
        share = (usable["flop"] / counted).groupby(usable["model"]).mean()
        row: dict[str, Any] = {"count": column, "meaning": meaning}
        row |= {"low": float(share.min()), "high": float(share.max())} if len(share) else {}
        for key, spent in (("exponent", usable["flop"]), ("counted_exponent", counted)):
            reading = Reading("flop", "", "", usable.assign(counted=spent / usable[column]))
            row[key] = exponents(reading, column)["cost_n"]
        out.append(row)
    return out


def _whole_grid(plan: Runs) -> pd.DataFrame | None:
    """The grid's table; None while it has holes."""
    rows = [plan.row(run) for run in grid.runs(plan)]
    found = [row for row in rows if row is not None]
    return pd.DataFrame(found) if len(found) == len(rows) else None


def _iso(table: pd.DataFrame, flop: Reading, regime: Regime, n: str) -> dict[str, Any]:
    """Lines of equal compute and the contrasts of neighbours; empty where compute is not told."""
    sizes = sorted(float(size) for size in table[n].unique())
    found = iso_compute.compute(table, n)
    nothing = {"lines": [], "pairs": [], "law": None, "n": sizes}
    if found is None:
        return nothing
    pairs = iso_compute.contrasts(table, found, n)
    form = "product" if regime and regime.whole else "product_d0"
    try:
        loss = fit(form, law_fits.losses(table, n))
        lines = iso_compute.lines(table, found, loss, law(flop, n), n)
    except UserError:
        return {**nothing, "pairs": pairs}
    return {"lines": lines, "pairs": pairs, "law": loss.form.title, "n": sizes}


def _rates(table: pd.DataFrame, n: str) -> dict[str, Any]:
    """How the rates go with N: rho of lr ~ N^-rho, and the rate of each model."""
    first = table.groupby("model", sort=False)[[n, "lr"]].first().sort_values(n)
    rho = None
    if len(first) > 1:
        rho = eff.lr_exponent(first[n].to_numpy(float), first["lr"].to_numpy(float))
    return {"rho": rho, "rates": {str(model): float(lr) for model, lr in first["lr"].items()}}


def _points(table: pd.DataFrame, raw: Reading, n: str) -> dict[str, Any]:
    """The runs' raw steps and the law through them, for the figure."""
    columns = ["model", n, "d", "seed", "steps", "state"]
    used = raw.rows.assign(at_first=at_first(raw.rows))[[*columns, "at_first"]]
    found: dict[str, Any] = {"rows": used.rename(columns={n: "n"}).to_dict("records"), "law": None}
    try:
        fitted_law = law(raw, n)
    except UserError:
        return found
    return found | {"law": {key: float(v) for key, v in fitted_law.parameters.items()}}


def _dollars(
    table: pd.DataFrame, flop: Reading, regime: Regime, n: str, seed: int
) -> dict[str, Any] | None:
    straight = bool(regime) and regime.whole
    try:
        return spending.corner(table, law(flop, n), straight=straight, n=n, seed=seed)
    except UserError:
        return None
