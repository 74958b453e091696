"""A fit as text for people and as data for JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from repro.laws.shapes import LOGGED

if TYPE_CHECKING:
    from repro.laws.result import Fit


def text(fitted: Fit) -> str:
    """The fit in plain text: parameters, errors, goodness, record of the optimiser, warnings."""
    lines = [f"{fitted.form.title}: {fitted.form.response} = {fitted.form.formula}"]
    kind = "least squares" if np.isinf(fitted.delta) else f"summed Huber, delta {fitted.delta:g},"
    lines.append(
        f"  {kind} on log {fitted.form.response}; "
        f"{len(fitted.table)} points, {fitted.n_free} parameters"
    )
    if fitted.dropped:
        lines.append(f"  dropped: {fitted.dropped}")
    for parameter in fitted.form.shape.parameters:
        value, error = fitted.parameters[parameter.name], fitted.standard_errors[parameter.name]
        if parameter.name in fitted.known:
            note = "fixed"
        else:
            note = f"+- {100 * error:.2g} %" if parameter.kind in LOGGED else f"+- {error:.2g}"
        lines.append(f"  {parameter.name:>6} {value:14.6g}  {note:<12} {parameter.meaning}")
    lines.append(
        f"  residual sd {100 * fitted.sigma:.2f} %; cost {fitted.cost:.10g}; "
        f"condition {fitted.condition:.1e}"
    )
    lines.append(
        f"  {fitted.record.screened} starts screened, {fitted.record.polished} polished, "
        f"{fitted.record.reached} at the optimum; scaled gradient {fitted.record.gradient:.1e}"
    )
    return "\n".join(lines + [f"  note: {warning}" for warning in fitted.warnings])


def data(fitted: Fit) -> dict[str, Any]:
    """Everything needed to rebuild the fit, with its points and warnings, ready for JSON."""
    columns = {name: values.tolist() for name, values in fitted.table.columns.items()}
    return {
        "form": fitted.form.name,
        "formula": fitted.form.formula,
        "parameters": fitted.parameters,
        "standard_errors": fitted.standard_errors,
        "sigma": fitted.sigma,
        "cost": fitted.cost,
        "delta": None if np.isinf(fitted.delta) else fitted.delta,
        "fixed": dict(fitted.known),
        "dropped": fitted.dropped,
        "warnings": list(fitted.warnings),
        "record": {**fitted.record.__dict__, "optima": [list(o) for o in fitted.record.optima]},
        "internal": {"theta": fitted.theta.tolist(), "centre": dict(fitted.centre)},
        "table": {
            **columns,
            "loss": fitted.table.loss.tolist(),
            "weights": None if fitted.table.weights is None else fitted.table.weights.tolist(),
            "bound": fitted.table.bound.tolist(),
        },
    }
