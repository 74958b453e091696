"""Runs of one cell under several seeds: their mean stands for the cell, their spread is the noise.

What a run's seed changes: the order of the batches, the negatives drawn, dropout, and the projection
where the weights bring none.  It does not change which pairs are drawn: subsets are prefixes of one
order, fixed by the data seed.  So the noise here holds no share of the subset draw: `variance` says by
how much that understates it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import chi2

# Run (model, D, seed) -> loss of each validation pair at its minimum, float [m], nats.
PairLosses = Mapping[tuple[str, int, int], NDArray[np.floating[Any]]]
NOT_EXACT = ("censored", "diverged")  # bounds, and runs that say nothing


@dataclass(frozen=True)
class SeedNoise:
    """Standard deviation of MAEL between seeds of one cell, pooled over cells.

    sd: nats.  relative: of log MAEL.  df: degrees of freedom (seeds less one, summed over `cells`).
    """

    sd: float
    relative: float
    df: int
    cells: int

    @property
    def ci95(self) -> tuple[float, float]:
        """95 % interval of `sd` (chi-square, nats)."""
        low, high = (float(chi2.ppf(q, self.df)) for q in (0.975, 0.025))
        return self.sd * (self.df / low) ** 0.5, self.sd * (self.df / high) ** 0.5


def seed_noise(table: pd.DataFrame) -> SeedNoise | None:
    """The pooled noise of the runs' seeds; None where no cell has two runs that reached a minimum."""
    exact = table[~table["state"].isin(NOT_EXACT)]
    squares = {"mael": 0.0, "log": 0.0}
    df = cells = 0
    for _, runs in exact.groupby(["model", "d"]):
        mael = runs["mael"].to_numpy(float)
        if len(mael) < 2:
            continue
        squares["mael"] += float(np.sum((mael - mael.mean()) ** 2))
        squares["log"] += float(np.sum((np.log(mael) - np.log(mael).mean()) ** 2))
        df, cells = df + len(mael) - 1, cells + 1
    if not df:
        return None
    return SeedNoise((squares["mael"] / df) ** 0.5, (squares["log"] / df) ** 0.5, df, cells)


def cell_means(table: pd.DataFrame) -> pd.DataFrame:
    """One row a cell (model, D): numbers are means over its seeds, `seeds` says how many there are.

    Diverged runs are left out; a cell is what the worst of its other runs is (censored before plateau
    before turned).  Rows keep the table's order.
    """
    usable = table[table["state"] != "diverged"]
    order = ["turned", "plateau", "censored"]
    numbers = [c for c in usable.select_dtypes("number").columns if c not in ("d", "seed")]
    groups = usable.groupby(["model", "d"], sort=False)
    means = groups[numbers].mean()
    means["state"] = groups["state"].agg(lambda states: max(states, key=order.index))
    means["seeds"] = groups.size()
    return means.reset_index()
