"""Does the loss say how well a model ranks?  The answers of notebook 03 to M9, S1 and S2.

Over a grid in which everything improves together anything correlates, so the correlation is also
taken inside each row (one model, D varies) and inside each column (one D, the model varies).  A cell
with several seeds is one point, the mean of its runs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from repro.experiments.answer import Answer, answer, finite, part
from repro.experiments.replicates import cell_means

Array = NDArray[np.float64]
METRICS = {"mrr10": "MRR@10", "recall100": "Recall@100", "ndcg10": "nDCG@10", "map10": "MAP@10"}
KINK_NATS = 0.25  # "emergence": SIGIR'24 (v2), FACTS A7
LEAST = 4  # cells for a correlation with an interval


def answers(table: pd.DataFrame) -> dict[str, Any]:
    """Claim -> answer, and `correlations` (a row a metric), `within` (rows and columns); plain data.

    table: one row a run, with mael, test_entropy (nats) and the metrics.
    """
    used = cell_means(table.dropna(subset=["mael", "test_entropy", *METRICS]))
    rows = [_correlation(used, metric) for metric in METRICS]
    return {
        "M9": _strongest_claim(used, rows),
        "S1": _near_linear(used),
        "S2": _kink(used),
        "correlations": rows,
        "within": [row for metric in METRICS for row in _within(used, metric)],
    }


def line(x: Array, y: Array) -> tuple[float, float]:
    """Intercept and slope of the least-squares line."""
    slope, intercept = np.polyfit(x, y, 1)
    return float(intercept), float(slope)


def _correlation(table: pd.DataFrame, metric: str) -> dict[str, Any]:
    x, y = table["mael"].to_numpy(float), table[metric].to_numpy(float)
    pearson, spearman = _pearson(x, y), _spearman(x, y)
    return {
        "metric": metric,
        "title": METRICS[metric],
        "n": len(x),
        "pearson": finite(pearson),
        "ci95": _fisher(pearson, len(x)),
        "spearman": finite(spearman),
    }


def _within(table: pd.DataFrame, metric: str) -> list[dict[str, Any]]:
    """Pearson and Spearman inside each model and each D that has three cells or more."""
    rows = []
    for kind, key in (("model", "model"), ("D", "d")):
        for value, group in table.groupby(key, sort=False):
            if len(group) < 3:
                continue
            x, y = group["mael"].to_numpy(float), group[metric].to_numpy(float)
            row = {"metric": metric, "inside": kind, "which": str(value), "n": len(group)}
            rows.append(
                row | {"pearson": finite(_pearson(x, y)), "spearman": finite(_spearman(x, y))}
            )
    return rows


def _strongest_claim(table: pd.DataFrame, rows: list[dict[str, Any]]) -> Answer:
    """M9: the weakest of the four correlations with MAEL, and what is left inside rows and columns."""
    known = [row for row in rows if row["pearson"] is not None]
    if len(table) < LEAST or not known:
        why = f"{len(table)} cells: too few for a correlation"
        return answer(None, why, n=len(table), blocked=why)
    weakest = max(known, key=lambda row: row["pearson"])
    inside = [row for metric in METRICS for row in _within(table, metric)]
    parts = {row["metric"]: part(row["pearson"], row["ci95"]) for row in known}
    for kind, name in (("model", "within_model"), ("D", "within_size")):
        values = [
            row["pearson"] for row in inside if row["inside"] == kind and row["pearson"] is not None
        ]
        if values:
            parts[name] = part(max(values))
    why = (
        f"weakest of four: {weakest['title']} (Spearman {weakest['spearman']:.3f}); interval by "
        "Fisher's z, as if cells were independent, which cells of one model are not"
    )
    for name, said in (("within_model", "one model"), ("within_size", "one D")):
        if name in parts:
            why += f"; weakest inside {said}: {parts[name]['value']:.3f}"
    return answer(weakest["pearson"], why, n=len(table), ci95=weakest["ci95"], parts=parts)


def _near_linear(table: pd.DataFrame) -> Answer:
    """S1: the smallest R2 of a straight line from contrastive entropy to a metric."""
    if len(table) < LEAST:
        why = f"{len(table)} cells: too few for a line"
        return answer(None, why, n=len(table), blocked=why)
    x = table["test_entropy"].to_numpy(float)
    squared = {m: _pearson(x, table[m].to_numpy(float)) ** 2 for m in METRICS}
    weakest = min(squared, key=lambda m: squared[m])
    r = -float(np.sqrt(squared[weakest]))
    ends = _fisher(r, len(x))
    ci95 = None if ends is None else (min(1.0, ends[1] ** 2 if ends[1] < 0 else 0.0), ends[0] ** 2)
    why = (
        f"R2 of a line, weakest of four: {METRICS[weakest]}; entropy and metrics on the test pairs"
    )
    parts = {m: part(value) for m, value in squared.items()}
    return answer(squared[weakest], why, n=len(x), ci95=ci95, parts=parts)


def _kink(table: pd.DataFrame) -> Answer:
    """S2: a bend at .25 nats against a parabola with as many parameters, by AICc of MRR@10.

    value: AICc(parabola) - AICc(bend); above 4 the bend describes the runs better.
    """
    x = table["test_entropy"].to_numpy(float)
    lowest = float(x.min()) if len(x) else float("nan")
    below = int((x < KINK_NATS).sum())
    if below < 3 or len(x) - below < 3:
        why = (
            f"out of range: entropy runs from {lowest:.2f} to {x.max() if len(x) else lowest:.2f} nats, "
            f"{below} of {len(x)} cells below {KINK_NATS} nats (3 on each side are needed)"
        )
        return answer(None, why, n=len(x), blocked=why)
    y = table["mrr10"].to_numpy(float)
    bend = np.column_stack([np.ones_like(x), x, np.maximum(KINK_NATS - x, 0.0)])
    smooth = np.column_stack([np.ones_like(x), x, x**2])
    jump = np.linalg.lstsq(bend, y, rcond=None)[0][2]
    value = len(x) * float(np.log(_rss(smooth, y) / _rss(bend, y)))
    why = (
        f"{below} of {len(x)} cells below {KINK_NATS} nats; slope there steeper by {jump:.2f} per nat; "
        "value: AICc of a parabola less that of a bend"
    )
    return answer(value if jump > 0 else -abs(value), why, n=len(x))


def _rss(design: Array, y: Array) -> float:
    rest = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
    return max(float(rest @ rest), 1e-30)


def _pearson(x: Array, y: Array) -> float:
    if len(x) < 3 or np.ptp(x) < 1e-12 or np.ptp(y) < 1e-12:
        return float("nan")
    return float(np.corrcoef(x, y)[0, 1])


def _spearman(x: Array, y: Array) -> float:
    return _pearson(stats.rankdata(x), stats.rankdata(y))


def _fisher(r: float, n: int) -> tuple[float, float] | None:
    """95 % interval of a correlation by Fisher's z; None for fewer than four runs."""
    if n < LEAST or not np.isfinite(r):
        return None
    z, half = np.arctanh(np.clip(r, -0.9999999, 0.9999999)), 1.96 / np.sqrt(n - 3)
    return float(np.tanh(z - half)), float(np.tanh(z + half))
