"""The control of M15: the additive law's own optimum against a larger model at matched compute.

Rule, fixed before any such run: for each budget of compute, the models that can be had with a D
between the smallest and largest size of the grid; of these the additive law names its best.  Of the
budgets at which a larger model can be had too, those where a smaller one can be had as well come
first (there the optimum is an inner one); of what is left the middle budget is taken, and the next
larger model.  With `allocation` in the profile both cells are trained with several seeds, after the
grid; without, the nearest measured cells of the grid answer, with the seeds that they have.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import t as student

from repro.errors import UserError
from repro.experiments import law_fits
from repro.experiments.answer import Answer, answer, part
from repro.experiments.iso_compute import Compute, compute, measured, through_data
from repro.experiments.replicates import NOT_EXACT, PairLosses, seed_noise
from repro.laws.fit import fit

FARTHEST = 1.5  # factor between the compute of two measured cells that may still be compared
_BUDGETS = 400


@dataclass(frozen=True)
class Cell:
    """A model on d pairs, and the FLOPs that such a run is expected to take."""

    model: str
    d: int
    flop: float


@dataclass(frozen=True)
class Pair:
    """The additive law's optimum and its larger rival; `trained`: both were run for this question."""

    optimum: Cell
    larger: Cell
    trained: bool = False

    @property
    def ratio(self) -> float:
        """Compute of the larger model's cell over that of the optimum."""
        return self.larger.flop / self.optimum.flop

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {**asdict(self), "ratio": self.ratio}


def choose(table: pd.DataFrame, n: str = "n_encoder") -> Pair:
    """The two cells of the rule, D free; raises `UserError` where there are none, with the reason."""
    found = _compute(table, n)
    additive = fit("additive", law_fits.losses(table, n))
    low, high = int(table["d"].min()), int(table["d"].max())
    last = len(found.models) - 1
    inner: list[Pair] = []
    outer: list[Pair] = []
    for budget in np.geomspace(found.flop(0, low), found.flop(last, high), _BUDGETS):
        d = np.array([float(found.pairs(m, budget)) for m in range(last + 1)])
        had = np.flatnonzero((d >= low) & (d <= high))
        if len(had) < 2:
            continue
        best = int(had[np.argmin(additive.predict(found.n[had], d[had]))])
        if best < had[-1]:
            larger = int(had[np.searchsorted(had, best) + 1])
            one, two = (Cell(found.models[m], round(d[m]), float(budget)) for m in (best, larger))
            (inner if best > had[0] else outer).append(Pair(one, two))
    kept = inner or outer
    if not kept:
        raise UserError(
            "at every budget the additive law's best model is the largest that can be had",
            remedy="add larger models, or more data sizes",
        )
    return kept[len(kept) // 2]


def nearest(table: pd.DataFrame, n: str = "n_encoder") -> Pair:
    """The measured cells that come nearest to the rule: most seeds first, then the nearest compute.

    The optimum's cell is one whose model the additive law puts first at the cell's compute among those
    that can be had inside the grid's sizes.  Raises `UserError` where no two cells within a factor
    `FARTHEST` of compute are such.
    """
    found = _compute(table, n)
    additive = fit("additive", law_fits.losses(table, n))
    exact = table[~table["state"].isin(NOT_EXACT)]
    seeds = exact.groupby(["model", "d"]).size()
    place = {model: i for i, model in enumerate(found.models)}
    low, high = table["d"].min(), table["d"].max()
    pairs = []
    for (one, d_one), (two, d_two) in product(seeds.index, repeat=2):
        small, large = place.get(str(one)), place.get(str(two))
        if small is None or large is None or small >= large:
            continue
        budget, rival = float(found.flop(small, d_one)), float(found.flop(large, d_two))
        d = np.array([float(found.pairs(m, budget)) for m in range(len(found.models))])
        had = np.flatnonzero((d >= low / FARTHEST) & (d <= high * FARTHEST))
        best = had[np.argmin(additive.predict(found.n[had], d[had]))]
        apart = abs(float(np.log(rival / budget)))
        if best == small and apart <= np.log(FARTHEST):
            count = min(int(seeds[one, d_one]), int(seeds[two, d_two]))
            cells = Cell(str(one), int(d_one), budget), Cell(str(two), int(d_two), rival)
            pairs.append((-count, apart, Pair(*cells)))
    if not pairs:
        raise UserError(
            f"no cell of the additive law's best model has a measured cell of a larger model within a "
            f"factor {FARTHEST:g} of its compute",
            remedy="put `allocation:` into the profile: both cells are then trained",
        )
    return min(pairs, key=lambda found: found[:2])[2]


def control(
    table: pd.DataFrame,
    trained: pd.DataFrame | None = None,
    pair_losses: PairLosses | None = None,
    n: str = "n_encoder",
) -> tuple[Answer, dict[str, Any] | None]:
    """M15: MAEL of the larger model less that of the additive law's optimum (nats), and what was compared.

    Where their expected compute differs, the larger model's loss is moved along its own line in D to
    equal compute.  trained: the rows of the runs made for this question, if any.
    """
    try:
        found = _compute(table, n)
        pair = _of_runs(trained, found, n) if trained is not None else nearest(table, n)
    except UserError as error:
        return answer(None, error.what, n=0, blocked=error.what), None
    runs = table if trained is None else pd.concat([table, trained])
    runs = runs.drop_duplicates(["model", "d", "seed"])
    exact = runs[~runs["state"].isin(NOT_EXACT)]
    cells = [
        exact[(exact["model"] == cell.model) & (exact["d"] == cell.d)]
        for cell in (pair.optimum, pair.larger)
    ]
    if not all(len(cell) for cell in cells):
        why = "no run of one of the two cells reached its minimum"
        return answer(None, why, n=0, blocked=why), pair.as_dict()
    means = [float(cell["mael"].mean()) for cell in cells]
    move, move_error = _to_equal_compute(pair, found, table, means[1], n)
    value = means[1] - means[0] + move
    ends, how = _interval(value, (move_error, found.df), means, cells, exact, pair_losses)
    flops = [float(np.exp(np.log(cell["flop"].astype(float)).mean())) for cell in cells]
    counts = [len(cell) for cell in cells]
    source = "trained for this question" if pair.trained else "the nearest cells of the grid"
    why = (
        f"{pair.optimum.model} on {pair.optimum.d:,} pairs ({_seeds(counts[0])}) {means[0]:.3f} nats, "
        f"{pair.larger.model} on {pair.larger.d:,} ({_seeds(counts[1])}) {means[1]:.3f}, {source}; "
        f"compute of the larger over the other: expected {pair.ratio:.2f}, as it came "
        f"{flops[1] / flops[0]:.2f}; moved by {move:+.3f} nats to equal compute; {how}"
    )
    parts = {"medium": part(means[0]), "base": part(means[1]), "difference": part(value, ends)}
    holds = None if ends is None else True if ends[1] < 0 else False if ends[0] > 0 else None
    blocked = "" if ends else why
    shown = {**pair.as_dict(), "seeds": counts, "mael": means, "flop_ratio": flops[1] / flops[0]}
    said = answer(value, why, n=sum(counts), ci95=ends, parts=parts, holds=holds, blocked=blocked)
    return said, shown | {"difference": part(value, ends)}


def _to_equal_compute(
    pair: Pair, found: Compute, table: pd.DataFrame, mael: float, n: str
) -> tuple[float, float]:
    """What the larger model's loss changes by at the optimum's compute, and its standard error (nats)."""
    one, two = (found.models.index(cell.model) for cell in (pair.optimum, pair.larger))
    line = measured(table, found, n)[two]
    slope = through_data(line, found) if len(line[0]) > 1 else 0.0
    move = mael * (pair.ratio**-slope - 1)
    return move, abs(slope) * mael * found.apart(one, two)


def _interval(
    value: float,
    compute_error: tuple[float, int],
    means: list[float],
    cells: list[pd.DataFrame],
    exact: pd.DataFrame,
    pair_losses: PairLosses | None,
) -> tuple[tuple[float, float] | None, str]:
    """95 % interval: pooled noise of seeds, error of the compute, evaluation pairs (Welch)."""
    noise = seed_noise(exact)
    if noise is None:
        return None, "no cell has two seeds, so that the noise is not known"
    sizes = zip(means, cells, strict=True)
    shares = [sum((noise.relative * mean) ** 2 / len(cell) for mean, cell in sizes)]
    freedom = [float(noise.df)]
    how = f"interval: noise of seeds (pooled, {noise.df} degrees of freedom), error of the compute"
    if compute_error[0] > 0:
        shares, freedom = [*shares, compute_error[0] ** 2], [*freedom, float(compute_error[1])]
    if (paired := _paired(cells, pair_losses)) is not None:
        shares.append(float(paired.var(ddof=1)) / len(paired))
        freedom.append(len(paired) - 1.0)
        how += f", validation pairs (n = {len(paired)}, paired)"
    total = max(sum(shares), 1e-30)
    df = total**2 / (sum(s**2 / f for s, f in zip(shares, freedom, strict=True)) + 1e-70)
    half = float(student.ppf(0.975, df)) * total**0.5
    return (value - half, value + half), how


def _seeds(count: int) -> str:
    return f"{count} seed{'s' if count != 1 else ''}"


def _paired(cells: list[pd.DataFrame], losses: PairLosses | None) -> Any:
    """Difference of each validation pair's loss, means over the seeds; None where a run's are missing."""
    if not losses:
        return None
    columns = ["model", "d", "seed"]
    keys = [list(cell[columns].itertuples(index=False, name=None)) for cell in cells]
    if any(key not in losses for cell in keys for key in cell):
        return None
    one, two = (np.mean([losses[key] for key in cell], axis=0) for cell in keys)
    return np.asarray(two - one, float) if len(one) > 1 else None


def _of_runs(trained: pd.DataFrame, found: Compute, n: str) -> Pair:
    cells = trained.sort_values(n)[["model", "d"]].drop_duplicates()
    if len(cells) != 2:
        raise UserError("the two cells of the control are not both there")
    place = {model: i for i, model in enumerate(found.models)}
    one, two = (
        Cell(model, d, float(found.flop(place[model], d)))
        for model, d in zip(cells["model"].astype(str), cells["d"].astype(int), strict=True)
    )
    return Pair(one, two, trained=True)


def _compute(table: pd.DataFrame, n: str) -> Compute:
    found = compute(table, n)
    if found is None or len(found.models) < 2:
        raise UserError(
            "the compute of a run cannot be told from this grid: it takes two models and several sizes"
        )
    return found
