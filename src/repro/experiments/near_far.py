"""Is the law one of remembering?  The exponents for evaluation pairs near to, and far from, training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from repro.errors import UserError
from repro.experiments.answer import finite, interval
from repro.experiments.law_fits import losses
from repro.laws.fit import fit
from repro.laws.intervals import intervals

Run = tuple[str, int, int]  # model, D, seed


def exponents(
    table: pd.DataFrame,
    pair_losses: Mapping[Run, NDArray[np.floating[Any]]],
    nearest: NDArray[np.float64],
    n: str = "n_encoder",
) -> pd.DataFrame:
    """The product law on the nearer and on the farther half of the validation pairs, a row each.

    pair_losses: run -> loss of each validation pair at the run's minimum, [m].  nearest [m]: how
    similar the pair's passage is to its nearest training passage.  Columns: half, pairs, similarity
    (mean), mael (mean over runs, nats), alpha, alpha 95 %, beta, beta 95 %.
    """
    order = np.argsort(-nearest, kind="stable")
    middle = len(order) // 2
    halves = {"near": order[:middle], "far": order[middle:]}
    rows = []
    for name, pairs in halves.items():
        part = table.copy()
        runs = zip(part["model"], part["d"], part["seed"], strict=True)
        part["mael"] = [_mean(pair_losses.get((str(m), int(d), int(s))), pairs) for m, d, s in runs]
        part = part.dropna(subset=["mael"])
        row = {"half": name, "pairs": len(pairs), "similarity": float(nearest[pairs].mean())}
        rows.append(row | {"mael": float(part["mael"].mean())} | _fitted(part, n))
    return pd.DataFrame(rows)


def _mean(losses_: NDArray[np.floating[Any]] | None, pairs: NDArray[np.intp]) -> float:
    return float("nan") if losses_ is None else float(np.mean(losses_[pairs], dtype=np.float64))


def _fitted(part: pd.DataFrame, n: str) -> dict[str, Any]:
    try:
        found = fit("product", losses(part, n))
    except UserError:
        return dict.fromkeys(("alpha", "alpha 95 %", "beta", "beta 95 %"))
    ends = intervals(found)
    columns: dict[str, Any] = {}
    for name in ("alpha", "beta"):
        columns |= {name: finite(found.parameters[name]), f"{name} 95 %": interval(ends.get(name))}
    return columns
