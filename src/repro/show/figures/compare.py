"""Figure of `repro compare`: the exponents of one law in several studies, intervals overlaid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from repro.show import style
from repro.show.style import Drawing

AXES = {"alpha": "alpha, exponent in N", "beta": "beta, exponent in D"}
LINE = 0.22  # of a row's height, between two studies


@style.drawn
def exponents(studies: Mapping[str, Mapping[str, Any]], laws: Sequence[str]) -> Drawing:
    """A row a law, a colour a study; studies: name -> laws of its report.  An arrow: the interval goes on."""
    shown = [law for law in laws if any(law in each for each in studies.values())]
    figure, axes = style.panels(1, 2, height=1.2 + 0.55 * max(len(shown), 2), sharey=True)
    said = []
    for panel, (name, label) in zip(axes, AXES.items(), strict=True):
        found = [
            each[law]["params"][name] for each in studies.values() for law in shown if law in each
        ]
        most = 2.5 * max([*found, 0.01])
        for place, (study, fitted) in enumerate(studies.items()):
            colour, marker = style.CATEGORIES[place % 8], style.MARKERS[place % 8]
            for row, law in enumerate(law for law in shown if law in fitted):
                y = LINE * (place - (len(studies) - 1) / 2) + shown.index(law)
                value, ends = fitted[law]["params"][name], fitted[law]["ci95"].get(name)
                if ends:
                    low, high = max(ends[0], -most / 10), min(ends[1], most)
                    panel.plot([low, high], [y, y], color=colour, linewidth=2.4, alpha=0.5)
                    if ends[1] > most:
                        panel.plot(most, y, ">", color=colour)
                panel.plot(value, y, marker, color=colour, label=study if row == 0 else None)
                said.append(f"{study}, {law}: {name} {value:.3f}")
        panel.set_xlim(-most / 10, most * 1.05)
        panel.axvline(0, color=style.FAINT, linewidth=0.8)
        panel.set_xlabel(label)
    titles = [next(each[law]["title"] for each in studies.values() if law in each) for law in shown]
    axes[0].set_yticks(range(len(shown)), titles)
    axes[0].set_ylim(len(shown) - 0.4, -0.6)
    axes[0].set_title("Exponents, 95 % intervals")
    handles, names = axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=4)
    alt = f"Exponents of {len(shown)} laws in {len(studies)} studies, 95 % intervals. {'; '.join(said)}."
    data = {
        study: {law: each[law] for law in shown if law in each} for study, each in studies.items()
    }
    return Drawing(figure=figure, name="compare", alt=alt, data=data)
