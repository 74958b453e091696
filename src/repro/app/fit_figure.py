"""The figure of `repro fit`: losses against one variable, a line for each value of the other."""

from __future__ import annotations

import numpy as np

from repro.laws.fit import Fit
from repro.show import style
from repro.show.style import Drawing

_LABELS = {"d": "labelled pairs D", "n": "parameters N"}


@style.drawn
def lines(fitted: Fit) -> Drawing:
    """Points, the law with its 95 % band; open triangles are runs whose loss is only a bound."""
    table, names = fitted.table, fitted.form.variables
    across = "d" if "d" in names else names[0]
    other = next((name for name in names if name != across), "")
    figure, axes = style.panels()
    x = table.columns[across]
    seen = np.unique(x[x > 0])
    grid = np.geomspace(seen[0], seen[-1], 120)
    groups = np.unique(table.columns[other]) if other else np.array([np.nan])
    ends = []
    for value, colour in zip(groups, style.ordered(len(groups)), strict=True):
        rows = table.columns[other] == value if other else np.ones(len(table), dtype=bool)
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
    style.log_axis(axes.xaxis, seen.tolist(), _LABELS.get(across, across))
    axes.set_title(f"{fitted.form.title}, {len(table)} runs, 95 % band")
    style.label_ends(axes, ends)
    said = ", ".join(f"{name} {value:.4g}" for name, value in fitted.parameters.items())
    alt = (
        f"{fitted.form.response} against {_LABELS.get(across, across)}, {len(table)} runs, with the "
        f"{fitted.form.title} {fitted.form.formula}: {said}."
    )
    data = {"parameters": fitted.parameters, "loss": table.loss, **table.columns}
    return Drawing(figure=figure, name="fit", alt=alt, data=data)
