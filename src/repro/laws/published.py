"""Published fits asked again on public points: Chinchilla's, and that of repeated data.

The tables are not part of the project (one has no stated licence): they are read from a folder.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import minimize

from repro.errors import UserError
from repro.laws.fit import Fit, fit, local_optimum
from repro.laws.holdout import HoldOut, corner
from repro.laws.isoflop import closed_form
from repro.laws.problem import Problem
from repro.laws.resample import bootstrap
from repro.laws.shapes import Array, to_internal
from repro.laws.table import Table

DELTA = 1e-3  # Huber's, of both papers
HOFFMANN = {  # unrounded, from the notebook of Besiroglu et al. 2024
    "A": float(np.exp(6.0073404)),
    "alpha": 0.33917084,
    "B": float(np.exp(6.0179186)),
    "beta": 0.2849083,
    "E": float(np.exp(0.5267228)),
}
ROUNDED = {"A": 406.4, "alpha": 0.34, "B": 410.7, "beta": 0.28, "E": 1.69}
MUENNIGHOFF = {  # datablations, utils/parametric_fit.ipynb: first and second step
    "A": float(np.exp(6.255414)),
    "B": float(np.exp(7.3049974)),
    "E": float(np.exp(0.6254804)),
    "alpha": 0.3526596,
    "beta": 0.3526596,
    "R_D": 15.387756,
    "R_N": 5.309743,
}


def chinchilla_points(
    folder: Path | None, rng: np.random.Generator, drop: int = 5
) -> tuple[Table, str]:
    """The 245 points that Epoch AI read off Chinchilla's figure, less the `drop` highest; and a source.

    Without a folder: 240 points made from the refitted law with .7 % noise.
    """
    if folder is None:
        n = np.exp(rng.uniform(np.log(5e7), np.log(1.6e10), 245 - drop))
        d = np.exp(rng.uniform(20, 28, 245 - drop))
        loss = 482.01 * n**-0.348 + 2085.43 * d**-0.366 + 1.817
        made = Table(loss * np.exp(0.007 * rng.normal(size=len(n))), n, d)
        return made, "points made from the refitted law (no reference data)"
    frame = _read(folder, "chinchilla_epoch/svg_extracted_data.csv")
    frame = frame.sort_values("loss").iloc[: len(frame) - drop].sort_index()
    n = frame["Model Size"].to_numpy()
    d = frame["Training FLOP"].to_numpy() / (6 * n)
    return Table(frame["loss"].to_numpy(), n, d), "the points that Epoch AI read off the figure"


def chinchilla_refit(table: Table) -> tuple[Fit, pd.DataFrame]:
    """The optimum, and what other parameters cost: what, alpha, beta, cost, cost over the optimum's."""
    best = fit("additive_floor", table, delta=DELTA)
    rows = [("our optimum", best)]
    for name, constants in (("Hoffmann's, unrounded", HOFFMANN), ("the same, rounded", ROUNDED)):
        rows.append((name, fit("additive_floor", table, delta=DELTA, fixed=dict(constants))))
    frame = pd.DataFrame(
        [(name, f.parameters["alpha"], f.parameters["beta"], f.cost) for name, f in rows],
        columns=["parameters", "alpha", "beta", "cost"],
    )
    return best, frame.assign(ratio=frame["cost"] / best.cost)


def chinchilla_sample(best: Fit, draws: int, rng: np.random.Generator) -> pd.DataFrame:
    """Bootstrap of the refit: parameter, value, standard error, and 95 % limits; a among them."""
    sample = bootstrap(best, draws, rng).parameters
    values = dict(best.parameters)
    terms = ("A", "alpha", "B", "beta")
    sample["a"] = closed_form(*(sample[name] for name in terms))[0]
    values["a"] = float(closed_form(*(values[name] for name in terms))[0])
    rows = [
        (name, float(values[name]), float(column.std()), *np.percentile(column, (2.5, 97.5)))
        for name, column in sample.items()
    ]
    return pd.DataFrame(rows, columns=["parameter", "value", "se", "low", "high"])


def chinchilla_corner(table: Table, law: str = "additive_floor", below: float = 0.6) -> HoldOut:
    """Fitted to the points in the lower `below` of both N and D, the law predicts those above in both."""
    n_max, d_max = (float(np.quantile(table.columns[name], below)) for name in ("n", "d"))
    return corner(law, table, n_max, d_max, delta=DELTA)


def with_allocation(parameters: dict[str, float]) -> dict[str, float]:
    """The parameters and the exponent a of the best model size in compute."""
    return {**parameters, "a": parameters["beta"] / (parameters["alpha"] + parameters["beta"])}


def mean_or_sum(table: Table) -> pd.DataFrame:
    """SciPy's L-BFGS-B at its default tolerances, from Hoffmann's rounded point: sum against mean.

    The mean of the same Huber is 240 times smaller, so the same tolerance stops it far away.
    """
    problem = Problem(fit("additive_floor", table, delta=DELTA).form, table, {}, DELTA)
    shape, target = problem.form.shape, problem.target
    start = to_internal(
        shape, np.array([[ROUNDED[name]] for name in problem.form.names]), problem.centre
    )[:, 0]

    def cost(theta: Array, scale: float) -> tuple[float, Array]:
        value, jacobian = shape.evaluate(theta[:, None], problem.x)
        total, psi = target.penalty(target.residuals(value))
        return scale * float(total[0]), scale * (jacobian[:, 0] @ psi[0])

    best = fit("additive_floor", table, delta=DELTA).cost
    rows = []
    for name, scale in (("sum", 1.0), ("mean", 1 / len(table))):
        found = minimize(cost, start, (scale,), "L-BFGS-B", jac=True)
        rows.append(
            (name, int(found.nit), float(found.fun) / scale, float(found.fun) / scale / best)
        )
    return pd.DataFrame(rows, columns=["Huber reduced by", "iterations", "cost (sum)", "ratio"])


def repeated_points(folder: Path | None) -> Table:
    """Muennighoff's 182 runs on C4: N, D and unique tokens.  Raises `UserError` without the table."""
    if folder is None:
        raise UserError("the repeated-data runs are not here", remedy="set REPRO_REFERENCE_DATA")
    frame = _read(folder, "datablations_c4/runs_fit_182.csv")
    return Table(
        frame["val_loss"].to_numpy(),
        frame["params"].to_numpy(),
        frame["tokens"].to_numpy(),
        extra={"u": frame["unique_tokens"].to_numpy()},
    )


def repeated_profile(folder: Path | None, points: int = 24) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Cost of the repeated-data law against R_D, all else refitted; and the optima that stand out.

    (curve: R_D, cost), (optima: what, R_D, R_N, cost).  Raises `UserError` without the table.
    """
    table = repeated_points(folder)
    known = {k: v for k, v in MUENNIGHOFF.items() if k not in ("R_D", "R_N")}
    held = dict(known)
    curve = []
    for rate in np.geomspace(3, 1000, points):
        fitted = fit("repeated", table, delta=DELTA, fixed=held | {"R_D": float(rate)}, starts=8)
        curve.append((float(rate), fitted.cost))
    best = fit("repeated", table, delta=DELTA, fixed=dict(known))
    local = local_optimum("repeated", table, MUENNIGHOFF, delta=DELTA, fixed=dict(known))
    rows = [
        ("published", MUENNIGHOFF["R_D"], MUENNIGHOFF["R_N"], None),
        ("polished from there", local.parameters["R_D"], local.parameters["R_N"], local.cost),
        ("best found", best.parameters["R_D"], best.parameters["R_N"], best.cost),
    ]
    optima = pd.DataFrame(rows, columns=["what", "R_D", "R_N", "cost"])
    return pd.DataFrame(curve, columns=["R_D", "cost"]), optima


def _read(folder: Path, name: str) -> pd.DataFrame:
    path = folder / name
    if not path.is_file():
        raise UserError(
            f"the folder of public tables has no {name}",
            where=str(path),
            remedy="check REPRO_REFERENCE_DATA",
        )
    return pd.read_csv(path)
