"""Every form, with its 64 starts and 1,000 case resamples, on a table of 35 points: CPU seconds.

    OMP_NUM_THREADS=1 python benchmarks/fit_forms.py [--json OUT]

Each form is fitted to 5 x 7 points made from a law of its own shape with 2 % noise, so that the
parameters are as well determined as they can be.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from repro.laws.fit import fit
from repro.laws.forms import FORMS, Form
from repro.laws.resample import bootstrap
from repro.laws.shapes import stack_variables
from repro.laws.table import Table
from repro.seeds import stream

FIRST = {"n": np.geomspace(4e5, 8.5e7, 5), "p": np.geomspace(1e3, 1e5, 5)}
SECOND = np.geomspace(5e3, 3.2e5, 7)


def table(law: Form, seed: int = 0) -> Table:
    """35 points of a law of this form: its parameters in the middle of the range of starts."""
    names = law.variables
    rows, columns = np.meshgrid(np.arange(5), np.arange(7), indexing="ij")
    one = FIRST.get(names[0], np.geomspace(1e5, 1e8, 5))[rows.ravel()]
    values = {names[0]: one * (1 if len(names) > 1 else np.geomspace(1, 10, 7)[columns.ravel()])}
    if len(names) > 1:
        values[names[1]] = SECOND[columns.ravel()]
    if len(names) > 2:  # unique data: a fifth of what was seen, at the larger sizes
        values[names[2]] = values["d"] / np.where(columns.ravel() % 2, 5, 1)
    centre = {name: float(np.log(column).mean()) for name, column in values.items()} | {"loss": 0.0}
    centre |= {name: centre[like] for name, like in law.shape.centred_with.items()}
    theta = np.array([[np.mean(p.start)] for p in law.shape.parameters])
    x = stack_variables(values, names, centre)
    log_loss = law.shape.evaluate(theta, x)[0][0]
    log_loss += 0.02 * stream(seed, "benchmark", law.name).normal(size=35)
    known = {name: values.pop(name) for name in ("n", "d") if name in values}
    return Table(np.exp(log_loss), known.get("n"), known.get("d"), extra=values)


def main() -> None:
    """Time every form, print a table, store it if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    record = {}
    fit("product", table(FORMS["product"]))  # warm up
    for name, law in FORMS.items():
        points = table(law)
        started = time.process_time()
        fitted = fit(law, points)
        middle = time.process_time()
        bootstrap(fitted, 1000, stream(0, "benchmark", "resamples", name))
        ended = time.process_time()
        record[name] = {"fit": middle - started, "resamples": ended - middle}
        print(
            f"{name:16} {len(law.names)} parameters: 64 starts {1e3 * (middle - started):6.0f} ms, "
            f"1,000 resamples {1e3 * (ended - middle):6.0f} ms"
        )
    slowest = max(record, key=lambda name: sum(record[name].values()))
    print(f"slowest: {slowest}, {sum(record[slowest].values()):.2f} s")
    if options.json:
        options.json.write_text(json.dumps(record, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
