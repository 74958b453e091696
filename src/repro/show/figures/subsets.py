"""Figures of notebook 01: how long the texts are, and how near evaluation stands to training."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from repro.show import style
from repro.show.style import Drawing

PERCENTILES = (0, 5, 25, 50, 75, 95, 100)


@style.drawn
def lengths(frame: pd.DataFrame) -> Drawing:
    """Words of each query and passage, train against validation (columns text, split, words)."""
    figure, axes = style.panels(1, 2, height=3.2, sharey=True)
    colours = {"train": style.CATEGORIES[0], "validation": style.CATEGORIES[1]}
    said = []
    data: dict[str, dict[str, list[float]]] = {}
    for panel, kind in zip(axes, ("query", "passage"), strict=True):
        part = frame[frame["text"] == kind]
        shares: dict[str, list[float]] = {"percentiles": list(PERCENTILES)}
        for split, colour in colours.items():
            values = part.loc[part["split"] == split, "words"].to_numpy(float)
            panel.ecdf(values, color=colour, label=f"{split} ({len(values):,})")
            shares[split] = np.percentile(values, PERCENTILES).tolist()
        data[kind] = shares
        middle = float(part["words"].median())
        panel.axvline(middle, color=style.FAINT, linestyle=":", linewidth=1.2)
        panel.annotate(
            f"median {middle:.0f}", (middle, 0.32), (5, 0), xycoords=("data", "axes fraction"),
            textcoords="offset points", va="top", fontsize=8.5, color=style.FAINT,
        )  # fmt: skip
        style.log_ticks(panel.xaxis, part["words"].min(), part["words"].max(), f"words in a {kind}")
        panel.set_title("queries" if kind == "query" else "passages")
        panel.legend(fontsize=8.5, loc="lower right")
        said.append(f"{'queries' if kind == 'query' else 'passages'} {middle:.0f}")
    axes[0].set_ylabel("share of texts at most so long")
    alt = (
        "Cumulative shares of texts by length in words, train beside validation. "
        f"Medians: {', '.join(said)}."
    )
    return Drawing(figure=figure, name="lengths", alt=alt, data=data)


@style.drawn
def nearest(similarity: Mapping[str, NDArray[np.float64]], joined: float) -> Drawing:
    """Share of evaluation pairs whose nearest training passage is at least as similar as x.

    joined: the similarity from which passages form one component, which no split may share.
    """
    figure, axes = style.panels(height=3.2)
    said = []
    for (split, values), colour in zip(similarity.items(), style.CATEGORIES, strict=False):
        x = np.sort(values)
        axes.step(x, 100 * (1 - np.arange(len(x)) / len(x)), where="post", color=colour)
        middle = float(np.median(values))
        said.append(f"{split}: median {middle:.2f}, highest {x[-1]:.3f}")
        axes.text(
            0.6 * joined, 97 - 9 * len(said), f"{split} ({len(values):,} pairs), median {middle:.2f}",
            color=style.darker(colour), fontsize=9, ha="center",
        )  # fmt: skip
    axes.axvline(joined, color=style.FAINT, linestyle=":", linewidth=1.3)
    axes.text(
        0.985 * joined, 40, f"near-duplicates from {joined:g}:\njoined, so never across splits",
        color=style.FAINT, fontsize=8.5, ha="right", va="bottom",
    )  # fmt: skip
    axes.set(
        xlabel="Jaccard similarity (word 4-grams) to the nearest training passage",
        ylabel="evaluation pairs at least so near (%)",
        title="How near does evaluation stand to training?",
        xlim=(0, max(1.05 * joined, *(float(v.max()) * 1.05 for v in similarity.values()))),
        ylim=(0, 101),
    )
    beyond = sum(int((values >= joined).sum()) for values in similarity.values())
    alt = (
        "Share of evaluation pairs by the similarity of their passage to the nearest training passage. "
        f"{'; '.join(said)}. Passages are joined as near-duplicates from {joined:g}: {beyond} lie beyond."
    )
    return Drawing(figure=figure, name="nearest", alt=alt, data=dict(similarity))
