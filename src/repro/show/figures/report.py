"""Figure of notebook 10: every claim and its verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from repro.show import style
from repro.show.style import Drawing

LOOK = {
    "holds": ("#009E73", "●"), "match": ("#009E73", "●"), "close": ("#56B4E9", "◐"),
    "fails": ("#D55E00", "○"), "differs": ("#D55E00", "○"), "inconclusive": ("#E69F00", "?"),
    "not comparable": ("#B8B8B8", "≠"), "not run": ("#E8E8E8", ""),
}  # fmt: skip
BANDS = {"M": "MAEL (2026)", "S": "SIGIR 2024", "T": "Transfer (2024)", "C": "Classical"}


@style.drawn
def verdicts(rows: Sequence[Mapping[str, Any]]) -> Drawing:
    """A square a claim and kind, a line a body of work, coloured by verdict."""
    figure, axes = style.panels(height=2.9)
    widest = 0
    for band, letter in enumerate(BANDS):
        x = 0.0
        for row in (row for row in rows if row["id"].startswith(letter)):
            colour, mark = LOOK[row["verdict"]]
            axes.add_patch(_square(x, -band, colour))
            dark = (
                style.INK
                if row["verdict"] not in ("fails", "differs", "holds", "match")
                else "white"
            )
            axes.text(x + 0.45, -band + 0.22, row["id"], ha="center", fontsize=6.2, color=dark)
            axes.text(
                x + 0.45, -band - 0.22, mark, ha="center", va="center", fontsize=8, color=dark
            )
            x += 1.0
        widest = max(widest, int(x))
    axes.set(xlim=(-0.1, widest), ylim=(-len(BANDS) + 0.3, 0.65), xticks=[])
    axes.set_yticks([-band for band in range(len(BANDS))], list(BANDS.values()))
    axes.tick_params(length=0)
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(False)
    counts = {verdict: sum(row["verdict"] == verdict for row in rows) for verdict in LOOK}
    handles = [
        _square(0, 0, LOOK[v][0], f"{LOOK[v][1]} {v} ({n})".strip()) for v, n in counts.items() if n
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, fontsize=8.5)
    axes.set_title(f"{len(rows)} verdicts on {len({row['id'] for row in rows})} claims")
    said = ", ".join(f"{n} {verdict}" for verdict, n in counts.items() if n)
    alt = f"A square for each claim and kind, by body of work, coloured by verdict. {said}."
    data = {"verdicts": {f"{row['id']} {row['kind']}": row["verdict"] for row in rows}}
    return Drawing(figure=figure, name="verdicts", alt=alt, data=data)


def _square(x: float, y: float, colour: str, label: str = "") -> Any:
    from matplotlib.patches import FancyBboxPatch

    return FancyBboxPatch(
        (x + 0.04, y - 0.42), 0.82, 0.84, boxstyle="round,pad=0,rounding_size=0.08",
        facecolor=colour, edgecolor="none", label=label,
    )  # fmt: skip
