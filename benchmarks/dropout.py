"""Dropout on a CPU: ours, whose bits come from numpy, and torch's, by turns, one thread.

    python benchmarks/dropout.py [--quick]

Nanoseconds an element, forward alone, on hidden states and feed-forward states of a step.
"""

from __future__ import annotations

import common
import numpy as np
import torch

from repro.model.dropout import Dropout

SHAPES = [(4400, 32), (4400, 128), (4400, 512)]
RATE = 0.1


def main() -> None:
    """Measure every shape and print the table."""
    given = common.options(__doc__).parse_args()
    common.use_threads(1)
    ours, rows = Dropout(torch.device("cpu")), []
    for shape in SHAPES[:1] if given.quick else SHAPES:
        values = torch.randn(shape)
        repeats = 2 if given.quick else 40

        def timed(work, values: torch.Tensor = values, repeats: int = repeats) -> float:
            spent = common.seconds(lambda: [work(values, RATE) for _ in range(repeats)])
            return 1e9 * spent / repeats / values.numel()

        timed(ours)
        found = common.alternate(
            {"ours": lambda: timed(ours), "torch": lambda: timed(torch.nn.functional.dropout)},
            common.rounds(given),
        )
        times = common.spread(found["torch"] / found["ours"], 2)
        medians = [f"{np.median(found[name]):.2f}" for name in ("ours", "torch")]
        rows.append(common.told(["x".join(map(str, shape)), *medians, times]))
    columns = ["values", "ours, ns", "torch, ns", "torch / ours"]
    common.show("Dropout", columns, rows, [], "Medians; ratios within a round.")


if __name__ == "__main__":
    main()
