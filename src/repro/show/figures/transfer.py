"""Figures of notebook 08: losses over pairs and over pre-training, labels' worth, the budget split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from repro.laws.transfer import loss
from repro.show import style
from repro.show.style import Drawing

Rows = Sequence[Mapping[str, Any]]
ZERO = 3.0  # the start stands at the smallest size over this, on an axis that has no 0
CENSORED = "censored"


@style.drawn
def over_pairs(targets: Rows, points: Rows) -> Drawing:
    """Loss against f, a line a checkpoint, a panel a target; lines are the transfer law."""
    figure, panels = _panels(targets)
    for panel, target in zip(panels, targets, strict=False):
        own = [row for row in points if row["target"] == target["target"]]
        sizes = sorted({row["f"] for row in own if row["f"] > 0})
        if not sizes:
            continue
        zero = sizes[0] / ZERO
        grid = np.geomspace(sizes[0], sizes[-1], 60)
        ends = []
        for p, colour, marker in _lines(own, "p"):
            line = [row for row in own if row["p"] == p]
            _dots(panel, line, [row["f"] or zero for row in line], colour, marker)
            end = min((r for r in line if r["f"] == max(r["f"] for r in line)), key=_loss_of)
            ends.append((end["f"] or zero, end["loss"], f"{p:,} steps", colour))
            if law := _law(target):
                panel.plot(grid, loss(law, np.array(p), grid), color=colour, linewidth=1.3)
                start = loss(law, np.array(p), np.array([0.0, sizes[0]]))
                panel.plot([zero, sizes[0]], start, color=colour, linewidth=1, linestyle=":")
        style.log_axis(panel.xaxis, [zero, *sizes], "f, labelled pairs (left: the start)")
        panel.set_xticks(panel.get_xticks(), ["0", *_tick_labels(panel)[1:]])
        _finish(panel, target, crowded=len(targets) > 1)
        style.label_ends(panel, ends)
    listed = "; ".join(_span(target, points) for target in targets)
    alt = f"Loss over labelled pairs, a line a checkpoint of pre-training. {listed or 'No points'}."
    return Drawing(figure=figure, name="transfer_pairs", alt=alt, data={"points": list(points)})


@style.drawn
def over_steps(targets: Rows, points: Rows) -> Drawing:
    """Loss against p, a line a size, a panel a target; lines are the transfer law."""
    figure, panels = _panels(targets)
    for panel, target in zip(panels, targets, strict=False):
        own = [row for row in points if row["target"] == target["target"]]
        steps = sorted({row["p"] for row in own})
        if not steps:
            continue
        grid = np.geomspace(steps[0], steps[-1], 60)
        ends = []
        for f, colour, marker in _lines(own, "f"):
            line = [row for row in own if row["f"] == f]
            _dots(panel, line, [row["p"] for row in line], colour, marker)
            end = min((r for r in line if r["p"] == max(r["p"] for r in line)), key=_loss_of)
            ends.append((end["p"], end["loss"], f"f = {f:,}", colour))
            if law := _law(target):
                panel.plot(grid, loss(law, grid, np.array(f)), color=colour, linewidth=1.3)
        style.log_axis(panel.xaxis, steps, "p, pre-training steps")
        _finish(panel, target, crowded=len(targets) > 1)
        style.label_ends(panel, ends)
    listed = "; ".join(_span(target, points) for target in targets)
    alt = f"Loss over pre-training steps, a line a data size. {listed or 'No points'}."
    return Drawing(figure=figure, name="transfer_steps", alt=alt, data={"points": list(points)})


@style.drawn
def worth(targets: Rows) -> Drawing:
    """D0 against p: full dots on one curve for all checkpoints, hollow ones on curves of their own."""
    figure, axes = style.panels(height=3.6)
    every, steps, said = [], [], []
    for k, target in enumerate(targets):
        rows = target["worth"]["rows"] if target["worth"] else []
        colour, marker = style.CATEGORIES[k % 8], style.MARKERS[k % 8]
        for name, ends, face in (("shared", "shared_ci95", colour), ("d0", "ci95", "white")):
            known = [row for row in rows if row[name]]
            shift = (1.03 if face == "white" else 1.0) * 1.06**k
            x = [row["p"] * shift for row in known]
            label = target["target"] if face != "white" else None
            axes.plot(
                x,
                [row[name] for row in known],
                marker,
                color=colour,
                markerfacecolor=face,
                label=label,
            )
            every += [row[name] for row in known]
            for at, row in zip(x, known, strict=True):
                if row[ends]:
                    low, high = (
                        max(row[ends][0], row[name] / 100),
                        min(row[ends][1], row[name] * 100),
                    )
                    axes.plot([at, at], [low, high], color=colour, alpha=0.4, linewidth=2.5)
                    every += [low, high]
            steps += [row["p"] for row in known]
            if known and face != "white":
                listed = ", ".join(f"{row[name]:,.0f} at {row['p']:,} steps" for row in known)
                said.append(f"{target['target']}: {listed}")
    if every:
        style.log_axis(axes.xaxis, sorted(set(steps)), "p, pre-training steps")
        axes.set_yscale("log")
        low, high = min(every) / 1.5, max(every) * (max(every) / min(every)) ** 0.2 * 1.5
        axes.set_ylim(low, high)  # room for the legend above the dots
        style.log_ticks(axes.yaxis, low, high, "D0, pairs (log)")
        axes.legend(loc="upper left", ncols=len(targets))
    axes.set_title("Labels a start is worth: D0 of c (f + D0)^-beta")
    alt = f"D0 against pre-training steps. {'; '.join(said) or 'None is known'}."
    data = {target["target"]: target["worth"] for target in targets}
    return Drawing(figure=figure, name="transfer_worth", alt=alt, data=data)


@style.drawn
def split(targets: Rows) -> Drawing:
    """Share of the budget for pre-training against the gap G, a line a price, a panel a target."""
    known = [target for target in targets if target["splits"]]
    figure, panels = _panels(known)
    said = []
    for panel, target in zip(panels, known, strict=False):
        prices = sorted({row["price"] for row in target["splits"]})
        for price, colour, marker in zip(
            prices, style.ordered(len(prices)), style.MARKERS * len(prices), strict=False
        ):
            rows = [row for row in target["splits"] if row["price"] == price]
            line = [row for row in rows if row["gap"] is not None]
            x = np.arange(len(line))
            share = [100 * row["share"] for row in line]
            panel.plot(x, share, marker=marker, color=colour, label=f"a pair at {price:g} steps")
            for at, row in zip(x, line, strict=True):
                if row["ci95"]:
                    ends = [100 * end for end in row["ci95"]]
                    panel.plot([at, at], ends, color=colour, alpha=0.4, linewidth=2.5)
            panel.set_xticks(x, [f"{row['gap']:g}" for row in line])
            said.append(
                f"{target['target']}, a pair at {price:g} steps: {share[0]:.0f} % without gap, "
                f"{share[-1]:.0f} % with the largest"
            )
        panel.set_ylim(-2, 103)
        panel.set_xlabel("gap G over what pre-training still closes")
        panel.set_ylabel("pre-training, % of the budget")
        panel.set_title(target["target"], fontsize=9.5)
        panel.legend(fontsize=8)
    alt = f"Best share of pre-training against the transfer gap. {'; '.join(said) or 'No law'}."
    data = {target["target"]: target["splits"] for target in known}
    return Drawing(figure=figure, name="transfer_split", alt=alt, data=data)


def _panels(targets: Rows) -> tuple[Any, list[Axes]]:
    columns = max(1, min(2, len(targets)))
    rows = max(1, -(-len(targets) // columns))
    figure, axes = style.panels(rows, columns, height=0.4 + 3.4 * rows)
    panels = list(np.ravel(axes))
    for spare in panels[max(1, len(targets)) :]:
        spare.set_axis_off()
    return figure, panels


def _lines(rows: Rows, name: str) -> list[tuple[Any, str, str]]:
    """Value, colour and marker of each line, in rising order of `name`."""
    values = sorted({row[name] for row in rows})
    markers = style.MARKERS * len(values)
    return list(zip(values, style.ordered(len(values)), markers, strict=False))


def _dots(panel: Axes, line: Rows, at: Sequence[float], colour: str, marker: str) -> None:
    for x, row in zip(at, line, strict=True):
        if row["state"] == "diverged":
            continue
        face = "white" if row["state"] == CENSORED else colour
        panel.plot(x, row["loss"], marker, color=colour, markerfacecolor=face, zorder=3)


def _law(target: Mapping[str, Any]) -> dict[str, float] | None:
    """The fitted transfer law of a target; None where it was not fitted."""
    params = target["laws"][0]["params"] if target["laws"] else None
    return params if params and all(value is not None for value in params.values()) else None


def _loss_of(row: Mapping[str, Any]) -> float:
    return float(row["loss"])


def _tick_labels(panel: Axes) -> list[str]:
    return [label.get_text() for label in panel.get_xticklabels()]


def _finish(panel: Axes, target: Mapping[str, Any], crowded: bool) -> None:
    panel.set_yscale("log")
    panel.set_ylim(*panel.get_ylim())  # what is written at line ends must not move
    low, high = panel.get_ylim()
    if crowded:
        panel.tick_params(axis="x", labelrotation=40)
    style.log_ticks(panel.yaxis, low, high, "loss (nats, log)")
    hollow = ", hollow: an upper bound" if target["states"].get(CENSORED) else ""
    panel.set_title(f"{target['target']}{hollow}", fontsize=9.5)


def _span(target: Mapping[str, Any], points: Rows) -> str:
    own = [row["loss"] for row in points if row["target"] == target["target"]]
    if not own:
        return f"{target['target']}: no point"
    return f"{target['target']}: {len(own)} points from {max(own):.2f} down to {min(own):.2f} nats"
