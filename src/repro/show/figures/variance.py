"""Figure of notebook 03: what the noise of a cell is made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from repro.show import style
from repro.show.reading_variance import TITLES
from repro.show.style import Drawing


@style.drawn
def components(found: Mapping[str, Any]) -> Drawing:
    """The sd of MAEL by component (left) and its share of the variance (right), with intervals.

    found: from `experiments.variance.answers`.  A colour a data size; pooled over them is black.  The
    crosses are the standard error by the validation pairs, which is no component.
    """
    figure, (left, right) = style.panels(1, 2, height=2.9, sharey=True)
    sizes = found.get("sizes", [])
    colours = [*style.ordered(len(sizes)), style.INK]
    rows = [*sizes, *([{"d": None, **found["pooled"]}] if sizes else [])]
    for i, (row, colour) in enumerate(zip(rows, colours, strict=False)):
        shift = 0.15 * (i - (len(rows) - 1) / 2)
        name = "pooled" if row["d"] is None else f"D = {row['d']:,}"
        marker = "D" if row["d"] is None else "o"
        for y, each in enumerate(row["components"]):
            for panel, what in ((left, "relative"), (right, "share")):
                _dot(panel, each[what], y + shift, colour, marker, "" if y else name)
        if row["validation"]["relative"] is not None:
            left.plot(100 * row["validation"]["relative"], len(TITLES) + shift, "x", color=colour)
    left.set_yticks(range(len(TITLES) + 1), [*TITLES.values(), "validation pairs"])
    left.set_ylim(len(TITLES) + 0.5, -0.5)
    left.set(xlim=(0, None), xlabel="sd, % of MAEL", title="Noise by component")
    right.set(xlim=(0, 100), xlabel="share of the variance, %", title="Share")
    if rows:
        figure.legend(
            *left.get_legend_handles_labels(), loc="outside lower center", ncols=len(rows)
        )
    alt = f"Noise of MAEL by component. {_said(rows[-1]) if rows else 'No run has finished.'}"
    return Drawing(figure=figure, name="noise_components", alt=alt, data=dict(found))


def _dot(
    panel: Any, given: Mapping[str, Any], y: float, colour: str, marker: str, label: str
) -> None:
    if given["value"] is None:
        return
    if given["ci95"]:
        ends = [100 * end for end in given["ci95"]]
        panel.plot(ends, [y, y], color=colour, alpha=0.5, linewidth=2.5)
    panel.plot(100 * given["value"], y, marker, color=colour, label=label or None, linestyle="")


def _said(pooled: Mapping[str, Any]) -> str:
    listed = [
        f"{TITLES[row['component']]} {100 * row['relative']['value']:.2g} % of MAEL"
        for row in pooled["components"]
        if row["relative"]["value"] is not None
    ]
    return f"Pooled over sizes: {'; '.join(listed) or 'not known'}."
