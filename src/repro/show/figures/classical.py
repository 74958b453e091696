"""Figures of notebook 09: known laws recovered, and the traps of fitting them, each in one figure."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from repro.show import style
from repro.show.style import Drawing


@style.drawn
def amari(curves: pd.DataFrame, exponents: pd.DataFrame) -> Drawing:
    """Four learning curves in log-log, each with its fitted line's exponent."""
    figure, axes = style.panels(height=3.9)
    ends = []
    for i, row in enumerate(exponents.to_dict("records")):
        here = curves[curves["case"] == row["case"]]
        colour = style.CATEGORIES[i]
        excess = here["error"] - row["floor"]
        axes.plot(here["t"], excess, style.MARKERS[i] + "-", color=colour)
        last = float(excess.iloc[-1])
        ends.append(
            (
                float(here["t"].iloc[-1]),
                last,
                f"{row['found']:.2f} (true {row['expected']:g})",
                colour,
            )
        )
    axes.set_yscale("log")
    style.log_axis(axes.xaxis, sorted(curves["t"].unique()), "t, training examples")
    axes.set_ylabel("error (less its floor)")
    axes.set_title("Amari's four exponents, recovered from learners built to have them")
    style.label_ends(axes, ends)
    said = "; ".join(
        f"{r.case}: {r.found:.2f}, true {r.expected:g}" for r in exponents.itertuples()
    )
    alt = f"Error against training examples for four learners, straight in log-log. {said}."
    data = {"exponents": exponents.to_dict("list"), "curves": curves.to_dict("list")}
    return Drawing(figure=figure, name="amari", alt=alt, data=data)


@style.drawn
def regimes(curve: pd.DataFrame, ranges: pd.DataFrame) -> Drawing:
    """One learning curve with chance on the left and a floor on the right."""
    figure, axes = style.panels(height=3.4)
    axes.plot(curve["d"], curve["loss"], "o", color=style.CATEGORIES[0])
    axes.axhline(np.log(257), color=style.FAINT, linestyle=":")
    axes.axhline(0.15, color=style.FAINT, linestyle="--")
    style.log_axis(axes.xaxis, [10.0**k for k in range(1, 9)], "D, training pairs")
    style.log_ticks(axes.yaxis, 0.13, 6.0, "loss (nats)")
    axes.set_title("Hestness's three regimes: chance (dotted), a power law, the floor (dashed)")
    column = ranges.columns[2]
    said = "; ".join(f"{r['range']}: {r[column]:.2f}" for _, r in ranges.iterrows())
    alt = f"Loss against pairs: flat at chance, falling, flat at a floor. Fitted exponents: {said}."
    data = {"curve": curve.to_dict("list"), "ranges": ranges.to_dict("list")}
    return Drawing(figure=figure, name="regimes", alt=alt, data=data)


@style.drawn
def allocation(approaches: pd.DataFrame, counting: pd.DataFrame) -> Drawing:
    """Left: exponent a by Chinchilla's three approaches.  Right: by what N counts, by compute."""
    figure, (left, right) = style.panels(1, 2, height=3.1)
    true = float(approaches["true"].iloc[0])
    _dots(left, approaches["approach"].str.split(":").str[0].tolist(), approaches["a"], "approach")
    left.axvline(true, color=style.FAINT, linestyle="--")
    left.set_xlim(true - 0.06, true + 0.06)
    left.set_xlabel("a, N ~ C^a (dashed: the truth)")
    left.set_title("Three approaches, one law")
    ranges = counting["compute"].unique().tolist()
    for i, (counted, rows) in enumerate(counting.groupby("N and C count", sort=False)):
        right.plot(rows["a"], range(len(ranges)), style.MARKERS[i], color=style.CATEGORIES[i],
                   label=str(counted), markersize=8)  # fmt: skip
    right.axvline(0.5, color=style.FAINT, linestyle="--")
    right.set_yticks(range(len(ranges)), [name.split(":")[0] for name in ranges])
    right.set_ylim(-0.6, len(ranges) - 0.4)
    right.set_ylabel("compute")
    right.set_xlabel("a (dashed: the truth)")
    right.set_title("What N counts")
    right.legend(loc="upper right", fontsize=8.5)
    small = counting.iloc[0]
    alt = (
        f"Exponent of the best model size in compute, true {true:.3f}: "
        + ", ".join(f"{r.approach} {r.a:.3f}" for r in approaches.itertuples())
        + f". Counting no embeddings at small compute it is {small['a']:.2f} where the truth is .5."
    )
    data = {"approaches": approaches.to_dict("list"), "counting": counting.to_dict("list")}
    return Drawing(figure=figure, name="allocation", alt=alt, data=data)


@style.drawn
def costs(refit: pd.DataFrame, reduced: pd.DataFrame) -> Drawing:
    """Cost over that of the optimum: published parameters, rounding, and where SciPy stops."""
    names = [*refit["parameters"], *(f"L-BFGS-B on the {r}" for r in reduced["Huber reduced by"])]
    ratios = np.array([*refit["ratio"], *reduced["ratio"]], dtype=float)
    figure, axes = style.panels(height=2.9)
    _dots(axes, names, ratios, "")
    for y, ratio in enumerate(ratios):
        axes.annotate(f"{ratio:.3f}", (ratio, y), (8, -3), textcoords="offset points", fontsize=9)
    axes.set_xlim(0.8, float(ratios.max()) * 1.12)
    axes.set_xlabel("cost over that of the optimum (1 is best)")
    axes.set_title("What other parameters, and other ways to search, cost")
    said = "; ".join(f"{name} {ratio:.3f}" for name, ratio in zip(names, ratios, strict=True))
    alt = f"Cost of Chinchilla's law on its points, over the optimum's. {said}."
    return Drawing(figure=figure, name="costs", alt=alt, data={"names": names, "ratios": ratios})


@style.drawn
def refitted(
    sample: pd.DataFrame, published: dict[str, float], all_points: dict[str, float]
) -> Drawing:
    """Exponents of the refit with 95 % bootstrap limits; the published values; with five points more."""
    rows = sample[sample["parameter"].isin(["alpha", "beta", "a"])].iloc[::-1]
    figure, axes = style.panels(height=2.7)
    y = np.arange(len(rows))
    ends = np.array([rows["value"] - rows["low"], rows["high"] - rows["value"]])
    axes.errorbar(rows["value"], y, xerr=ends, fmt="o", color=style.CATEGORIES[0], capsize=4,
                  label="refit, 95 %")  # fmt: skip
    for values, marker, colour, label in (
        (published, "D", style.CATEGORIES[1], "published"),
        (all_points, "s", style.CATEGORIES[2], "refit with the five dropped points"),
    ):
        x = [values[name] for name in rows["parameter"]]
        axes.plot(x, y + 0.16, marker, color=colour, label=label)
    axes.set_yticks(y, rows["parameter"].tolist())
    axes.set_ylim(-0.5, len(rows) + 0.9)
    axes.set_xlabel("exponent")
    axes.set_title("Chinchilla's exponents: published, refitted, and with five points more")
    axes.legend(loc="upper right", fontsize=8.5)
    said = "; ".join(
        f"{r['parameter']} {r['value']:.3f} ({r['low']:.3f} to {r['high']:.3f}), published "
        f"{published[r['parameter']]:.3f}, with five more points {all_points[r['parameter']]:.3f}"
        for r in rows.to_dict("records")
    )
    data = {"refit": rows.to_dict("list"), "published": published, "all points": all_points}
    return Drawing(
        figure=figure, name="refitted", alt=f"Exponents of Chinchilla's law. {said}.", data=data
    )


@style.drawn
def repeated(curve: pd.DataFrame, optima: pd.DataFrame) -> Drawing:
    """Cost of the repeated-data law against R_D, R_N refitted; the published pair and the best."""
    figure, axes = style.panels(height=3.2)
    axes.plot(curve["R_D"], 1e3 * curve["cost"], "-", color=style.CATEGORIES[0])
    known = optima[optima["cost"].notna()]
    for i, row in enumerate(known.to_dict("records")):
        axes.plot(
            row["R_D"],
            1e3 * row["cost"],
            style.MARKERS[i + 1],
            color=style.CATEGORIES[i + 1],
            markersize=9,
            label=f"{row['what']}: R_D {row['R_D']:.1f}, R_N {row['R_N']:.2f}",
        )
    style.log_axis(
        axes.xaxis, [3, 10, 30, 100, 300, 1000], "R_D, epochs after which repetition fades"
    )
    axes.set_ylabel("cost (1e-3)")
    axes.set_title("Repeated data: a flat valley with several bottoms")
    axes.legend(fontsize=8.5)
    said = "; ".join(f"{r.what} R_D {r.R_D:.1f}, cost {r.cost:.7f}" for r in known.itertuples())
    alt = f"Cost against R_D from {curve['R_D'].min():.0f} to {curve['R_D'].max():.0f}, nearly flat. {said}."
    data = {"curve": curve.to_dict("list"), "optima": optima.to_dict("list")}
    return Drawing(figure=figure, name="repeated", alt=alt, data=data)


@style.drawn
def floors(values: np.ndarray) -> Drawing:
    """Floors fitted to data that have none."""
    figure, axes = style.panels(height=2.9)
    axes.hist(
        values, bins=np.linspace(0, max(float(values.max()), 0.01), 25), color=style.CATEGORIES[0]
    )
    zero = 100 * float((values == 0).mean())
    axes.set_xlabel("fitted floor (nats); the truth is 0")
    axes.set_ylabel(f"of {len(values)} grids")
    axes.set_title(f"Where no floor is, the fit rests at 0 in {zero:.0f} % of grids")
    alt = (
        f"Histogram of floors fitted to {len(values)} noisy grids of the product law: {zero:.0f} % are "
        f"exactly 0, the largest is {values.max():.3f} nats."
    )
    return Drawing(figure=figure, name="floors", alt=alt, data={"floors": values})


def _dots(axes: Axes, names: list[str], values: pd.Series | np.ndarray, label: str) -> None:
    """One dot a row, named on the left."""
    axes.plot(np.asarray(values), range(len(names)), "o", color=style.CATEGORIES[0], markersize=8)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(-0.6, len(names) - 0.4)
    axes.set_ylabel(label)
