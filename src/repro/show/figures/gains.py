"""Figure of notebook 03: how far each step of the grid lowers the loss, in the noise of a seed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.patches import Rectangle

from repro.show import style
from repro.show.figures.grid import SUPER
from repro.show.style import Drawing


@style.drawn
def gains(steps: pd.DataFrame, least: float) -> Drawing:
    """How far MAEL falls at each step in D (above) and in N (below), in sds between seeds.

    steps: from `experiments.gains.steps`.  Steps under `least` sds are framed; `*`: the entropy of
    the test pairs does not fall.  Where no sd is known the fall is shown in percent.
    """
    known = bool(steps["sds"].notna().any())
    values = steps.assign(shown=steps["sds"] if known else 100 * steps["relative"])
    tables = [
        values[values["along"] == along].pivot_table(
            index="model", columns="d", values="shown", sort=False, dropna=False
        )
        for along in ("D", "N")
    ]
    rows = [max(len(table), 1) for table in tables]
    height = 1.7 + 0.36 * sum(rows)
    figure, axes = style.panels(2, 1, height=height, height_ratios=rows)
    unit = "pooled sds between seeds" if known else "% of MAEL"
    top = float(np.nanmax([*values["shown"].to_numpy(float), 1.0]))
    for panel, table, along in zip(axes, tables, "DN", strict=True):
        _steps(
            panel,
            table.iloc[::-1],
            values[values["along"] == along],
            along,
            top,
            least if known else 0.0,
        )
    figure.suptitle(f"Fall of MAEL at each step of the grid, in {unit}", **SUPER)
    weak, alone = int((steps["sds"] < least).sum()), int((steps["test"] <= 0).sum())
    alt = (
        f"Two heat maps of the fall of MAEL over {len(steps)} moves, in {unit}: above, from one data size to "
        f"the next; below, from one model to the next. "
        + (f"Moves under {least:g} sds: {weak}." if known else "No noise of seeds is known.")
        + f" Steps that do not lower the entropy of the test pairs: {alone}."
    )
    return Drawing(figure=figure, name="gains", alt=alt, data={"steps": steps.to_dict("list")})


def _steps(
    panel: Any, table: pd.DataFrame, steps: pd.DataFrame, along: str, top: float, least: float
) -> None:
    """One heat map of `gains`; cells under `least` are framed."""
    if table.empty:
        panel.set_axis_off()
        return
    values = table.to_numpy(float)
    alone = {(step["model"], step["d"]) for _, step in steps.iterrows() if step["test"] <= 0}
    notes = np.array([
        [
            (f"{v:.1f}" if np.isfinite(v) else "–") + (" *" if (model, d) in alone else "")
            for d, v in row.items()
        ]
        for model, row in table.iterrows()
    ])  # fmt: skip
    sns.heatmap(
        table, annot=notes, fmt="", cmap="viridis", vmin=0, vmax=top, ax=panel, linewidths=1.5,
        annot_kws={"fontsize": 9}, cbar=False,
    )  # fmt: skip
    for row, column in np.argwhere(values < least):
        panel.add_patch(
            Rectangle(
                (column + 0.04, row + 0.06), 0.92, 0.88, fill=False, lw=2, ec=style.CATEGORIES[1]
            )
        )
    key = "d" if along == "D" else "model"
    before = dict(zip(steps[key], steps["before"], strict=True))
    columns = [f"{before[d]} →\n{d:,}" if along == "D" else f"{d:,}" for d in table.columns]
    models = [f"{before[m]} → {m}" if along == "N" else str(m) for m in table.index]
    panel.set_xticklabels(columns, rotation=0)
    panel.set_yticklabels(models, rotation=0)
    panel.tick_params(length=0)
    panel.set(xlabel="" if along == "D" else "D, labelled pairs", ylabel="")
    what = (
        "more pairs: one D to the next"
        if along == "D"
        else "more parameters: one model to the next"
    )
    marks = [f"framed: under {least:g}"] if (values < least).any() else []
    marks += ["*: not on test"] if alone else []
    panel.set_title(what + (f"   ({'; '.join(marks)})" if marks else ""), fontsize=9.5)
