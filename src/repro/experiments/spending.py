"""Dollars: labels, training and serving together, and where a small model is the best purchase.

Prices are those of `laws.costs` (SIGIR'24): .6 USD a pair, a rented A100.  Training is what our runs
took (the law of their FLOPs), serving 2 N FLOP a token.  A plan is a model of the study and as many
pairs as the money left after training and serving pays for, never more than there are and never
fewer than the grid's smallest size: the law is not asked beyond the runs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from repro import seeds
from repro.errors import UserError
from repro.experiments import law_fits
from repro.experiments.answer import finite
from repro.experiments.regime import cells
from repro.laws.allocation import budget_line
from repro.laws.costs import Costs, Serving, Training
from repro.laws.fit import Fit, fit
from repro.laws.planning import Planner, planner

Array = NDArray[np.float64]
PASSAGE_TOKENS = 512  # SIGIR'24: tokens of a page
WEB_PASSAGES = 30e12  # SIGIR'24: pages of the web
CORPORA = (0.0, 1e6, 1e9, 1e12, WEB_PASSAGES)  # passages encoded, once
COLUMNS, ROWS = 40, 30  # of the map: passages served, budgets
DRAWS = 400


def costs(flop: Fit, passages: float) -> Costs:
    """Prices with our own training FLOPs and `passages` encoded once.

    flop: the steps law fitted to FLOP over N.
    """

    def tokens(n: Array, d: Array) -> Array:  # as if all FLOPs were 6 N a token
        return np.asarray(flop.predict(n=n, d=d)) / 6

    training = Training(batch=1, query_tokens=1, passage_tokens=0, steps=tokens)
    return Costs(training=training, serving=Serving(passages, PASSAGE_TOKENS))


def corner(
    table: pd.DataFrame, flop: Fit, *, straight: bool, n: str = "n_encoder", seed: int = 1
) -> dict[str, Any]:
    """Which model is the best purchase, over budgets and passages served.

    straight: take the product law; else the one with a head start, which bends as the runs do.
    Keys: law, models, n, max_pairs, budgets (USD) and passages with `map` (rows budgets: index of the
    best model, None where nothing can be paid for), and `table`: a row for each of `CORPORA` and three
    budgets with model, d, loss, share (of the law's draws in which it wins), capped (all labels bought).
    measured: model -> MAEL of its runs on all pairs, which the law need not meet.
    Raises `UserError` where there is no law, or one model only.
    """
    models = table.groupby("model")[n].first().sort_values()
    if len(models) < 2:
        raise UserError("one model leaves nothing to choose between", remedy="add models")
    law = fit("product" if straight else "product_d0", law_fits.losses(table, n))
    low, high = float(table["d"].min()), float(table["d"].max())
    sizes = models.to_numpy(float)
    budgets = _budgets(flop, sizes, low, high)
    passages = np.geomspace(1e6, WEB_PASSAGES, COLUMNS)
    d = _pairs(flop, sizes, passages, budgets, low, high)
    losses = law.predict(
        n=np.broadcast_to(sizes, d.shape).ravel(), d=np.nan_to_num(d, nan=low).ravel()
    )
    paid = np.where(np.isfinite(d), losses.reshape(d.shape), np.inf)
    plan = planner(law, seeds.stream(seed, "allocation", "dollars"), draws=DRAWS)
    chosen = np.array([float(f"{b:.0e}") for b in np.geomspace(budgets[0] * 2, budgets[-1] / 2, 3)])
    shown = _pairs(flop, sizes, np.array(CORPORA), chosen, low, high)
    rows = [
        {"passages": p, "budget": float(b), **_winner(plan, models, shown[i, j], high)}
        for j, p in enumerate(CORPORA)
        for i, b in enumerate(chosen)
    ]
    bought = cells(table, n)[high]  # what the runs give where all pairs are bought
    return {
        "law": law.form.title,
        "formula": law.form.formula,
        "models": [str(model) for model in models.index],
        "n": sizes.tolist(),
        "max_pairs": high,
        "measured": {str(model): finite(loss) for model, loss in bought.items()},
        "least_pairs": low,
        "passage_tokens": PASSAGE_TOKENS,
        "budgets": budgets.tolist(),
        "passages": passages.tolist(),
        "map": [[_best(cell) for cell in row] for row in paid],
        "table": rows,
    }


def _budgets(flop: Fit, sizes: Array, low: float, high: float) -> Array:
    """From the cheapest plan that serves nothing to the dearest that serves the web."""
    least = float(costs(flop, 0.0).usd(sizes[0], low))
    most = float(costs(flop, WEB_PASSAGES).usd(sizes[-1], high))
    return np.geomspace(least * 1.05, most * 1.05, ROWS)


def _pairs(
    flop: Fit, sizes: Array, passages: Array, budgets: Array, low: float, high: float
) -> Array:
    """Pairs that are left after serving, nan where fewer than `low`: (budgets, passages, models)."""
    one = costs(flop, 1.0)
    serving = one.hardware.usd_per_flop * one.serving.flop(sizes)  # of a passage, by each model
    left = budgets[:, None, None] - passages[:, None] * serving
    n = np.broadcast_to(sizes, left.shape)
    d = budget_line(costs(flop, 0.0).usd, left.ravel(), n.ravel(), low, high)
    return np.asarray(d.reshape(left.shape))


def _best(losses: Array) -> int | None:
    return int(np.argmin(losses)) if np.isfinite(losses).any() else None


def _winner(plan: Planner, models: pd.Series, d: Array, high: float) -> dict[str, Any]:
    """The best of the models with d pairs each, and the share of the law's draws that agree."""
    sizes, had = models.to_numpy(float), np.flatnonzero(np.isfinite(d))
    if not len(had):
        return {**dict.fromkeys(("model", "d", "loss", "share", "capped")), "choices": 0}
    losses = plan.fitted.predict(n=sizes[had], d=d[had])
    win = int(np.argmin(losses))
    draws = plan.sample.predict(n=sizes[had], d=d[had]).argmin(axis=1)
    return {
        "model": str(models.index[had[win]]),
        "d": float(d[had[win]]),
        "loss": finite(losses[win]),
        "share": float(np.mean(draws == win)),
        "capped": bool(d[had[win]] >= high * (1 - 1e-9)),
        "choices": len(had),
    }
