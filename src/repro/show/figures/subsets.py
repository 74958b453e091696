"""Figures of notebook 01: how long the texts are, and how near evaluation stands to training."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from repro.show import style
from repro.show.style import Drawing


@style.drawn
def lengths(frame: pd.DataFrame) -> Drawing:
    """Words of each query and passage, train against validation (columns text, split, words)."""
    figure, axes = style.panels(1, 2, height=3.2)
    colours = {"train": style.CATEGORIES[0], "validation": style.CATEGORIES[1]}
    said = []
    data: dict[str, dict[str, list[float]]] = {}
    for panel, kind in zip(axes, ("query", "passage"), strict=True):
        part = frame[frame["text"] == kind]
        edges = np.unique(
            np.geomspace(max(part["words"].min(), 1), part["words"].max() + 1, 28).astype(int)
        )
        for split, colour in colours.items():
            values = part.loc[part["split"] == split, "words"].to_numpy(float)
            share = 100 * np.histogram(values, edges)[0] / len(values)
            panel.stairs(
                share, edges, color=colour, linewidth=1.6, label=f"{split} ({len(values):,})"
            )
            data.setdefault(kind, {})[split] = share.tolist()
        middle = part["words"].median()
        panel.axvline(middle, color=style.FAINT, linestyle=":", linewidth=1.2)
        panel.annotate(f"median {middle:.0f}", (middle, 0.97), (4, 0), xycoords=("data", "axes fraction"),
                       textcoords="offset points", va="top", fontsize=8.5, color=style.FAINT)  # fmt: skip
        style.log_ticks(panel.xaxis, edges[0], edges[-1], f"words in a {kind}")
        panel.set_title("queries" if kind == "query" else "passages")
        panel.legend(fontsize=8.5, loc="upper right", bbox_to_anchor=(1.02, 0.9))
        data[kind]["edges_words"] = edges.tolist()
        said.append(f"{'queries' if kind == 'query' else 'passages'} {middle:.0f}")
    axes[0].set_ylabel("texts (%)")
    alt = f"Histograms of text lengths in words, train and validation alike. Medians: {', '.join(said)}."
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
        said.append(f"{split}: median {middle:.2f}, highest {x[-1]:.2f}")
        axes.annotate(f"{split} ({len(values):,} pairs)", (middle, 50), (8, 10 if len(said) == 1 else -14),
                      textcoords="offset points", color=style.darker(colour), fontsize=9)  # fmt: skip
    axes.axvline(joined, color=style.FAINT, linestyle=":", linewidth=1.3)
    axes.text(
        joined,
        96,
        f" joined to one component from {joined:g}",
        color=style.FAINT,
        fontsize=8.5,
        va="top",
    )
    axes.set(
        xlabel="Jaccard similarity (word 4-grams) to the nearest training passage",
        ylabel="evaluation pairs at least so near (%)",
        title="How near does evaluation stand to training?",
        xlim=(0, max(1.25 * joined, *(float(v.max()) * 1.05 for v in similarity.values()))),
        ylim=(0, 101),
    )
    beyond = sum(int((values >= joined).sum()) for values in similarity.values())
    alt = (
        "Share of evaluation pairs by the similarity of their passage to the nearest training passage. "
        f"{'; '.join(said)}. Passages are joined as near-duplicates from {joined:g}: {beyond} lie beyond."
    )
    return Drawing(figure=figure, name="nearest", alt=alt, data=dict(similarity))
