"""Figures of notebook 05: curves of the label kinds, slope and level apart, exchange rates, the floor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from repro.show import style
from repro.show.style import Drawing

Rows = Sequence[Mapping[str, Any]]


@style.drawn
def curves(points: Rows, laws: Rows) -> Drawing:
    """MAEL over D on one evaluation set, a line a kind of label; thin lines are the power laws."""
    figure, axes = style.panels(height=4.0)
    ends = []
    for law, colour, marker in _kinds(laws):
        own = [row for row in points if row["kind"] == law["kind"]]
        if not own:
            continue
        d, mael = np.array([row["d"] for row in own], float), np.array([row["mael"] for row in own])
        axes.plot(d, mael, marker, color=colour)
        if law["exponent"] is not None:
            fitted = law["level"] * (d / law["middle"]) ** -law["exponent"]
            axes.plot(d, fitted, color=colour, linewidth=1.2)
        ends.append((d[-1], float(mael[-1]), law["kind"], colour))
    if points:
        every = [row["mael"] for row in points]
        style.log_axis(axes.xaxis, sorted({row["d"] for row in points}), "D, labelled pairs")
        style.log_ticks(axes.yaxis, 0.97 * min(every), 1.03 * max(every), "MAEL (nats)")
        axes.set_ylim(0.97 * min(every), 1.03 * max(every))
    axes.set_title("The lowest loss over D, a line a kind of label (down is better)")
    style.label_ends(axes, ends)
    said = "; ".join(
        f"{law['kind']} {law['level']:.2f} nats at the middle size, exponent {law['exponent']:.3f}"
        for law in laws
        if law["exponent"] is not None
    )
    alt = f"MAEL over labelled pairs for {len(laws)} kinds of labels. {said or 'No curve'}."
    return Drawing(figure=figure, name="label_curves", alt=alt, data={"points": list(points)})


@style.drawn
def apart(against: Rows) -> Drawing:
    """Each kind against the dataset's own labels: the exponents' difference, and the level's ratio."""
    figure, axes = style.panels(1, 2, height=1.3 + 0.42 * max(len(against), 1), sharey=True)
    left, right = np.ravel(axes)
    for panel, name, scale, label in (
        (left, "slope", 1.0, "exponent less the own labels' (left is flatter)"),
        (right, "level", 100.0, "loss over the own labels' (%, right is worse)"),
    ):
        for y, row in enumerate(against):
            if row[f"{name}_ci95"]:
                ends = scale * np.array(row[f"{name}_ci95"])
                panel.plot(ends, [y, y], color=style.CATEGORIES[0], alpha=0.5, linewidth=3)
            panel.plot(scale * row[name], y, "o", color=style.CATEGORIES[0])
        panel.axvline(0, color=style.FAINT, linewidth=0.9)
        panel.set_xlabel(label)
    left.set_yticks(range(len(against)), [row["kind"] for row in against])
    left.set_ylim(max(len(against), 1) - 0.5, -0.5)
    left.set_title("Slope")
    right.set_title("Level")
    said = "; ".join(
        f"{row['kind']} {row['slope']:+.3f} and {100 * row['level']:+.1f} %" for row in against
    )
    alt = f"Exponent and level against the dataset's own labels. {said or 'Nothing to compare'}."
    return Drawing(figure=figure, name="label_apart", alt=alt, data={"rows": list(against)})


@style.drawn
def exchange(rows: Rows) -> Drawing:
    """Labels of a kind that do as well as one of the dataset's own, over D; hollow: at least, at most."""
    figure, axes = style.panels(height=3.8)
    ends, every = [], [1.0]
    named = [{"kind": name} for name in dict.fromkeys(row["kind"] for row in rows)]
    for kind, colour, marker in _kinds(named, skip=1):
        own = [row for row in rows if row["kind"] == kind["kind"]]
        x = [row["d"] for row in own]
        y = [row["needed"] / row["d"] for row in own]
        every += y
        axes.plot(x, y, color=colour, linewidth=1.2)
        for row, height in zip(own, y, strict=True):
            face = "white" if row["bound"] else colour
            axes.plot(row["d"], height, marker, color=colour, markerfacecolor=face, zorder=3)
            if row["ci95"]:
                limits = np.array(row["ci95"]) / row["d"]
                every += limits.tolist()
                axes.plot([row["d"]] * 2, limits, color=colour, alpha=0.45, linewidth=3)
        ends.append((x[-1], y[-1], kind["kind"], colour))
    axes.axhline(1, color=style.FAINT, linewidth=0.9, linestyle="--")
    if rows:
        style.log_axis(
            axes.xaxis, sorted({row["d"] for row in rows}), "D, the dataset's own labels"
        )
        low, high = 0.8 * min(every), 1.25 * max(every)
        axes.set_ylim(low, high)
        style.log_ticks(axes.yaxis, low, high, "labels needed for each of them")
        axes.set_ylim(low, high)
    axes.set_title("What a label is worth (hollow: a bound, the curve ends there)")
    style.label_ends(axes, ends)
    said = "; ".join(
        f"{row['kind']} {_bounded(row)} for {row['d']:,}" for row in rows if row["needed"]
    )
    alt = f"Labels of each kind that equal the dataset's own. {said or 'Nothing to compare'}."
    return Drawing(figure=figure, name="label_exchange", alt=alt, data={"rows": list(rows)})


@style.drawn
def floor(rows: Rows) -> Drawing:
    """The floor of the joint law over the share of pairs with a planted false negative."""
    figure, axes = style.panels(height=3.2)
    share = np.array([row["share"] for row in rows])
    axes.plot(100 * share, [row["floor"] for row in rows], "o-", color=style.CATEGORIES[0])
    for row in rows:
        if row["ci95"]:
            ends = [row["floor"] - row["rise"] + end for end in row["ci95"]]
            axes.plot([100 * row["share"]] * 2, ends, color=style.CATEGORIES[0], alpha=0.5, lw=3)
    if rows:
        least = rows[0]["floor"] + np.array([row["least"] for row in rows])
        axes.plot(100 * share, least, "--", color=style.CATEGORIES[1])
        axes.text(100 * share[-1], least[-1], " share x ln 2", color=style.CATEGORIES[1])
    axes.set_xlabel("validation pairs with a second right answer among the negatives (%)")
    axes.set_ylabel("floor of the joint law (nats)")
    axes.set_title("Planted false negatives and the law's floor")
    said = ", ".join(f"{row['floor']:.2f} at {100 * row['share']:.0f} %" for row in rows)
    alt = f"Floor of the joint law over the planted share: {said or 'not fitted'}."
    return Drawing(figure=figure, name="label_floor", alt=alt, data={"rows": list(rows)})


def _kinds(laws: Rows, skip: int = 0) -> list[tuple[Mapping[str, Any], str, str]]:
    """Each kind with its colour and marker; the first is the dataset's own."""
    n = len(style.CATEGORIES)
    return [
        (law, style.CATEGORIES[(k + skip) % n], style.MARKERS[(k + skip) % n])
        for k, law in enumerate(laws)
    ]


def _bounded(row: Mapping[str, Any]) -> str:
    sign = {"over": "over ", "under": "under ", "": ""}[row["bound"]]
    return f"{sign}{row['needed']:,.0f}"
