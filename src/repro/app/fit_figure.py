"""The figure of `repro fit`: losses against one variable, a line for each value of the other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from repro.laws.fit import Fit
from repro.laws.shapes import Array
from repro.laws.table import few
from repro.show import style
from repro.show.style import Drawing

MOST_LINES, MOST_TICKS = 8, 12
_LABELS = {"d": "labelled pairs D", "n": "parameters N"}


@style.drawn
def lines(fitted: Fit) -> Drawing:
    """Points, the law with its 95 % band; open triangles are runs whose loss is only a bound.

    Of many values of the other variable a few have a line, and points the colour of the nearest.
    """
    table, names = fitted.table, fitted.form.variables
    across = "d" if "d" in names else names[0]
    other = next((name for name in names if name != across), "")
    figure, axes = style.panels()
    x = table.columns[across]
    seen = np.unique(x[x > 0])
    grid = np.geomspace(seen[0], seen[-1], 120)
    groups, member = (
        _groups(table.columns[other]) if other else (np.array([np.nan]), np.zeros(len(x)))
    )
    ends = []
    for index, (value, colour) in enumerate(zip(groups, style.ordered(len(groups)), strict=True)):
        rows = member == index
        if len(names) <= 2:  # a law of more variables has no single line through a group
            where = {across: grid} | ({other: np.full(120, value)} if other else {})
            low, high = fitted.band(**where)
            axes.fill_between(grid, low, high, color=colour, alpha=0.15, linewidth=0)
            law = fitted.predict(**where)
            axes.plot(grid, law, color=colour)
            if other:
                ends.append((float(grid[-1]), float(law[-1]), style.count(float(value)), colour))
        for kind, marker, fill in (
            (table.bound == 0, "o", "full"),
            (table.bound != 0, "v", "none"),
        ):
            shown = rows & kind
            axes.plot(x[shown], table.loss[shown], marker, color=colour, fillstyle=fill)
    low_loss, high_loss = float(table.loss.min()), float(table.loss.max())
    unit = " (nats)" if fitted.form.response == "loss" else ""
    style.log_ticks(axes.yaxis, low_loss * 0.95, high_loss * 1.05, f"{fitted.form.response}{unit}")
    ticks = seen if len(seen) <= MOST_TICKS else np.geomspace(seen[0], seen[-1], 6)
    style.log_axis(axes.xaxis, ticks.tolist(), _LABELS.get(across, across))
    axes.set_title(f"{fitted.form.title}, {len(table)} runs, 95 % band")
    style.label_ends(axes, ends)
    said = ", ".join(f"{name} {value:.4g}" for name, value in fitted.parameters.items())
    alt = (
        f"{fitted.form.response} against {_LABELS.get(across, across)}, {len(table)} runs, with the "
        f"{fitted.form.title} {fitted.form.formula}: {said}."
    )
    data = {"parameters": fitted.parameters, "loss": table.loss, **table.columns}
    return Drawing(figure=figure, name="fit", alt=alt, data=data)


def _groups(column: Array) -> tuple[Array, NDArray[np.intp]]:
    """The values that have a line, at most `MOST_LINES`, and which of them each row is nearest to."""
    values = few(column, MOST_LINES)
    with np.errstate(divide="ignore", invalid="ignore"):
        apart = np.abs(np.log(column)[:, None] - np.log(values))
    apart = np.where(column[:, None] == values, 0.0, apart)
    return values, np.argmin(np.nan_to_num(apart, nan=np.inf), axis=1)
