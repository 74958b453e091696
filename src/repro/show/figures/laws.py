"""Figures of notebook 04: the law through the grid, its rivals, local slopes, what N counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.ticker import MaxNLocator

from repro.laws.fit import Fit
from repro.show import style
from repro.show.figures.grid import by_size
from repro.show.style import Drawing

HOLD_OUTS = {
    "loo_model_mre": "one model left out",
    "loo_size_mre": "one data size left out",
    "corner_mre": "corner predicted",
}


@style.drawn
def along_d(table: pd.DataFrame, fitted: Fit, n: str = "n_encoder") -> Drawing:
    """MAEL against D, a line a model: the law with its 95 % band, and what it leaves below."""
    return _along("d", table, fitted, n)


@style.drawn
def along_n(table: pd.DataFrame, fitted: Fit, n: str = "n_encoder") -> Drawing:
    """MAEL against N, a line a data size: the law with its 95 % band, and what it leaves below."""
    return _along("n", table, fitted, n)


@style.drawn
def forms(laws: Mapping[str, Mapping[str, Any]]) -> Drawing:
    """Mean relative error of each law on cells that it did not see, three ways to hold out."""
    known = {name: law for name, law in laws.items() if law.get("params")}
    order = sorted(known, key=lambda name: _worst(known[name]))
    figure, axes = style.panels(1, 3, height=0.9 + 0.36 * max(len(order), 3), sharey=True)
    rows = np.arange(len(order))[::-1]
    every = [100 * known[f][key] for f in order for key in HOLD_OUTS if known[f].get(key)]
    low, high = (min([*every, 3.0]) / 1.6, 100.0)
    for panel, (key, title) in zip(np.ravel(axes), HOLD_OUTS.items(), strict=True):
        for y, name in zip(rows, order, strict=True):
            colour = style.CATEGORIES[0] if name.startswith("product") else style.CATEGORIES[1]
            worst = known[name].get(key.replace("_mre", "_worst"))
            _error(panel, y, known[name].get(key), worst, colour, low, high)
        panel.set_xlim(low, 2.2 * high)
        panel.set_ylim(-0.6, len(order) - 0.4)
        style.log_ticks(panel.xaxis, low, high, "relative error (%)")
        panel.set_title(title, fontsize=9.5)
    np.ravel(axes)[0].set_yticks(rows, [known[name].get("title", name) for name in order])
    cells = next(iter(known.values()))["n"] if known else 0
    best = known[order[0]].get("title", order[0]) if order else "none"
    alt = (
        f"Dots: mean relative error of {len(order)} laws on those of {cells} cells of a grid that they did "
        f"not see. Smallest worst error: the {best}, {100 * _worst(known[order[0]]):.1f} %."
        if order
        else "No law could be fitted."
    )
    data = {name: {key: known[name].get(key) for key in HOLD_OUTS} for name in order}
    return Drawing(figure=figure, name="forms", alt=alt, data=data)


@style.drawn
def local_slopes(rows: Sequence[Mapping[str, Any]], regime: Mapping[str, Any]) -> Drawing:
    """Slope of MAEL between neighbouring data sizes: each model, and the mean with its interval."""
    frame = pd.DataFrame(list(rows))
    figure, axes = style.panels(height=3.5)
    x = np.sqrt((frame["d_low"] * frame["d_high"]).to_numpy(float))
    models = [c for c in frame.columns if c.startswith("model:")]
    ends = []
    for column, colour in zip(models, style.ordered(len(models)), strict=True):
        axes.plot(x, frame[column].astype(float), "-", color=colour, alpha=0.75, linewidth=1.1)
        ends.append((x[-1], float(frame[column].iloc[-1] or np.nan), column[6:], colour))
    mean, low, high = (frame[c].astype(float).to_numpy() for c in ("slope", "low", "high"))
    axes.errorbar(
        x, mean, np.abs([mean - low, high - mean]), fmt="o", color=style.INK, capsize=4, zorder=4
    )
    sizes = regime["sizes"]
    if sizes:
        axes.axvspan(sizes[0], sizes[-1], color=style.CATEGORIES[2], alpha=0.10, linewidth=0)
        axes.text(np.sqrt(sizes[0] * sizes[-1]), 0.97, "power-law regime", color=style.CATEGORIES[2],
                  transform=axes.get_xaxis_transform(), ha="center", va="top", fontsize=9)  # fmt: skip
    axes.axhline(0, color=style.FAINT, linewidth=0.8)
    style.log_axis(
        axes.xaxis, regime["all_sizes"], "D, labelled pairs (slope drawn between two sizes)"
    )
    axes.set_xlim(regime["all_sizes"][0] * 0.9, regime["all_sizes"][-1] * 1.1)
    axes.set_ylabel("local slope, -d log MAEL / d log D")
    axes.set_title(
        f"Local slopes in D: mean of {len(models)} models with 95 % t-interval; lines: models"
    )
    style.label_ends(axes, [end for end in ends if np.isfinite(end[1])])
    listed = ", ".join(f"{m:.3f}" for m in mean)
    alt = (
        f"Local slopes of MAEL in D, mean over {len(models)} models: {listed}. {regime['reason']}."
    )
    return Drawing(
        figure=figure, name="local_slopes", alt=alt, data={"rows": frame.to_dict("list")}
    )


@style.drawn
def exponents(rows: Sequence[Mapping[str, Any]]) -> Drawing:
    """The exponent in N under each way of counting parameters, with its 95 % interval."""
    known = [row for row in rows if row.get("alpha")]
    figure, axes = style.panels(height=1.0 + 0.4 * max(len(known), 2))
    for y, row in enumerate(known[::-1]):
        value, ends = row["alpha"]["value"], row["alpha"]["ci95"]
        if ends:
            axes.plot(ends, [y, y], color=style.CATEGORIES[0], linewidth=2.4, alpha=0.5)
        axes.plot(value, y, "o", color=style.CATEGORIES[0], markersize=7)
        axes.annotate(
            f"{value:.3f}", (value, y), (0, 7), textcoords="offset points", ha="center", fontsize=9
        )
    axes.set_yticks(range(len(known)), [row["meaning"] for row in known[::-1]])
    axes.set_ylim(-0.5, len(known) - 0.3)
    axes.axvline(0, color=style.FAINT, linewidth=0.8)
    axes.set_xlabel(
        "alpha, exponent in N of the product law (95 % interval on the means of the models)"
    )
    axes.set_title("The exponent depends on what N counts")
    said = "; ".join(f"{row['meaning']}: {row['alpha']['value']:.3f}" for row in known)
    alt = f"The exponent in N under {len(known)} counts of parameters, with 95 % intervals. {said}."
    return Drawing(figure=figure, name="exponents", alt=alt, data={"rows": list(rows)})


@style.drawn
def learning_curve(rows: Sequence[Mapping[str, Any]]) -> Drawing:
    """Error on the largest corner against the number of cheapest runs that the law was fitted to."""
    frame = pd.DataFrame(list(rows), columns=["runs", "share", "mean", "worst"])
    figure, axes = style.panels(height=3.2)
    axes.plot(frame["runs"], 100 * frame["mean"], "o-", color=style.CATEGORIES[0])
    axes.plot(
        frame["runs"], 100 * frame["worst"], "--", color=style.CATEGORIES[0], linewidth=1, alpha=0.7
    )
    for _, row in frame.iterrows():
        note = f"{100 * row['share']:.0f} %"
        axes.annotate(note, (row["runs"], 100 * row["mean"]), (0, 6), textcoords="offset points",
                      ha="center", fontsize=8, color=style.FAINT)  # fmt: skip
    axes.axhline(10, color=style.CATEGORIES[1], linestyle=":", linewidth=1.3)
    axes.set_ylim(0, max(12.0, 110 * float(frame["worst"].max()) if len(frame) else 12.0))
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set(
        xlabel="cells fitted, cheapest first (above each point: share of the grid's N x D)",
        ylabel="error on the corner (%)",
        title="A few small cells: product law against the largest corner (dotted: the 10 % asked)",
    )
    said = (
        f"{100 * frame['mean'].iloc[0]:.1f} % after {frame['runs'].iloc[0]} runs, "
        f"{100 * frame['mean'].iloc[-1]:.1f} % after {frame['runs'].iloc[-1]}"
        if len(frame)
        else "not determined"
    )
    alt = f"Mean relative error of the product law on the largest corner as cheap runs are added: {said}."
    return Drawing(figure=figure, name="learning_curve", alt=alt, data=frame.to_dict("list"))


def _along(axis: str, table: pd.DataFrame, fitted: Fit, n: str) -> Drawing:
    used = table[~table["state"].isin(["diverged"])]
    x_name, line_name = ("d", "model") if axis == "d" else (n, "d")
    lines = by_size(used, n) if axis == "d" else sorted(used["d"].unique())
    colours = style.ordered(len(lines), "viridis" if axis == "d" else "plasma")
    figure, (top, below) = style.panels(2, 1, height=5.0, sharex=True, height_ratios=[3, 1])
    ends, residual = [], []
    fitted_sizes = set(fitted.table.columns["d"].tolist())
    for line, colour in zip(lines, colours, strict=True):
        runs = used[used[line_name] == line].sort_values(x_name)
        x, y = runs[x_name].to_numpy(float), runs["mael"].to_numpy(float)
        sizes, pairs = runs[n].to_numpy(float), runs["d"].to_numpy(float)
        grid = np.geomspace(used[x_name].min(), used[x_name].max(), 60)
        at = (sizes[0], grid) if axis == "d" else (grid, pairs[0])
        low, high = fitted.band(*at)
        top.fill_between(grid, low, high, color=colour, alpha=0.14, linewidth=0)
        top.plot(grid, fitted.predict(*at), color=colour, linewidth=1.3)
        error = 1.96 * runs["mael_se"].fillna(0).to_numpy(float)
        top.errorbar(x, y, error, fmt="none", color=colour, capsize=2.5, linewidth=1)
        fill = [colour if pair in fitted_sizes else "white" for pair in pairs]
        top.scatter(x, y, s=32, c=fill, edgecolors=colour, zorder=3)
        off = 100 * (y / fitted.predict(sizes, pairs) - 1)
        mean = pd.Series(off).groupby(x).mean()  # over the seeds of a cell
        below.plot(x, off, "o", color=colour, markersize=3.5)
        below.plot(mean.index, mean, color=colour, linewidth=0.8)
        residual += off.tolist()
        name = str(line) if axis == "d" else f"{line:,}"
        ends.append((grid[-1], float(fitted.predict(*at)[-1]), name, colour))
    cells = len(used[[n, "d"]].drop_duplicates())
    hollow = " (hollow: not)" if len(fitted.table) < cells else ""
    label = "D, labelled pairs" if axis == "d" else f"N, parameters ({n.removeprefix('n_')})"
    style.log_ticks(top.yaxis, used["mael"].min() * 0.9, used["mael"].max() * 1.1, "MAEL (nats)")
    top.set_ylim(used["mael"].min() * 0.88, used["mael"].max() * 1.12)
    style.log_axis(below.xaxis, used[x_name].unique().tolist(), label)
    style.label_ends(top, ends)
    if axis == "n":
        top.text(1.02, 1.0, "D, pairs", transform=top.transAxes, fontsize=8.5, color=style.FAINT)
    below.axhline(0, color=style.FAINT, linewidth=0.8)
    below.set_ylabel("residual (%)")
    below.margins(y=0.2)
    below.yaxis.set_major_locator(MaxNLocator(4))
    exponents_ = ", ".join(f"{k} = {v:.3g}" for k, v in fitted.parameters.items())
    top.set_title(
        f"{fitted.form.title}  ${fitted.form.latex}$,  {len(fitted.table)} of {cells} cells fitted{hollow}"
    )
    alt = (
        f"MAEL against {label} on logarithmic axes with the {fitted.form.title} ({exponents_}) drawn "
        f"through; bars: 95 % of the evaluation sample; bands: 95 % of the law. "
        f"Residuals lie between {min(residual):.1f} and {max(residual):.1f} %."
    )
    data = {"runs": used[["model", n, "d", "seed", "mael", "mael_se", "state"]].to_dict("list"),
            "residual_percent": residual, "parameters": fitted.parameters}  # fmt: skip
    return Drawing(figure=figure, name=f"mael_along_{axis}", alt=alt, data=data)


def _error(
    panel: Any,
    y: float,
    mean: float | None,
    worst: float | None,
    colour: str,
    low: float,
    high: float,
) -> None:
    """A dot at the mean error (%), a line to the worst cell, and the mean in words."""
    if mean is None:
        panel.text(low * 1.2, y, "not determined", va="center", fontsize=8, color=style.FAINT)
        return
    x, end = min(100 * mean, high), min(100 * (worst or mean), high)
    panel.plot([x, end], [y, y], color=colour, linewidth=1.6, alpha=0.5)
    panel.plot(x, y, "o", color=colour, markersize=7)
    text = f"{100 * mean:.1f}" if mean < 1 else "over 100"
    panel.annotate(text, (x, y), (0, 6), textcoords="offset points", ha="center", fontsize=8)


def _worst(law: Mapping[str, Any]) -> float:
    return max((law[key] for key in HOLD_OUTS if law.get(key) is not None), default=float("inf"))
