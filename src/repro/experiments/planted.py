"""Is the floor made of wrong judgements?  False negatives planted in the evaluation: claim S6.

For a known share of the validation pairs one of the negatives is made a second right answer, as good
as the judged one.  No run is needed: a pair whose loss was l has the loss log(1 + e^l) then.  The
checkpoint stays the one that was lowest without the planting.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from repro import seeds as streams
from repro.errors import UserError
from repro.experiments import law_fits
from repro.experiments.answer import Answer, answer
from repro.experiments.replicates import PairLosses
from repro.laws.fit import fit
from repro.laws.resample import refit
from repro.laws.table import Table

SHARES = (0.1, 0.2, 0.4)  # of the validation pairs
DRAWS = 20  # of which pairs are planted
LAW = "joint_floor"  # SIGIR'24's, with its floor


def answers(table: pd.DataFrame, pairs: PairLosses, seed: int = 1) -> dict[str, Any]:
    """S6, and `planted`: a row a share with the law's floor, its rise, and what must be added at least."""
    rows = _rows(table, pairs, seed)
    return {"S6": _claim(rows), "planted": rows}


def planted(losses: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """The loss of each pair, nats, where those `chosen` (bool [m]) have a second right answer."""
    return np.where(chosen, np.logaddexp(0.0, losses), losses)


def _rows(table: pd.DataFrame, pairs: PairLosses, seed: int) -> list[dict[str, Any]]:
    places = list(zip(table["model"], table["d"], table["seed"], strict=True)) if len(table) else []
    if not places or any(place not in pairs for place in places):
        return []
    losses = np.array([pairs[place] for place in places])
    try:
        whole = fit(LAW, _cells(table, losses))
    except UserError:
        return []
    start = float(whole.parameters["delta"])
    rows: list[dict[str, Any]] = [
        {"share": 0.0, "floor": start, "rise": 0.0, "ci95": None, "least": 0.0}
    ]
    for share in SHARES:
        grids = []
        for draw in range(DRAWS):
            order = streams.stream(seed, "planted", draw).permutation(losses.shape[1])
            chosen = np.zeros(losses.shape[1], bool)
            chosen[order[: round(share * len(order))]] = True
            grids.append(np.log(_cells(table, planted(losses, chosen)).loss))
        rises = refit(whole, log_loss=np.array(grids)).parameters["delta"] - start
        rise = float(np.mean(rises))
        ends = [float(q) for q in np.quantile(rises, [0.025, 0.975])]
        least = share * float(np.log(2))
        rows.append(
            {"share": share, "floor": start + rise, "rise": rise, "ci95": ends, "least": least}
        )
    return rows


def _cells(table: pd.DataFrame, losses: np.ndarray) -> Table:
    """The grid with the runs' mean losses, nats, in the place of MAEL."""
    return law_fits.losses(table.assign(mael=losses.mean(axis=1)))


def _claim(rows: list[dict[str, Any]]) -> Answer:
    if len(rows) < 2:
        why = "the joint law with a floor cannot be fitted to this grid"
        return answer(None, why, n=0, blocked=why)
    last = rows[-1]
    if rows[0]["floor"] == last["floor"] == 0.0:
        why = (
            "the law finds no floor on this grid, planted or not (it stays at its bound of 0, though "
            f"{last['least']:.2f} nats at the least were added to every loss): floors are not determined here"
        )
        return answer(0.0, why, n=DRAWS, blocked=why)
    low, high = last["ci95"]
    why = (
        f"floor {rows[0]['floor']:.2f} nats as it is; a second right answer for "
        f"{100 * last['share']:.0f} % of the pairs moves it by {last['rise']:+.2f} (at the least "
        f"{last['least']:.2f} are added to every loss); interval over which pairs"
    )
    holds = True if low > 0 else False if high <= 0 else None
    return answer(last["rise"], why, n=DRAWS, ci95=(low, high), holds=holds)
