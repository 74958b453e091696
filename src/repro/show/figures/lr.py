"""Figures of notebook 02: MAEL against the learning rate, curves over two axes, likeness of vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from repro.show import style
from repro.show.figures.grid import SUPER
from repro.show.style import Drawing

# Comparisons of experiments.likeness, from alike to unlike: what stands at the bar.
BARS = {
    "rates": "two rates",
    "seeds": "two seeds",
    "other D": "two data sizes",
    "start": "a run and its start",
    "noise": "a run and noise",
}
AXES = {"step": "steps", "lr_steps": "lr-steps (sum of rates over the reference)"}


@style.drawn
def mael_against_lr(table: pd.DataFrame) -> Drawing:
    """MAEL against the rate, a line a data size; hollow: a run without a minimum of its own.

    table: from `experiments.lr_invariance.table`; several seeds of a rate are dots, the line is their
    mean.
    """
    own = table[table["role"] == "rate"]
    sizes = sorted(own["d"].unique())
    colours = dict(zip(sizes, style.ordered(len(sizes), "plasma"), strict=True))
    figure, axes = style.panels(height=3.8)
    ends = []
    for d in sizes:
        runs = own[own["d"] == d]
        mean = runs.groupby("lr")["mael"].mean()
        axes.plot(mean.index, mean, color=colours[d], zorder=2)
        for whole, face in ((True, colours[d]), (False, "white")):
            some = runs[runs["reached"] == whole]
            axes.plot(some["lr"], some["mael"], "o", mfc=face, mec=colours[d], zorder=3)
        if np.isfinite(mean.iloc[-1]):
            ends.append((mean.index[-1], float(mean.iloc[-1]), f"D = {d:,}", colours[d]))
    style.log_axis(axes.xaxis, sorted(own["lr"].unique()), "learning rate")
    axes.xaxis.set_ticklabels([f"{lr:.2g}" for lr in axes.xaxis.get_majorticklocs()])
    axes.set_ylabel("MAEL (nats)")
    style.label_ends(axes, ends)
    hollow = int((~own["reached"]).sum())
    axes.set_title(
        f"MAEL of {own['model'].iloc[0]} at {own['lr'].nunique()} rates"
        + (f"   (hollow: {hollow} without a minimum of their own)" if hollow else "")
    )
    said = "; ".join(
        f"D = {d:,}: {group['mael'].min():.3f} to {group['mael'].max():.3f}"
        for d, group in own.dropna(subset=["mael"]).groupby("d")
    )
    alt = (
        f"MAEL (nats) against the learning rate, {own['lr'].min():.2g} to {own['lr'].max():.2g}, a line for "
        f"each of {len(sizes)} data sizes. Lowest and highest: {said}. "
        f"{hollow} of {len(own)} runs did not reach a minimum."
    )
    columns = ["d", "seed", "lr", "mael", "state", "reached"]
    return Drawing(
        figure=figure, name="mael_against_lr", alt=alt, data=own[columns].to_dict("list")
    )


@style.drawn
def curves(
    readings: pd.DataFrame, table: pd.DataFrame, collapse: Sequence[Mapping[str, Any]]
) -> Drawing:
    """Validation loss over steps (left) and over lr-steps (right), a row of panels a data size.

    readings, table: from `experiments.lr_invariance`, of which one seed is drawn; collapse: rows of
    `experiments.collapse.spreads`, whose ratio stands over the panels.
    """
    own = table[table["role"] == "rate"]
    own = own[own["seed"] == own["seed"].min()]
    sizes, rates = sorted(own["d"].unique()), sorted(own["lr"].unique())
    colours = dict(zip(rates, style.ordered(len(rates)), strict=True))
    used = readings[(readings["role"] == "rate") & (readings["seed"] == own["seed"].min())]
    used = used[np.isfinite(used["loss"]) & (used["lr_steps"] > 0)]
    figure, axes = style.panels(
        len(sizes), 2, height=0.9 + 1.9 * len(sizes), sharex="col", sharey="row", squeeze=False
    )
    ratios = {row["d"]: row["ratio"] for row in reversed(collapse) if row["of"] == "reached"}
    for row, d in zip(axes, sizes, strict=True):
        start = float(own.loc[own["d"] == d, "zero_shot"].mean())
        for panel, axis in zip(row, AXES, strict=True):
            lowest = [start]
            for lr, line in used[used["d"] == d].groupby("lr"):
                colour = colours[lr]
                panel.plot(line[axis], line["loss"], color=colour, linewidth=1.2)
                best = line.loc[line["loss"].idxmin()]
                panel.plot(best[axis], best["loss"], "o", color=colour, markeredgecolor="white")
                lowest.append(float(best["loss"]))
            panel.axhline(start, color=style.FAINT, linestyle=":", linewidth=1.2)
            fall = max(start - min(lowest), 0.05)
            panel.set_ylim(min(lowest) - 0.12 * fall, start + 0.35 * fall)
        row[0].set_title(f"D = {d:,}")
        ratio = ratios.get(int(d))
        row[1].set_title("" if ratio is None else f"spread here / left: {ratio:.2f}")
    for panel, (axis, label) in zip(axes[-1], AXES.items(), strict=True):
        low, high = float(used[axis].min()), float(used[axis].max())
        style.log_ticks(panel.xaxis, low, high, label)
    figure.supylabel("validation loss (nats)", fontsize=10)
    handles = [
        Line2D([], [], color=colours[lr], marker="o", markeredgecolor="white", label=f"{lr:.2g}")
        for lr in rates
    ]
    figure.legend(handles=handles, loc="outside right upper", title="rate", fontsize=8.5)
    figure.suptitle(f"Curves of {len(own)} runs; dots: minima; dotted: before training", **SUPER)
    said = ", ".join(
        f"D = {d:,}: {ratio:.2f}" for d, ratio in sorted(ratios.items()) if ratio is not None
    )
    alt = (
        f"Validation loss of {len(rates)} learning rates at {len(sizes)} data sizes, over steps at the left "
        "and over lr-steps at the right. Spread of the curves over lr-steps as a share of that over "
        f"steps, before the first minimum: {said or 'not determined'}."
    )
    data = used[["d", "lr", "step", "lr_steps", "loss"]].to_dict("list")
    return Drawing(figure=figure, name="lr_curves", alt=alt, data=data)


@style.drawn
def likeness(rows: Sequence[Mapping[str, Any]]) -> Drawing:
    """CKA between best checkpoints, a bar a kind of comparison: debiased (full) over biased (pale).

    rows: from `experiments.likeness`; those between rates count where both reached their minimum.  Bars
    are means, whiskers reach from the least to the most alike.
    """
    frame = pd.DataFrame(
        [row for row in rows if row["debiased"] is not None],
        columns=["kind", "text", "reached", "debiased", "biased"],
    )
    frame = frame[(frame["kind"] != "rates") | frame["reached"].astype(bool)]
    kinds = [kind for kind in BARS if (frame["kind"] == kind).any()]
    texts = [text for text in ("queries", "passages") if (frame["text"] == text).any()] or ["texts"]
    figure, axes = style.panels(
        1, len(texts), height=1.2 + 0.45 * max(len(kinds), 2), sharey=True, squeeze=False
    )
    places = np.arange(len(kinds))[::-1]
    said = []
    for panel, text in zip(axes[0], texts, strict=True):
        for y, kind in zip(places, kinds, strict=True):
            own = frame[(frame["kind"] == kind) & (frame["text"] == text)]
            colour = style.CATEGORIES[0] if kind in ("rates", "seeds") else style.CATEGORIES[1]
            mean = float(own["debiased"].mean())
            panel.barh(y + 0.13, own["biased"].mean(), 0.5, color=colour, alpha=0.3)
            panel.barh(y - 0.05, mean, 0.5, color=colour)
            ends = [[mean - own["debiased"].min()], [own["debiased"].max() - mean]]
            panel.errorbar(mean, y - 0.05, xerr=ends, fmt="none", ecolor=style.INK, capsize=3)
            most = max(own["debiased"].max(), own["biased"].mean())
            panel.text(max(most, 0) + 0.03, y, f"{mean:.2f}", va="center", fontsize=9)
            said.append(f"{BARS[kind]}, {text}: {mean:.2f} (biased {own['biased'].mean():.2f})")
        panel.set(title=text, xlabel="CKA", xlim=(min(0.0, frame["debiased"].min()) - 0.03, 1.2))
        panel.set_xticks([0, 0.25, 0.5, 0.75, 1])
        panel.grid(axis="y", visible=False)
    axes[0][0].set_yticks(
        places, [f"{BARS[kind]} ({(frame['kind'] == kind).sum() // len(texts)})" for kind in kinds]
    )
    handles = [Patch(color=style.FAINT, label="debiased"),
               Patch(color=style.FAINT, alpha=0.3, label="biased")]  # fmt: skip
    figure.legend(handles=handles, loc="outside right upper", fontsize=8.5)
    figure.suptitle("How alike are the best checkpoints? Means; whiskers: least to most", **SUPER)
    alt = f"Debiased CKA between best checkpoints, means: {'; '.join(said) or 'none known'}."
    data = {"rows": frame.to_dict("records")}
    return Drawing(figure=figure, name="likeness", alt=alt, data=data)
