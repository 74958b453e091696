"""Figures of notebook 03: the grid of runs, their curves, and loss against ranking."""

from __future__ import annotations

from typing import Any

import matplotlib.patheffects as effects
import numpy as np
import pandas as pd
import seaborn as sns
from scipy import stats

from repro.show import style
from repro.show.style import Drawing

METRICS = {"mrr10": "MRR@10", "recall100": "Recall@100", "ndcg10": "nDCG@10", "map10": "MAP@10"}
LOSSES = {"mael": "MAEL", "test_entropy": "contrastive entropy"}
MARKS = {"turned": "", "plateau": " ~", "censored": " ≤", "diverged": " ✗"}


def by_size(table: pd.DataFrame, n: str = "n_encoder") -> list[str]:
    """The models of a grid table, smallest first."""
    return [str(model) for model in table.groupby("model")[n].first().sort_values().index]


@style.drawn
def heat_map(table: pd.DataFrame, n: str = "n_encoder") -> Drawing:
    """MAEL (nats) of each cell, mean over seeds; sizes rise to the right, models upward."""
    models = by_size(table, n)[::-1]
    mean = table.pivot_table(index="model", columns="d", values="mael").loc[models]
    states = table.groupby(["model", "d"])["state"].agg(lambda s: max(s, key=list(MARKS).index))
    spread = table.groupby(["model", "d"])["mael"].std()
    notes = mean.copy().astype(object)
    for model in mean.index:
        for d in mean.columns:
            mark = MARKS[states.get((model, d), "turned")]
            notes.loc[model, d] = (
                f"{mean.loc[model, d]:.2f}{mark}" if mean.loc[model, d] > 0 else ""
            )
            if spread.get((model, d), 0) > 0:
                notes.loc[model, d] += f"\n± {spread[model, d]:.3f}"
    figure, axes = style.panels(height=0.9 + 0.55 * len(models))
    sns.heatmap(
        mean, annot=notes, fmt="", cmap="viridis_r", ax=axes, linewidths=1.5,
        annot_kws={"fontsize": 10}, cbar_kws={"label": "MAEL (nats)"},
    )  # fmt: skip
    sizes = table.groupby("model")[n].first()
    axes.set_yticklabels([f"{m}\nN = {style.count(sizes[m])}" for m in models], rotation=0)
    axes.set_xticklabels([f"{d:,}" for d in mean.columns], rotation=0)
    axes.tick_params(length=0)
    axes.set(xlabel="D, labelled pairs", ylabel="", title=_title(table))
    low, high = mean.min().min(), mean.max().max()
    alt = (
        f"Heat map of MAEL over {len(models)} models and {mean.shape[1]} data sizes. "
        f"It runs from {high:.2f} nats ({_where(mean, high)}) down to {low:.2f} ({_where(mean, low)})."
    )
    data = {"d": list(mean.columns), "models": models, "mael_nats": mean.to_numpy()}
    return Drawing(figure=figure, name="mael_heat_map", alt=alt, data=data)


@style.drawn
def curves(readings: pd.DataFrame, table: pd.DataFrame, n: str = "n_encoder") -> Drawing:
    """Validation loss over lr-steps, a panel a model, a line a data size; minima marked."""
    models, sizes = by_size(table, n), sorted(table["d"].unique())
    colours = dict(zip(sizes, style.ordered(len(sizes), "plasma"), strict=True))
    columns = min(3, len(models))
    rows = -(-len(models) // columns)
    figure, axes = style.panels(rows, columns, height=0.8 + 2.6 * rows, sharex=True, sharey=True)
    panels = np.ravel(axes)
    steps = readings[readings["lr_steps"] > 0]
    for k, (panel, model) in enumerate(zip(panels, models, strict=False)):
        for (d, _), line in steps[steps["model"] == model].groupby(["d", "seed"]):
            panel.plot(line["lr_steps"], line["loss"], color=colours[d], linewidth=1.2)
            best = line.nsmallest(1, "loss").iloc[0]
            panel.plot(
                best["lr_steps"], best["loss"], "o", color=colours[d], markeredgecolor="white"
            )
        start = table.loc[table["model"] == model, "zero_shot"].mean()
        panel.axhline(start, color=style.FAINT, linestyle=":", linewidth=1.2)
        panel.set_title(model)
        if k == 0:
            before = panel.annotate(
                "before training", (0.97, start), (0, 3), xycoords=("axes fraction", "data"),
                textcoords="offset points", ha="right", fontsize=8, color=style.FAINT,
            )  # fmt: skip
            before.set_path_effects([effects.withStroke(linewidth=2.5, foreground="white")])
    for panel in panels[len(models) :]:
        panel.set_axis_off()
    for panel in panels[max(0, len(models) - columns) : len(models)]:
        panel.tick_params(labelbottom=True)  # also above a panel that is left empty
    handles = [_dot(colours[d], "o", f"{d:,}") for d in sizes]
    figure.legend(handles=handles, loc="outside right upper", title="D, pairs", fontsize=8.5)
    figure.supylabel("validation loss (nats)", fontsize=10)
    low, high = table["mael"].min(), max(table["zero_shot"].max(), table["mael"].max())
    for panel in panels:
        _few_ticks(panel.xaxis, float(steps["lr_steps"].min()), float(steps["lr_steps"].max()))
    panels[0].set_ylim(low - 0.16 * (high - low), high + 0.15 * (high - low))
    figure.supxlabel("lr-steps (sum of learning rates over the reference rate)", fontsize=10)
    figure.suptitle(f"Curves of {len(table)} runs; dots: minima (MAEL)", **SUPER)
    states = ", ".join(f"{v} {k}" for k, v in table["state"].value_counts().items())
    alt = (
        f"Validation loss over lr-steps for {len(models)} models, one line for each of {len(sizes)} data "
        f"sizes; dots mark the minima, from {table['mael'].max():.2f} to {table['mael'].min():.2f} nats. "
        f"States of the runs: {states}."
    )
    kept = readings[["model", "d", "seed", "step", "lr_steps", "loss"]]
    return Drawing(figure=figure, name="curves", alt=alt, data=kept.to_dict("list"))


@style.drawn
def metrics(table: pd.DataFrame, against: str = "mael", n: str = "n_encoder") -> Drawing:
    """Each ranking metric against a loss: a colour a model, a marker a data size, line and 95 % band.

    table: one row a cell, means over its seeds (`experiments.replicates.cell_means`).

    against: mael (of the validation pairs) or test_entropy (of the pairs that are ranked).
    """
    models, sizes = by_size(table, n), sorted(table["d"].unique())
    colours = dict(zip(models, style.ordered(len(models)), strict=True))
    markers = {d: style.MARKERS[k % len(style.MARKERS)] for k, d in enumerate(sizes)}
    figure, axes = style.panels(2, 2, height=5.6, sharex=True)
    rs: dict[str, float] = {}
    for panel, (metric, title) in zip(np.ravel(axes), METRICS.items(), strict=True):
        used = table.dropna(subset=[against, metric])
        rs[title] = _line(panel, used[against].to_numpy(float), used[metric].to_numpy(float))
        for _, run in used.iterrows():
            panel.plot(run[against], run[metric], markers[run["d"]], color=colours[run["model"]],
                       markeredgecolor="white", markersize=7)  # fmt: skip
        panel.set_title(f"{title}   r = {rs[title]:.3f}")
    for panel in np.ravel(axes)[-2:]:
        panel.set_xlabel(f"{LOSSES[against]} (nats)")
    handles = [_dot(colours[m], "o", m) for m in models]
    handles += [_dot(style.FAINT, markers[d], f"D = {d:,}") for d in sizes]
    figure.legend(handles=handles, loc="outside right upper", fontsize=8.5)
    figure.suptitle(
        f"Ranking on the test pairs against {LOSSES[against]}, {len(table)} cells", **SUPER
    )
    said = ", ".join(f"{title} {r:.3f}" for title, r in rs.items())
    alt = (
        f"Four panels: ranking metrics of {len(table)} cells against {LOSSES[against]}, with a straight "
        f"line and its 95 % band. Pearson correlations: {said}."
    )
    columns = ["model", "d", against, *METRICS]
    return Drawing(
        figure=figure,
        name=f"metrics_against_{against}",
        alt=alt,
        data=table[columns].to_dict("list"),
    )


SUPER: dict[str, Any] = {"x": 0.01, "ha": "left", "fontsize": 10.5, "fontweight": "bold"}


def _line(panel: Any, x: np.ndarray, y: np.ndarray) -> float:
    """Draw the least-squares line of y on x with the 95 % band of its mean; returns Pearson's r."""
    if len(x) < 3 or np.ptp(x) == 0:
        return float("nan")
    fitted = stats.linregress(x, y)
    grid = np.linspace(x.min(), x.max(), 50)
    spread = np.sqrt(np.sum((y - fitted.intercept - fitted.slope * x) ** 2) / max(len(x) - 2, 1))
    error = spread * np.sqrt(1 / len(x) + (grid - x.mean()) ** 2 / np.sum((x - x.mean()) ** 2))
    half = stats.t.ppf(0.975, max(len(x) - 2, 1)) * error
    middle = fitted.intercept + fitted.slope * grid
    panel.fill_between(
        grid, middle - half, middle + half, color=style.FAINT, alpha=0.15, linewidth=0
    )
    panel.plot(grid, middle, color=style.FAINT, linewidth=1.2)
    return float(fitted.rvalue)


def _dot(colour: str, marker: str, label: str) -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], color=colour, marker=marker, linestyle="", label=label, markersize=6)


def _few_ticks(axis: Any, low: float, high: float) -> None:
    """Powers of ten on the logarithmic axis of a narrow panel; finer ones where there are not two."""
    exponents = np.arange(np.ceil(np.log10(low)), np.floor(np.log10(high)) + 1)
    if len(exponents) > 1:
        style.log_axis(axis, (10.0**exponents).tolist(), "")
    else:
        style.log_ticks(axis, low, high, "")


def _title(table: pd.DataFrame) -> str:
    cells = len(table[["model", "d"]].drop_duplicates())
    several = int((table.groupby(["model", "d"]).size() > 1).sum())
    said = f"MAEL of {cells} cells" + (
        f"; {several} of them the mean of several seeds ± sd" if several else ", one seed each"
    )
    marks = {"plateau": "~ plateau", "censored": "≤ still falling", "diverged": "✗ diverged"}
    found = [text for state, text in marks.items() if (table["state"] == state).any()]
    return said + (f"   ({', '.join(found)})" if found else "")


def _where(mean: pd.DataFrame, value: float) -> str:
    row, column = np.argwhere(mean.to_numpy() == value)[0]
    return f"{mean.index[row]} on {mean.columns[column]:,} pairs"
