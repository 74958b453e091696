"""Figures of notebook 06: steps to the minimum, efficiencies, lines of equal compute, dollars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from repro.show import style
from repro.show.style import Drawing

PRINTED = {"raw": "printed steps are raw", "lr_steps": "printed steps are lr-steps"}
SCALE = (0.1, 10.0)  # of ratios that are drawn; beyond it an arrow


@style.drawn
def steps(found: Mapping[str, Any]) -> Drawing:
    """Raw steps to the minimum against D, a line a model: the steps law, and what it leaves below.

    found: rows (model, n, d, steps, state, at_first) and law (k, a, b; None where not determined).
    """
    frame = pd.DataFrame(list(found["rows"]))
    if frame.empty:
        return _nothing("steps_along_d", "no run has a minimum", dict(found))
    figure, (top, below) = style.panels(2, 1, height=5.0, sharex=True, height_ratios=[3, 1])
    size = frame.groupby("model")["n"].first().sort_values()
    law, ends, residuals = found["law"], [], []
    hollow = bool(((frame["state"] == "censored") | frame["at_first"]).any())
    for model, colour in zip(size.index, style.ordered(len(size)), strict=True):
        runs = frame[frame["model"] == model]
        d, y = runs["d"].to_numpy(float), runs["steps"].to_numpy(float)
        bound = (runs["state"] == "censored") | runs["at_first"]
        fill = ["white" if is_bound else colour for is_bound in bound]
        top.scatter(d, y, s=30, c=fill, edgecolors=colour, zorder=3)
        end = float(np.median(y[d == d.max()]))
        if law:
            line = np.geomspace(frame["d"].min(), frame["d"].max(), 30)
            top.plot(line, _steps(law, size[model], line), color=colour, linewidth=1.3)
            off = y / _steps(law, size[model], d)
            below.scatter(d, off, s=14, c=fill, edgecolors=colour)
            residuals += off[~bound.to_numpy()].tolist()
            end = float(_steps(law, size[model], line[-1:])[0])
        ends.append((float(frame["d"].max()), end, str(model), colour))
    style.log_ticks(
        top.yaxis, frame["steps"].min() * 0.8, frame["steps"].max() * 1.2, "S, raw steps"
    )
    style.log_axis(below.xaxis, frame["d"].unique().tolist(), "D, labelled pairs")
    style.label_ends(top, ends)
    below.axhline(1, color=style.FAINT, linewidth=0.8)
    below.set_ylabel("S over the law")
    below.set_ylim(0, max([2.0, *(1.1 * r for r in residuals)]))
    below.yaxis.set_major_locator(MaxNLocator(4))
    title = "Steps to the minimum"
    said = "No law of the steps is determined."
    if law:
        title += f": S = k N^-a D^b, a = {law['a']:.3f}, b = {law['b']:.3f}"
        title += " (hollow: bounds)" if hollow else ""
        low, high = (100 * (f(residuals) - 1) for f in (min, max)) if residuals else (0.0, 0.0)
        said = f"Law: a = {law['a']:.3f}, b = {law['b']:.3f}; runs lie {low:+.0f} to {high:+.0f} % off."
    top.set_title(title)
    alt = f"Raw steps to the minimum against labelled pairs for {len(size)} models, both logarithmic. {said}"
    return Drawing(figure=figure, name="steps_along_d", alt=alt, data=dict(found))


@style.drawn
def ratios(
    readings: Sequence[Mapping[str, Any]], papers: Sequence[Mapping[str, Any]], most: float
) -> Drawing:
    """Efficiencies of model and data, and their ratio, under each reading of a step; 95 % intervals.

    papers: what the printed steps law implies, if its steps are raw and if they are lr-steps.
    Ratios of `most` have no end.
    """
    figure, (left, right) = style.panels(1, 2, height=1.4 + 0.62 * len(readings), sharey=True)
    for y, row in enumerate(readings[::-1]):
        for key, shift, colour in (("model", 0.13, 0), ("data", -0.13, 1)):
            _bar(left, y + shift, row[key], style.CATEGORIES[colour])
        _bar(right, y, row["ratio"], style.CATEGORIES[2], limits=SCALE)
        for k, printed in enumerate(PRINTED):
            for paper in papers:
                if (paper["reading"], paper["printed"]) == (row["name"], printed):
                    _paper(right, y - 0.17 - 0.13 * k, paper["ratio"], k, most)
    left.set_yticks(range(len(readings)), [row["title"] for row in readings[::-1]])
    left.set_ylim(-0.6, len(readings) - 0.5)
    left.axvline(0, color=style.FAINT, linewidth=0.8)
    left.set_xlabel("- d log MAEL / d log compute")
    left.set_title("efficiencies: model (blue), data (orange)", fontsize=9.5)
    right.axvline(1, color=style.INK, linewidth=1)
    style.log_ticks(right.xaxis, *SCALE, "ratio: above 1, the larger model first")
    right.set_xlim(SCALE[0] / 1.15, SCALE[1] * 1.3)
    right.set_title("ours (●); paper's, if raw (◇) or lr (△)", fontsize=9.5)
    said = "; ".join(
        f"{row['title']} {row['ratio']['value']:.2f}"
        + (f" [{ends[0]:.2f}, {ends[1]:.2f}]" if (ends := row["ratio"]["ci95"]) else "")
        for row in readings
        if row["ratio"]["value"] is not None
    )
    alt = (
        f"Efficiencies and their ratio under {len(readings)} readings of a step, 95 % intervals. "
        f"Ratio: {said or 'not determined'}. Diamonds and triangles: what the paper's printed law implies "
        "if its steps are raw, or lr-steps."
    )
    data = {"readings": [dict(row) for row in readings], "papers": [dict(row) for row in papers]}
    return Drawing(figure=figure, name="efficiencies", alt=alt, data=data)


@style.drawn
def equal_compute(found: Mapping[str, Any]) -> Drawing:
    """MAEL against N along lines of equal compute: the law (lines) and measured cells (dots)."""
    lines = [line for line in found["lines"] if len(line["law"]) > 1 or line["cells"]]
    if not lines:
        return _nothing(
            "equal_compute", "no line of equal compute lies inside the grid", dict(found)
        )
    figure, axes = style.panels(height=4.0)
    n, losses = [], []
    for line, colour in zip(lines, style.ordered(len(lines), "plasma"), strict=True):
        law, cells = (pd.DataFrame(line[key], columns=["n", "loss"]) for key in ("law", "cells"))
        axes.plot(law["n"], law["loss"], color=colour)
        axes.plot(cells["n"], cells["loss"], "o--", color=colour, linewidth=0.9)
        both = pd.concat([law, cells])
        n += both["n"].tolist()
        losses += both["loss"].tolist()
        last = both.sort_values("n").iloc[-1]
        axes.annotate(f"{line['flop']:.1e} FLOP", (last["n"], last["loss"]), (5, -10), fontsize=8.5,
                      textcoords="offset points", color=style.darker(colour))  # fmt: skip
    style.log_axis(axes.xaxis, found["n"], "N, parameters (encoder)")
    axes.set_xlim(min(n) / 1.15, max(n) * 1.6)
    style.log_ticks(axes.yaxis, min(losses) * 0.97, max(losses) * 1.03, "MAEL (nats)")
    axes.set_ylim(min(losses) * 0.96, max(losses) * 1.04)
    axes.set_title(f"Lines of equal compute: {found['law'] or 'no law'}; dots: measured cells")
    pairs = "; ".join(
        f"{row['small']} to {row['large']} {100 * row['difference']['value']:+.1f} %"
        for row in found["pairs"]
        if row["difference"]["value"] is not None
    )
    alt = (
        f"MAEL against model size along {len(lines)} lines of equal FLOP, fewer pairs to the right. "
        f"Change of MAEL from one model to the next on measured cells: {pairs or 'none measured'}."
    )
    return Drawing(figure=figure, name="equal_compute", alt=alt, data=dict(found))


@style.drawn
def corner(found: Mapping[str, Any] | None) -> Drawing:
    """The model that is the best purchase: budgets (up) by passages served (to the right)."""
    if not found:
        return _nothing("dollars", "there are not enough runs for a plan in dollars", {})
    models, best = found["models"], found["map"]
    values = np.array([[np.nan if cell is None else cell for cell in row] for row in best], float)
    colours = style.ordered(len(models), "viridis")
    figure, axes = style.panels(height=4.2)
    norm = BoundaryNorm(np.arange(len(models) + 1) - 0.5, len(models))
    passages, budgets = np.array(found["passages"]), np.array(found["budgets"])
    axes.pcolormesh(
        _edges(passages), _edges(budgets), values, cmap=ListedColormap(colours), norm=norm,
        rasterized=True,
    )  # fmt: skip
    style.log_axis(
        axes.xaxis, [10.0**k for k in range(6, 14)], "passages encoded over the system's life"
    )
    style.log_ticks(axes.yaxis, budgets[0], budgets[-1], "budget (USD)")
    axes.grid(False)
    handles = [Patch(color=c, label=m) for m, c in zip(models, colours, strict=True)]
    handles.append(Patch(facecolor="white", edgecolor=style.FAINT, label="nothing can be paid for"))
    axes.legend(handles=handles[::-1], loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=9)
    axes.set_title("The best purchase: labels, training and serving paid from one budget")
    shares = [float(np.mean(values[np.isfinite(values)] == k)) for k in range(len(models))]
    said = ", ".join(f"{m} {100 * s:.0f} %" for m, s in zip(models, shares, strict=True))
    alt = (
        f"Map of the best of {len(models)} models over budgets from {budgets[0]:,.0f} to "
        f"{budgets[-1]:,.0f} USD and {passages[0]:.0e} to {passages[-1]:.0e} passages served. Shares of the "
        f"plans that can be paid for: {said}."
    )
    return Drawing(figure=figure, name="dollars", alt=alt, data=dict(found))


def _steps(law: Mapping[str, float], n: float, d: np.ndarray) -> np.ndarray:
    return np.asarray(law["k"] * n ** -law["a"] * d ** law["b"])


def _bar(
    axes: Any, y: float, found: Mapping[str, Any], colour: str,
    limits: tuple[float, float] | None = None,
) -> None:  # fmt: skip
    """A value with its interval; cut at `limits`, with an arrow where it leaves them."""
    if found["value"] is None:
        axes.text(0.02, y, "no end, or not known", va="center", fontsize=8, color=style.FAINT,
                  transform=axes.get_yaxis_transform())  # fmt: skip
        return
    low, high = limits or (-np.inf, np.inf)
    if found["ci95"]:
        axes.plot(np.clip(found["ci95"], low, high), [y, y], color=colour, linewidth=2.4, alpha=0.5)
    value = float(np.clip(found["value"], low, high))
    marker = "o" if low < found["value"] < high else ">" if found["value"] >= high else "<"
    axes.plot(value, y, marker, color=colour, markersize=7)
    axes.annotate(f"{found['value']:.3g}" if marker == "o" else "beyond", (value, y), (0, 6),
                  textcoords="offset points", ha="center", fontsize=8.5)  # fmt: skip


def _paper(axes: Any, y: float, ratio: float, k: int, most: float) -> None:
    endless = ratio >= most
    axes.plot(min(ratio, SCALE[1]), y, "D^"[k], color=style.INK, markersize=5, fillstyle="none")
    text = "no end" if endless else f"{ratio:.2f}"
    axes.annotate(text, (min(ratio, SCALE[1]), y), (-6, 0) if endless else (6, 0),
                  textcoords="offset points", va="center", ha="right" if endless else "left",
                  fontsize=7.5, color=style.FAINT)  # fmt: skip


def _edges(centres: np.ndarray) -> np.ndarray:
    logs = np.log(centres)
    half = (logs[1] - logs[0]) / 2
    return np.asarray(np.exp(np.append(logs - half, logs[-1] + half)))


def _nothing(name: str, why: str, data: dict[Any, Any]) -> Drawing:
    figure, axes = style.panels(height=1.2)
    axes.set_axis_off()
    axes.text(0.5, 0.5, why, ha="center", va="center", color=style.FAINT)
    return Drawing(figure=figure, name=name, alt=f"An empty figure, because {why}.", data=data)
