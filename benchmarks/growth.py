"""How costs grow: a step, its memory, fits and resamples, each against what it should be linear in.

    python benchmarks/growth.py [--rounds 3] [--quick]

Of every series the exponent between its ends, the slope of log cost over log size: 1 is linear, 0 flat.
Steps are those of 2x128 on apidocs (texts cut at 32 and 180, in-batch negatives), one thread; their size is
pairs, mean tokens of a text as it is cut shorter or later, or negatives that 16 pairs share.  Memory: what
a step with gradient caching has resident above what was resident before it, a process for each batch, all
beyond one chunk, once; `in use`: the allocator gives back what is freed (glibc MALLOC_MMAP_THRESHOLD_), so
that the gaps it keeps between pieces of many sizes are not counted.  Fits: a law with a floor, by size of
the table and by starts; resamples of 36 points.
"""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

import common
import numpy as np
import turns
from common import Asked
from numpy.typing import NDArray

from repro.laws.fit import fit
from repro.laws.resample import bootstrap
from repro.laws.table import Table
from repro.model.texts import Texts
from repro.seeds import stream
from repro.train.loop import Trainer
from train import run_spec, trainer

MODEL, QUERY_TOKENS = "2x128", 32
LENGTHS = [32, 64, 128, 180]  # at which passages are cut
CHUNK_TOKENS, STEP_TOKENS = 4096, 64  # of the steps whose memory is looked at: always cached
MEMORY = {"resident": {}, "in use": {"MALLOC_MMAP_THRESHOLD_": "65536"}}
LINEAR, LONGER, FLAT = 1.1, 1.5, 0.1  # most that is asked; attention is quadratic in the length
LAW, TRUTH = "additive_floor", {"A": 90.0, "alpha": 0.35, "B": 30.0, "beta": 0.4, "E": 0.2}


def main() -> None:
    """Measure every series and print the table."""
    if sys.argv[1:2] == ["turn"]:
        print(json.dumps(turn(int(sys.argv[2]))))
        return
    given = common.options(__doc__).parse_args()
    common.use_threads(1)
    quick = given.quick
    n_rounds = given.rounds or (1 if quick else 3)
    rows: list[list[str]] = []
    asked: list[Asked] = []

    def add(
        what: str,
        sizes: Sequence[float],
        cost: Sequence[Callable[[], float]],
        most: float,
        n_rounds: int = n_rounds,
    ) -> None:
        found = common.alternate(dict(enumerate(cost)), n_rounds)
        exponent = np.log(found[len(cost) - 1] / found[0]) / np.log(sizes[-1] / sizes[0])
        rows.append(common.told([
            what,
            ", ".join(f"{size:.4g}" for size in sizes),
            ", ".join(f"{np.median(values):.3g}" for values in found.values()),
            common.spread(exponent),
        ]))  # fmt: skip
        asked.append(Asked(f"{what}, exponent", most, exponent, at_most=True))

    def ends(values: list[int], few: int) -> list[int]:
        return values[:few] if quick else values

    pairs = ends([8, 16, 32, 64, 128], 2)
    add("a step, s, by pairs", pairs, [steps(stepper(n)) for n in pairs], LINEAR)
    cut = [stepper(16 if quick else 32, tokens=tokens) for tokens in ends(LENGTHS, 2)]
    lengths = [mean_length(each) for each in cut]
    add("a step, s, by tokens of a text", lengths, [steps(each) for each in cut], LONGER)
    shared = ends([32, 64, 128, 256, 512], 2)
    costs = [steps(stepper(16, negatives=n)) for n in shared]
    add("a step, s, by shared negatives", shared, costs, LINEAR)
    cached = ends([128, 256, 512], 2)
    for name, environment in MEMORY.items():
        costs = [memory(n, environment) for n in cached]
        add(f"memory of a step, MB {name}, by pairs", cached, costs, FLAT, n_rounds=1)
    points = [6, 12] if quick else [6, 12, 24, 48]
    costs = [functools.partial(fitted, table(side), 64) for side in points]
    add("a fit, s, by points", [side**2 for side in points], costs, LINEAR)
    starts = ends([64, 256, 1024, 4096], 2)
    costs = [functools.partial(fitted, table(6), n) for n in starts]
    add("a fit, s, by starts", starts, costs, LINEAR)
    draws = ends([250, 1000, 4000], 2)
    add("resamples, s, by draws", draws, [resampled(n) for n in draws], LINEAR)
    columns = ["what", "sizes", "medians", "exponent"]
    note = "Exponents between the ends, within a round: median (least to greatest)."
    common.show("Growth", columns, rows, asked, note)


def stepper(
    pairs: int, *, tokens: int = LENGTHS[-1], negatives: int = 0, cached: bool = False
) -> Trainer:
    """A trainer that has warmed up."""
    chunk = CHUNK_TOKENS if cached else 8192
    seen: Texts = common.texts(MODEL, QUERY_TOKENS, tokens, chunk)
    spec = run_spec(seen, common.apidocs(), dropout=0.1, pairs=pairs, negatives=negatives)
    if cached:
        train = spec.train.model_copy(update={"step_tokens": STEP_TOKENS})
        return trainer(MODEL, spec.model_copy(update={"train": train}), seen, common.apidocs())
    made = trainer(MODEL, spec, seen, common.apidocs())
    made.step()
    return made


def steps(made: Trainer, n: int = 2) -> Callable[[], float]:
    """Measures the seconds of a step."""
    return lambda: common.seconds(lambda: [made.step() for _ in range(n)]) / n


def mean_length(made: Trainer) -> float:
    """Tokens of a text in the steps done."""
    n_texts = made.done * 2 * made.spec.train.batch_pairs
    return made.tokens / n_texts


def memory(pairs: int, environment: dict[str, str]) -> Callable[[], float]:
    """Measures, in a process of its own, the MB that a cached step of so many pairs takes."""

    def taken() -> float:
        told = turns.watched(turns.start(__file__, str(pairs), **environment))
        return float(told["bytes"] - told["before"]) / 1e6

    return taken


def turn(pairs: int) -> dict[str, Any]:
    """Do such a step; what was resident before it."""
    common.use_threads(1)
    made = stepper(pairs, cached=True)
    before = turns.resident(os.getpid())
    made.step()
    if not made.cached:
        sys.exit("benchmarks: the step was not cached")
    return {"before": before}


def table(side: int) -> Table:
    """Losses of so many models at so many sizes by a law, with 2 % noise."""
    grid = np.meshgrid(np.geomspace(4e5, 8.5e7, side), np.geomspace(5e3, 3.2e5, side))
    n, d = (values.ravel() for values in grid)
    loss = TRUTH["A"] * n ** -TRUTH["alpha"] + TRUTH["B"] * d ** -TRUTH["beta"] + TRUTH["E"]
    noise: NDArray[np.float64] = stream(0, "benchmark", side).normal(size=len(n))
    return Table(loss * np.exp(0.02 * noise), n, d)


def fitted(points: Table, starts: int) -> float:
    """Seconds of a fit."""
    return common.seconds(lambda: fit(LAW, points, starts=starts))


def resampled(draws: int) -> Callable[[], float]:
    """Measures the seconds of so many resamples of a fit to 36 points."""
    law = fit(LAW, table(6))
    return lambda: common.seconds(
        lambda: bootstrap(law, draws, stream(0, "benchmark", "resamples", draws))
    )


if __name__ == "__main__":
    main()
