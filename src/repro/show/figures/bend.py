"""Figure of notebook 04: the measured local slopes in D, and those of laws that may bend."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from repro.show import style
from repro.show.style import Drawing

_STYLES = {"product": "-", "product_d0": "-", "product_capped": "--", "product_floor": ":"}


@style.drawn
def bend(found: Mapping[str, Any]) -> Drawing:
    """Mean local slopes in D with their 95 % interval, and a line of slopes for each law.

    found: from `experiments.bend`.  Laws whose D0 or floor is zero are not drawn again.
    """
    measured = pd.DataFrame(found["measured"], columns=["d_low", "d_high", "slope", "low", "high"])
    measured = measured.astype(float)
    figure, axes = style.panels(height=3.5)
    x = np.sqrt((measured["d_low"] * measured["d_high"]).to_numpy())
    mean, low, high = (measured[c].to_numpy() for c in ("slope", "low", "high"))
    axes.errorbar(
        x, mean, np.abs([mean - low, high - mean]), fmt="o", color=style.INK, capsize=4, zorder=4
    )
    ends, said = [], []
    for law, colour in zip(found["laws"], style.CATEGORIES, strict=False):
        if not law["slopes"] or (law["params"].get("D0") == 0 or law["params"].get("E") == 0):
            continue  # without its bend a law is the product law, which is drawn
        y = np.array(law["slopes"], dtype=float)
        axes.plot(x, y, _STYLES[law["name"]], color=colour)
        ends.append((x[-1], float(y[-1]), _short(law), colour))
        said.append(f"{law['title']} {y[0]:.3f} to {y[-1]:.3f}")
    sizes = [*measured["d_low"], *measured["d_high"].tail(1)]
    style.log_axis(axes.xaxis, sizes, "D, labelled pairs (slope drawn between two sizes)")
    if sizes:
        axes.set_xlim(sizes[0] * 0.9, sizes[-1] * 1.1)
    axes.axhline(0, color=style.FAINT, linewidth=0.8)
    axes.set_ylabel("local slope, -d log MAEL / d log D")
    axes.set_title("Slopes in D: measured (dots, 95 % over models) and of each law (lines)")
    style.label_ends(axes, ends, gap=0.075)
    listed = ", ".join(f"{slope:.3f}" for slope in mean)
    alt = (
        f"Local slopes of MAEL in D, mean of models: {listed or 'none'}. Slopes of the laws fitted to all "
        f"sizes, first to last: {'; '.join(said) or 'not determined'}."
    )
    data = {"measured": measured.to_dict("list"), "laws": [dict(law) for law in found["laws"]]}
    return Drawing(figure=figure, name="bend", alt=alt, data=data)


def _short(law: Mapping[str, Any]) -> str:
    """What a line is called at its end."""
    params = law["params"]
    if law["name"] == "product_d0":
        return f"head start {style.count(params['D0'])}"
    if law["name"] == "product_floor":
        return f"floor {params['E']:.2f}"
    return {"product": "product law", "product_capped": "capped at chance"}[law["name"]]
