"""The page to play with: the exponents of the law over the runs, and the plan for a budget.

The page draws as inline SVG by static/explore.js, from the numbers that stand in it: no server, no library.
"""

from __future__ import annotations

import html
import json
import math
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np

from repro.show.style import count
from repro.site.material import Material

NOTHING = "# Try it\n\nThis study has no law in N and D, so there is nothing to move here.\n"
PAGE = """# Try it

Move the exponents and see what the runs say to them; then spend a budget under the law that you chose.
All that is drawn comes from the report of the study `{study}`.

## The law through the runs

```{{raw}} html
{law}
```

```{{math}}
\\mathrm{{MAEL}} = c\\,N^{{-\\alpha}}(D+D_0)^{{-\\beta}}
```

Dots are the runs' cells (means of their seeds), lines the law; its level c follows the dots. With
D<sub>0</sub> = 0 it is the product law. The error is the mean over the cells of |law / cell - 1|.

{law_figure}

## The plan for a budget

```{{raw}} html
{plan}
```

Each line holds the compute of training to the minimum: FLOP = u N<sup>p</sup> D<sup>q</sup>, p = {p:.2f} and
q = {q:.2f} as fitted to the runs (they scatter about it by {scatter:.0f} %). To the right the model grows
and the pairs that the budget leaves become fewer, never more than your labels. Beyond the runs (N
{n_low} to {n_high}, D {d_low} to {d_high}) the lines are dashed: there the law is an extrapolation.

{plan_figure}
"""
SLIDER = (
    '<label>{label} <input type="range" id="{id}" min="{low}" max="{high}" step="{step}" value="{value}">'
    ' <output for="{id}" id="{id}-shown"></output></label>'
)


def page(material: Material) -> str:
    """The page as MyST Markdown."""
    data = numbers(material.report)
    if data is None:
        return NOTHING
    n, d = ([cell[axis] for cell in data["cells"]] for axis in "nd")
    text = json.dumps(data).replace("</", "<\\/")
    return PAGE.format(
        study=material.name,
        law=_law(data) + f'\n<script type="application/json" id="explore-data">{text}</script>',
        plan=_plan(data) + '\n<script src="_static/explore.js" defer></script>',
        law_figure=_picture(material, "mael_along_d"),
        plan_figure=_picture(material, "equal_compute"),
        n_low=count(min(n)), n_high=count(max(n)), d_low=count(min(d)), d_high=count(max(d)),
        **{name: data["compute"][name] for name in ("p", "q", "scatter")},
    )  # fmt: skip


def numbers(report: Mapping[str, Any]) -> dict[str, Any] | None:
    """What the page draws: cells, fitted laws, the compute of a run; None where there is no law."""
    laws = {
        name: {key: float(value) for key, value in report["laws"][name]["params"].items()}
        for name in ("product", "product_d0")
        if (report["laws"].get(name) or {}).get("params")
    }
    if "product" not in laws:
        return None
    by_cell: dict[tuple[str, float, float], list[Mapping[str, Any]]] = defaultdict(list)
    for row in report["grid"]:
        by_cell[row["model"], row["n_encoder"], row["d"]].append(row)
    cells = [
        {"model": model, "n": n, "d": d, "mael": float(np.mean([row["mael"] for row in rows]))}
        for (model, n, d), rows in by_cell.items()
    ]
    return {"cells": cells, "laws": laws, "compute": compute(report["grid"])}


def compute(grid: list[Mapping[str, Any]]) -> dict[str, float]:
    """FLOP = exp(u) N^p D^q by least squares on logarithms; scatter: its residual sd, percent."""
    n, d, flop = (np.log([row[name] for row in grid]) for name in ("n_encoder", "d", "flop"))
    design = np.stack([np.ones_like(n), n, d], axis=1)
    (u, p, q), *_ = np.linalg.lstsq(design, flop, rcond=None)
    scatter = float(np.std(flop - design @ [u, p, q]))
    return {
        "u": float(u), "p": float(p), "q": float(q), "scatter": 100 * scatter,
        "least": float(math.exp(flop.min())), "most": float(math.exp(flop.max())),
    }  # fmt: skip


def _law(data: Mapping[str, Any]) -> str:
    fitted = data["laws"]["product"]
    most = max(cell["d"] for cell in data["cells"])
    sliders = [
        _slider(
            "alpha", "exponent in N, alpha", 0, 3 * fitted["alpha"] + 0.1, 0.001, fitted["alpha"]
        ),
        _slider("beta", "exponent in D, beta", 0, 4 * fitted["beta"] + 0.1, 0.001, fitted["beta"]),
        _slider("head", "head start, D0 pairs", 0, most, 10, 0),
    ]
    buttons = [
        f'<button type="button" data-law="{name}">{label}</button>'
        for name, label in (
            ("product", "product law, as fitted"),
            ("product_d0", "head start, as fitted"),
        )
        if name in data["laws"]
    ]
    return _panel("law", "MAEL against labelled pairs, a line a model", [*sliders, *buttons])


def _plan(data: Mapping[str, Any]) -> str:
    least, most = (math.log10(data["compute"][name]) for name in ("least", "most"))
    labels = math.log10(max(cell["d"] for cell in data["cells"]))
    sliders = [
        _slider("budget", "budget, FLOP", round(least, 1), round(most + 2, 1), 0.1, round(most, 1)),
        _slider("labels", "labels at most", 2, 7, 0.1, round(labels + 1, 1)),
    ]
    return _panel("plan", "MAEL against model size on lines of equal compute", sliders)


def _panel(name: str, title: str, controls: list[str]) -> str:
    return (
        f'<div class="explore"><svg id="{name}-plot" role="img" viewBox="0 0 640 380" aria-label="{title}">'
        f'</svg>\n<form aria-label="{title}" onsubmit="return false">{"".join(controls)}</form>\n'
        f'<p id="{name}-said" role="status"></p></div>'
    )


def _slider(name: str, label: str, low: float, high: float, step: float, value: float) -> str:
    steps = round((value - low) / step)
    return SLIDER.format(
        id=name,
        label=label,
        low=low,
        high=f"{high:.6g}",
        step=step,
        value=f"{low + steps * step:.6g}",
    )


def _picture(material: Material, name: str) -> str:
    found = material.figure(name)
    if found is None:
        return ""
    path, kept = found
    said = html.escape(kept["alt"], quote=False)
    return f"As the notebooks draw it:\n\n```{{image}} figures/{path.name}\n:alt: {said}\n```"
