"""Figures of notebook 07: the scan of weight decays, its optima, and tuned against none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from repro.show import style
from repro.show.figures.grid import SUPER
from repro.show.reading_decay import TENSORS
from repro.show.style import Drawing

METRIC = {"test_entropy": "entropy (nats)", "mrr10": "MRR@10", "ndcg10": "nDCG@10"}


@style.drawn
def scan(rows: Sequence[Mapping[str, Any]]) -> Drawing:
    """MAEL against weight decay, a panel a convention, a line a data size; dotted: the optimum."""
    every = _conventions(rows)
    figure, axes = style.panels(1, len(every), height=3.6, sharey=True, squeeze=False)
    ends = [
        _scan(axes[0][i], [row for row in rows if row["decayed"] == every[i]])
        for i in range(len(every))
    ]
    for panel, name, own in zip(axes[0], every, ends, strict=True):  # the panels share their limits
        style.label_ends(panel, own)
        panel.set_title(f"decayed: {TENSORS[name]}" if len(every) > 1 else "", fontsize=9.5)
    axes[0][0].set_ylabel("MAEL less that without decay (%)")
    title = "MAEL over weight decay, a line a data size (down is better; dotted: optimum)"
    figure.suptitle(title, **SUPER)
    listed = "; ".join(
        f"D = {row['d']:,}: best {row['optimum']:.3g} ({TENSORS[row['decayed']]})"
        for row in rows
        if row["optimum"]
    )
    alt = f"MAEL over weight decay relative to none, {len(rows)} scans. {listed or 'No optimum'}."
    return Drawing(figure=figure, name="decay_scan", alt=alt, data={"rows": list(rows)})


def _conventions(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(row["decayed"] for row in rows)) or ["matrices"]


def _scan(axes: Any, rows: Sequence[Mapping[str, Any]]) -> list[tuple[float, float, str, str]]:
    """One panel of `scan`; returns the labels of its line ends."""
    every = [decay for row in rows for decay in row["decays"]]
    ends = []
    for row, colour, marker in zip(
        rows, style.ordered(len(rows)), style.MARKERS * len(rows), strict=False
    ):
        if not row["decays"]:
            continue
        change = 100 * (np.array(row["mael"]) / (row["none"] or row["mael"][0]) - 1)
        axes.plot(row["decays"], change, marker=marker, color=colour, linewidth=1.4)
        axes.axvline(row["optimum"], color=colour, linestyle=":", linewidth=1)
        ends.append((row["decays"][-1], float(change[-1]), f"{row['d']:,}", colour))
    axes.axhline(0, color=style.FAINT, linewidth=0.9, linestyle="--")
    if every:
        style.log_ticks(axes.xaxis, min(every), max(every), "weight decay (log)")
        axes.set_xscale("log")
    return ends


@style.drawn
def optima(rows: Sequence[Mapping[str, Any]]) -> Drawing:
    """The best decay against D, with intervals, and the paper's rule through the first convention's."""
    figure, axes = style.panels(height=3.4)
    every = _conventions(rows)
    known = [row for row in rows if row["optimum"]]
    for row in known:
        i = every.index(row["decayed"])
        colour, x = style.CATEGORIES[2 * i], row["d"] * 1.04**i
        if row["ci95"]:
            axes.plot([x] * 2, row["ci95"], color=colour, alpha=0.5, linewidth=3)
        face = "white" if row["at_end"] else colour
        axes.plot(x, row["optimum"], style.MARKERS[i], color=colour, markerfacecolor=face, zorder=3)
    own = [row for row in known if row["decayed"] == every[0]]
    if own:
        x = np.array([row["d"] for row in own], float)
        centre = np.exp(np.mean(np.log(x * [row["optimum"] for row in own])))
        axes.plot(x, centre / x, "--", color=style.CATEGORIES[1], linewidth=1.4)
        axes.text(
            x[-1], centre / x[-1], " rule: decay ~ 1/D", color=style.CATEGORIES[1], va="center"
        )
        style.log_axis(axes.xaxis, sorted({row["d"] for row in known}), "D, labelled pairs")
        edges = [end for row in known for end in (row["ci95"] or [row["optimum"]])]
        low, high = min([*edges, *(centre / x)]) / 1.3, 1.3 * max([*edges, *(centre / x)])
        axes.set_yscale("log")
        axes.set_ylim(low, high)
        style.log_ticks(axes.yaxis, low, high, "best weight decay")
    if len(every) > 1:
        for i, name in enumerate(every):
            axes.plot(
                [],
                [],
                style.MARKERS[i],
                color=style.CATEGORIES[2 * i],
                label=f"decayed: {TENSORS[name]}",
            )
        axes.legend(loc="lower left")
    axes.set_title("The best decay against D (hollow: at an end of the scan)")
    listed = ", ".join(f"{row['optimum']:.3g} on {row['d']:,}" for row in known)
    alt = (
        f"The best weight decay against D: {listed or 'none known'}; dashed: in proportion to 1/D."
    )
    return Drawing(figure=figure, name="decay_optima", alt=alt, data={"rows": list(rows)})


@style.drawn
def differences(rows: Sequence[Mapping[str, Any]]) -> Drawing:
    """The gain of the best decay over none: a row a place, a panel a metric, with intervals."""
    figure, axes = style.panels(1, len(METRIC), height=2.6, sharey=True)
    places = list(dict.fromkeys(row["place"] for row in rows))
    last = max((row["d"] for row in rows), default=0)
    for panel, (metric, title) in zip(np.ravel(axes), METRIC.items(), strict=True):
        for row in rows:
            if row["metric"] != metric or row["d"] != last:
                continue
            y = places.index(row["place"])
            if row["ci95"]:
                panel.plot(row["ci95"], [y, y], color=style.CATEGORIES[0], alpha=0.5, linewidth=3)
            panel.plot(row["better"], y, "o", color=style.CATEGORIES[0])
        panel.axvline(0, color=style.FAINT, linewidth=0.9)
        panel.set_xlabel("gain (right is better)")
        panel.set_title(title, fontsize=9.5)
    np.ravel(axes)[0].set_yticks(range(len(places)), places)
    np.ravel(axes)[0].set_ylim(max(len(places), 1) - 0.5, -0.5)
    said = "; ".join(
        f"{row['place']} {row['better']:+.3f}"
        for row in rows
        if row["metric"] == "test_entropy" and row["d"] == last
    )
    alt = f"Gain of the best weight decay over none, D = {last:,}. Entropy, nats: {said or 'not run'}."
    return Drawing(figure=figure, name="decay_gain", alt=alt, data={"rows": list(rows)})
