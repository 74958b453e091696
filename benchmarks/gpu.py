"""Training on a GPU: pairs a second, share of what the device multiplies, memory; beside the peer.

    python benchmarks/gpu.py [--precision bfloat16] [--pairs 32] [--side-by-side 4] [--quick]
    python benchmarks/gpu.py --device cpu --quick       (tries the script itself)

BERTs of random weights with 30,522 tokens (heads of 64), texts of apidocs cut at 32 and 180, AdamW,
cosines over .05, dropout .1; in-batch negatives and 256 that a batch shares.  `loop` is a loop over
sentence-transformers' model and its MultipleNegativesRankingLoss, of the same weights and batches, which
tokenises as it goes; `on ids` the same loop, its batches tokenised and padded beforehand.  bfloat16: all
under autocast.  Useful FLOP: 6 x encoder parameters x tokens, and attention, padding not counted.
Side by side: as many processes train the first shape on one device, against one alone.  Without a GPU it
says so and ends.
"""

from __future__ import annotations

import argparse
import functools
import multiprocessing
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_args

import common
import numpy as np
import peer
import torch
import turns
from common import Asked
from numpy.typing import NDArray

from repro.model.memory import Precision
from repro.model.texts import Texts
from repro.train.loop import RunSpec, Trainer
from train import LR, Pairs, Strings, padded, run_spec, trainer

SHAPES = {
    "Tiny": "2x128+30522",
    "Mini": "4x256+30522",
    "Small": "4x512+30522",
    "Medium": "8x512+30522",
    "Base": "12x768+30522",
}
TOKENS = 32, 180
CHUNK_TOKENS = 16_384  # as params/paper.yaml
PRODUCT = 8192  # the matrices of the bfloat16 rate
LEAST = 1.0


@dataclass(frozen=True)
class Setting:
    """What is trained, and on what; a process side by side with others is given it too."""

    device: str
    precision: Precision
    pairs: int
    negatives: int
    steps: int  # of each contender in a round
    seconds: float  # of a round side by side

    def trainer(self, model: str) -> Trainer:
        """Our trainer at its start."""
        return trainer(model, self.spec(model), self.texts(model), common.apidocs(), self.device)

    def spec(self, model: str) -> RunSpec:
        """The run that it does."""
        return run_spec(
            self.texts(model),
            common.apidocs(),
            dropout=0.1,
            precision=self.precision,
            pairs=self.pairs,
            negatives=self.negatives,
        )

    def texts(self, model: str) -> Texts:
        """The texts that it reads."""
        return common.texts(model, *TOKENS, CHUNK_TOKENS)


def main() -> None:
    """Measure every shape and print the table."""
    given = options()
    if given.device == "cuda" and not torch.cuda.is_available():
        print("benchmarks: there is no GPU here; nothing is measured")
        return
    common.use_threads(1)
    version = peer.use()
    setting = Setting(
        given.device,
        given.precision,
        *((4, 8, 1, 0.5) if given.quick else (given.pairs, 256, given.steps, 10.0)),
    )
    size = 256 if given.quick else PRODUCT
    rate = common.product_rate(10, size, torch.bfloat16, torch.device(given.device))
    rows, asked = [], []
    for name in ["Tiny"] if given.quick else given.shapes:
        row, more = measure(name, setting, rate, common.rounds(given))
        rows.append(common.told(row))
        asked.append(more)
    columns = [
        "shape",
        "pairs a second",
        "tokens a second",
        "FLOP a second",
        "of bfloat16 products",
    ]
    columns += ["MB", "loop, MB", "ours / loop", "ours / on ids"]
    device = torch.cuda.get_device_name() if given.device == "cuda" else "the CPU"
    note = (
        f"On {device}, {given.precision}, {setting.pairs} pairs, {setting.negatives} shared negatives."
        "  Median (least to greatest); ratios within a round.\nOf bfloat16 products: FLOP a second over "
        f"those of a product of {size} cubed in the same round.  MB: the most allocated (CPU: resident "
        f"afterwards).\nPeer: {version}."
    )
    if given.side_by_side > 1:
        note += "\n" + beside(given.side_by_side, setting, common.rounds(given))
    common.show(f"Training on a device, {given.precision}", columns, rows, asked, note)


def options() -> argparse.Namespace:
    """What was asked for."""
    parser = common.options(__doc__)
    add = parser.add_argument
    add("--device", choices=["cuda", "cpu"], default="cuda")
    add("--precision", choices=get_args(Precision), default="float32")
    add("--pairs", type=int, default=32, help="of a batch")
    add("--steps", type=int, default=20, help="of each in a round")
    add("--shapes", nargs="*", choices=SHAPES, default=list(SHAPES))
    add("--side-by-side", type=int, default=1, metavar="N", help="processes on one device")
    return parser.parse_args()


def measure(
    name: str, setting: Setting, rate: Callable[[], float], rounds: int
) -> tuple[list[str], Asked]:
    """The table row of a shape, and what is asked of it."""
    model, device = SHAPES[name], torch.device(setting.device)
    most = most_allocated(device)
    ours = setting.trainer(model)
    ours.step()
    ours.step()
    peaks = [most()]
    most = most_allocated(device)
    encoder = common.encoder(model, ours.spec.encoder)
    made = peer.model(encoder, model, TOKENS[1], setting.device)
    loop = peer.Loop(made, LR, reduced=setting.precision == "bfloat16")
    draw, strings = Pairs(common.apidocs(), ours.spec), Strings(model, TOKENS)
    for texts in strings(draw(0, 2)):
        loop.step(*texts)
    peaks.append(most())
    places = dict.fromkeys(("loop", "on ids"), 2)
    done: dict[str, list[float]] = {"tokens": [], "flop": []}

    def step_ours() -> float:
        tokens, flop = ours.tokens, ours.flop
        spent = timed([ours.step] * setting.steps, device)
        done["tokens"].append((ours.tokens - tokens) / spent)
        done["flop"].append((ours.flop - flop) / spent)
        return setting.steps * setting.pairs / spent

    def step_loop(name: str) -> float:
        pairs = draw(places[name], setting.steps)
        places[name] += setting.steps
        if name == "loop":
            steps = [functools.partial(loop.step, *texts) for texts in strings(pairs)]
        else:
            batches = [list(padded(ours.texts, *batch)) for batch in pairs]
            steps = [functools.partial(loop.features, batch) for batch in batches]
        return setting.steps * setting.pairs / timed(steps, device)

    contenders = {name: functools.partial(step_loop, name) for name in places}
    found = common.alternate({"ours": step_ours, "product": rate, **contenders}, rounds)
    times = [found["ours"] / found[name] for name in places]
    rates = {name: np.array(values) for name, values in done.items()}
    share = rates["flop"] / found["product"]
    row = [name, *map(common.spread, (found["ours"], *rates.values())), common.spread(share, 2)]
    row += [*(f"{peak / 1e6:,.0f}" for peak in peaks), *map(common.spread, times)]
    return row, Asked(f"{name}, pairs a second over loop", LEAST, times[0])


def timed(steps: list[Callable[[], object]], device: torch.device) -> float:
    """Seconds until the device has done these steps."""
    return common.seconds(lambda: [*(step() for step in steps), common.waited(device)])


def most_allocated(device: torch.device) -> Callable[[], float]:
    """Gives the most bytes allocated since, less those held now; on the CPU those that are resident."""
    if device.type == "cpu":
        return lambda: turns.resident(os.getpid())
    held = torch.cuda.memory_allocated(device)
    torch.cuda.reset_peak_memory_stats(device)
    return lambda: torch.cuda.max_memory_allocated(device) - held


def beside(n: int, setting: Setting, rounds: int) -> str:
    """What processes of the first shape side by side do, in words."""
    found = common.alternate(
        {str(count): functools.partial(together, count, setting) for count in (1, n)}, rounds
    )
    rates: list[NDArray[np.float64]] = list(found.values())
    return (
        f"Tiny, {n} processes on one device: {common.spread(rates[1])} pairs a second in all, "
        f"{common.spread(rates[1] / rates[0])} times one alone ({common.spread(rates[0])})."
    )


def together(n: int, setting: Setting) -> float:
    """Pairs a second of `n` processes in all."""
    context = multiprocessing.get_context("spawn")
    barrier, found = context.Barrier(n, timeout=300), context.SimpleQueue()
    processes = [
        context.Process(target=_train, args=(setting, barrier, found), daemon=True)
        for _ in range(n)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    if any(process.exitcode for process in processes):
        raise SystemExit("benchmarks: a process failed (its words are above)")
    return sum(found.get() for _ in processes)


def _train(setting: Setting, barrier: Any, found: Any) -> None:
    """Train for as long as is asked, from when all are ready; give pairs a second."""
    torch.set_num_threads(1)
    ours, device = setting.trainer(SHAPES["Tiny"]), torch.device(setting.device)
    timed([ours.step] * 2, device)
    barrier.wait()
    began, before = time.perf_counter(), ours.done
    while time.perf_counter() - began < setting.seconds:
        timed([ours.step] * setting.steps, device)
    found.put((ours.done - before) * setting.pairs / (time.perf_counter() - began))


if __name__ == "__main__":
    main()
