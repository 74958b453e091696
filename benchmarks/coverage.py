"""How often do the intervals hold the truth?  Simulated, printed as the table of docs/laws.md.

    python benchmarks/coverage.py [--draws 4000] [--write docs/laws.md]

Each simulation draws a grid of losses from a known law with 2 % log-normal noise, with or without an
effect of every model (and of every size), fits it with the library's defaults and asks each kind of
interval whether it holds the true exponents and floor.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from repro.laws.fit import Fit, fit
from repro.laws.intervals import Method, intervals
from repro.laws.shapes import Array
from repro.laws.table import Table
from repro.seeds import stream

MODELS = np.array([396_544, 3_159_040, 12_609_536, 25_219_072, 85_054_464], dtype=float)
SIZES = 5_000.0 * 2.0 ** np.arange(7)
NOISE = 0.02
BEGIN, END = "<!-- coverage: begin -->", "<!-- coverage: end -->"


@dataclass(frozen=True)
class Case:
    """A law with its true parameters, the effects added to it, and the cells that are missing."""

    form: str
    truth: dict[str, float]
    model_effect: float = 0.0
    size_effect: float = 0.0
    missing: str = "none"
    models: int = 5
    sizes: int = 7
    methods: tuple[Method, ...] = ("profile", "effects", "wald")
    fewer: int = 1  # simulate so many times less often (bootstraps)

    @property
    def grid(self) -> tuple[Array, Array]:
        """N and D of the cells that are there."""
        rows = np.linspace(0, 4, self.models).round().astype(int)
        columns = np.linspace(0, 6, self.sizes).round().astype(int)
        n, d = (v.ravel() for v in np.meshgrid(MODELS[rows], SIZES[columns], indexing="ij"))
        keep = np.ones(len(n), dtype=bool)
        if self.missing == "dear corner":
            keep = ~((n >= MODELS[3]) & (d >= SIZES[5]))
        elif self.missing == "every fifth cell":
            keep = np.arange(len(n)) % 5 != 2
        return n[keep], d[keep]


PRODUCT = {"c": 100.0, "alpha": 0.161, "beta": 0.206}
JOINT = {"A": 3.6e4, "B": 7.1e3, "alpha": 0.56, "beta": 1.31, "delta": 0.03}
ADDITIVE = {"A": 90.0, "alpha": 0.35, "B": 30.0, "beta": 0.4, "E": 0.2}
FLOOR = {"c": 100.0, "alpha": 0.161, "beta": 0.206, "E": 0.2}
HEAD = {"c": 100.0, "alpha": 0.161, "beta": 0.3, "D0": 5000.0}
MEANS: tuple[Method, ...] = ("means", "wald")


def cases() -> Iterator[Case]:
    """Every case of the table."""
    for effects in ((0.0, 0.0), (0.02, 0.0), (0.02, 0.02)):
        yield Case("product", PRODUCT, *effects, methods=MEANS)
    yield Case("product", PRODUCT, 0.02, 0.0, models=3, sizes=4, methods=MEANS)
    for missing in ("dear corner", "every fifth cell"):
        for effect in (0.0, 0.02):
            yield Case("product", PRODUCT, effect, 0.0, missing, methods=("means", "effects"))
    for form, truth in (("joint_floor", JOINT), ("additive_floor", ADDITIVE)):
        for effects in ((0.0, 0.0), (0.02, 0.0), (0.02, 0.02)):
            yield Case(form, truth, *effects)
    for form, truth in (("product_floor", FLOOR), ("product_d0", HEAD)):
        for effects in ((0.0, 0.0), (0.02, 0.0)):
            yield Case(form, truth, *effects)
    yield Case("joint_floor", JOINT, 0.02, 0.0, "dear corner")
    for form, truth in (("product", PRODUCT), ("joint_floor", JOINT)):
        yield Case(form, truth, methods=("bootstrap",), fewer=8)


def law(form: str, p: dict[str, float]) -> Callable[[Array, Array], Array]:
    """The true law, written out again on purpose: the library does not check itself."""
    if form == "joint_floor":
        power = p["alpha"] / p["beta"]
        return lambda n, d: ((p["A"] / n) ** power + p["B"] / d) ** p["beta"] + p["delta"]
    if form == "additive_floor":
        return lambda n, d: p["A"] * n ** -p["alpha"] + p["B"] * d ** -p["beta"] + p["E"]
    shift, floor = p.get("D0", 0.0), p.get("E", 0.0)
    return lambda n, d: p["c"] * n ** -p["alpha"] * (d + shift) ** -p["beta"] + floor


def simulate(case: Case, seeds: range) -> dict[tuple[str, str], tuple[int, int, list[float]]]:
    """(method, parameter) -> times inside, times asked, half widths."""
    n, d = case.grid
    true = law(case.form, case.truth)(n, d)
    asked = [p for p in case.truth if p not in ("c", "A", "B")]
    out: dict[tuple[str, str], tuple[int, int, list[float]]] = {}
    for seed in seeds:
        rng = stream(seed, "coverage", case.form)
        log_loss = np.log(true) + NOISE * rng.normal(size=len(n))
        log_loss += case.model_effect * _effect(n, rng) + case.size_effect * _effect(d, rng)
        fitted = fit(case.form, Table(np.exp(log_loss), n, d))
        for method in case.methods:
            _ask(fitted, method, case, asked, out, rng)
    return out


def _effect(values: Array, rng: np.random.Generator) -> Array:
    distinct, index = np.unique(values, return_inverse=True)
    return rng.normal(size=len(distinct))[index]


def _ask(
    fitted: Fit,
    method: Method,
    case: Case,
    asked: list[str],
    out: dict[tuple[str, str], tuple[int, int, list[float]]],
    rng: np.random.Generator,
) -> None:
    found = intervals(fitted, method=method, rng=rng, draws=400)
    for name in asked:
        if name in found:
            low, high = found[name]
            inside, count, widths = out.get((method, name), (0, 0, []))
            widths.append((high - low) / 2)
            out[method, name] = (inside + (low <= case.truth[name] <= high), count + 1, widths)


def rows(case: Case, draws: int, workers: int) -> Iterator[str]:
    """Markdown rows of one case."""
    draws //= case.fewer
    edges = np.linspace(0, draws, workers + 1).astype(int)
    parts = [range(a, b) for a, b in pairwise(edges)]
    with ProcessPoolExecutor(workers) as pool:
        results = list(pool.map(simulate, [case] * workers, parts))
    effects = f"{100 * case.model_effect:g} / {100 * case.size_effect:g} %"
    grid = f"{case.models}x{case.sizes}" + (
        "" if case.missing == "none" else f", no {case.missing}"
    )
    for method in case.methods:
        cells = []
        for name in (p for p in case.truth if p not in ("c", "A", "B")):
            found = [r[method, name] for r in results if (method, name) in r]
            inside, count = sum(f[0] for f in found), sum(f[1] for f in found)
            width = np.median([w for f in found for w in f[2]])
            share = f" ({count} draws)" if count < draws or case.fewer > 1 else ""
            cells.append(f"{name} {inside / count:.3f} +-{width:.2g}{share}")
        yield f"| {case.form} | {grid} | {effects} | {method} | {'; '.join(cells)} |"


def main() -> None:
    """Run all cases, print the table, and write it into a page if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=4000)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    started = time.perf_counter()
    lines = [
        f"{options.draws} simulations a row; nominal 95 %; simulation error about "
        f"{196 * np.sqrt(0.95 * 0.05 / options.draws):.1f} points.",
        "",
        "| law | grid | model / size effect | intervals | coverage, median half width |",
        "|---|---|---|---|---|",
    ]
    for case in cases():
        for line in rows(case, options.draws, options.workers):
            print(line, flush=True)
            lines.append(line)
    print(f"{time.perf_counter() - started:.0f} s")
    if options.write:
        page = options.write.read_text(encoding="utf-8")
        head, rest = page.split(BEGIN)
        _, tail = rest.split(END)
        text = "\n".join(lines)
        options.write.write_text(f"{head}{BEGIN}\n{text}\n{END}{tail}", encoding="utf-8")


if __name__ == "__main__":
    main()
