"""What `repro fit` says: the fit in words, and the evidence for its form."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

    from repro.laws.fit import Fit
    from repro.laws.intervals import Intervals
    from repro.laws.metric import MetricLine
    from repro.laws.table import Table


def describe(path: Path, fitted: Fit, found: Intervals, line: MetricLine | None) -> str:
    """The fit in words."""
    from repro.laws.holdout import r2_level, r2_log

    table, form = fitted.table, fitted.form
    ranges = "; ".join(
        f"{name} {values.min():g} to {values.max():g} ({len(set(values))} values)"
        for name, values in table.columns.items()
    )
    lines = [
        f"{path}: {len(table)} runs, {ranges}; "
        f"{form.response} {table.loss.min():.4g} to {table.loss.max():.4g}"
    ]
    lines += ["", fitted.report(), "", f"{100 * found.level:g} % intervals: {found.method}"]
    wide = with_effects(fitted, found)
    for name, (low, high) in found.items():
        row = f"  {name:>6} {fitted.parameters[name]:12.5g}  ({low:.5g} to {high:.5g})"
        if name in wide:
            row = f"{row:<50} ({wide[name][0]:.5g} to {wide[name][1]:.5g})"
        lines.append(row)
    if wide:
        lines.append(
            f"  in the right column: {wide.method}; trust it if models differ by themselves"
        )
    lines += [f"  note: {note}" for note in found.notes]
    lines += ["", *_in_words(fitted)]
    lines.append(
        f"The law explains {100 * r2_log(fitted):.2f} % of the variance of log {form.response} "
        f"({100 * r2_level(fitted):.2f} % of its level); a run lies {100 * fitted.sigma:.1f} % from it."
    )
    if line:
        lines.append(
            f"{line.name} = {line.intercept:.4g} {line.slope:+.4g} x loss (Pearson {line.pearson:.3f}, "
            f"a run lies {line.sd:.3g} from the line)"
        )
    return "\n".join(lines)


def with_effects(fitted: Fit, found: Intervals) -> Intervals:
    """Intervals that let models and sizes have effects of their own; empty where they add nothing."""
    from repro.errors import UserError
    from repro.laws.intervals import Intervals, intervals

    empty = Intervals({}, found.level, "")
    if found.method.startswith("t on the means"):
        return empty
    try:
        return intervals(fitted, found.level, "effects")
    except UserError:
        return empty


def _in_words(fitted: Fit) -> list[str]:
    """What doubling does, at the middle of the table."""
    table = fitted.table
    middle = {
        name: float(np.exp(np.mean(np.log(values[values > 0]))))
        for name, values in table.columns.items()
        if name in fitted.form.variables
    }
    here = float(fitted.predict(**middle))
    words = {"n": "Twice the model", "d": "Twice the pairs"}
    out = []
    for name, said in words.items():
        if name in middle:
            there = float(fitted.predict(**{**middle, name: 2 * middle[name]}))
            out.append(
                f"{said} changes the {fitted.form.response} by {100 * (there / here - 1):+.1f} % "
                f"(at {', '.join(f'{k} = {v:.3g}' for k, v in middle.items())})."
            )
    return out


def evidence(table: Table, frame: pd.DataFrame) -> str:
    """Hold-outs and comparison of the forms."""
    from repro.errors import UserError
    from repro.laws.holdout import interaction_test

    lines = [
        "",
        "Errors on runs that the fit did not see (mean relative; worst in brackets), best first:",
    ]
    lines.append(
        f"  {'law':16} {'model left out':>20} {'size left out':>20} {'corner':>9} {'AICc':>9}"
    )
    for _, row in frame.iterrows():
        cells = [
            _percent(row["loo_n"], row["loo_n_worst"]),
            _percent(row["loo_d"], row["loo_d_worst"]),
        ]
        aicc = f"{row['aicc']:9.1f}" if row["aicc"] == row["aicc"] else "        -"
        lines.append(
            f"  {row['form']:16} {cells[0]:>20} {cells[1]:>20} {_percent(row['corner']):>9} {aicc}"
        )
    if len(frame) > 1:
        lines.append(f"  {frame.attrs['verdict']}")
        lines.append("  (AICc counts every run as a fact of its own; the hold-outs do not)")
    try:
        test = interaction_test(table)
        said = "no sign against parallel lines" if test.parallel else "the lines are not parallel"
        lines.append(
            f"Interaction of N and D in log-log: {test.coefficient:+.4f} "
            f"({test.interval[0]:+.4f} to {test.interval[1]:+.4f}, p {test.p_value:.2g}): {said}."
        )
    except UserError as error:
        lines.append(f"Interaction of N and D: {error.what}.")
    return "\n".join(lines)


def _percent(mean: float, worst: float | None = None) -> str:
    if mean != mean:
        return "-"
    return f"{100 * mean:.1f} %" + (f" ({100 * worst:.1f} %)" if worst is not None else "")
