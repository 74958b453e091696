"""How two workers scale, and what of a sweep's time is neither training nor evaluation.

    python benchmarks/workers.py [--whole] [--quick]

Two processes of one thread each train (mini's settings) or multiply 2048 cubed float32 matrices,
alone and together, by turns.  Scaling: the rate of both over the sum of the rates of each alone;
what counts is that of training over that of the products, since two cores share memory and clock.
The sweep: runs of mini (--whole: all of them; else the two smallest models at two middle sizes) by
two workers in a store of its own, data prepared beforehand.  Training is a run's steps and readings
(their share of a run's own time is taken from one run that is watched), evaluation its ranking;
the rest is the start of workers, loading, checkpoints, publishing, and a worker that waits.
"""

from __future__ import annotations

import functools
import json
import multiprocessing
import time
from multiprocessing.connection import Connection
from pathlib import Path
from unittest import mock

import common
import numpy as np
import torch
from common import Asked
from evaluate import mini, trainer_at

from repro.data.dataset import load_dataset_params, prepare
from repro.experiments import grid
from repro.experiments.profile import Profile
from repro.experiments.runs import Runs, Trained
from repro.store import Store
from repro.train import loop
from repro.work import local
from repro.work.local import ExecuteParams
from repro.work.makers import Makers

MODELS = ["1x32", "2x64", "2x128"]
WORKERS = 2
SECONDS = 3.0  # of each turn
SCALING, OUTSIDE = 0.95, 0.05


def main() -> None:
    """Measure both and print the tables."""
    parser = common.options(__doc__)
    parser.add_argument("--whole", action="store_true", help="sweep every run of mini")
    given = parser.parse_args()
    common.use_threads(1)
    common.apidocs()  # prepared before two processes ask for it
    rows, asked = [], []
    for model in MODELS[:1] if given.quick else MODELS:
        row, more = scaling(model, 0.5 if given.quick else SECONDS, common.rounds(given))
        rows.append(common.told(row))
        asked.append(more)
    columns = ["model", "training", "products", "training / products"]
    note = "Rate of both over the sum of the rates of each alone: median (least to greatest)."
    common.show("Two workers", columns, rows, asked, note)
    columns, row, outside = sweep(mini(), whole=given.whole, quick=given.quick)
    note = "Shares of workers x wall time.  In runs: loading, checkpoints; between: starts, waits."
    common.show("A sweep's time", columns, [row], [outside], note)


# Two workers


def scaling(model: str, span: float, rounds: int) -> tuple[list[str], Asked]:
    """The table row of a model, and what is asked of it."""
    context = multiprocessing.get_context("spawn")
    pipes, processes = [], []
    for index in range(WORKERS):
        ours, theirs = context.Pipe()
        process = context.Process(target=_worker, args=(theirs, model, index), daemon=True)
        process.start()
        pipes.append(ours)
        processes.append(process)

    def rate(kind: str, who: list[int]) -> float:
        for index in who:
            pipes[index].send((kind, span))
        return sum(pipes[index].recv() for index in who)

    each = {
        f"{kind} {who}": functools.partial(rate, kind, who)
        for kind in ("train", "product")
        for who in ([0], [0, 1], [1])
    }
    for run in each.values():  # warm up
        run()
    found = common.alternate(each, rounds)
    for pipe in pipes:
        pipe.send(("end", 0.0))
    for process in processes:
        process.join()
    shares = [
        found[f"{kind} [0, 1]"] / (found[f"{kind} [0]"] + found[f"{kind} [1]"])
        for kind in ("train", "product")
    ]
    ratio = shares[0] / shares[1]
    row = [model, *(common.spread(values) for values in (*shares, ratio))]
    return row, Asked(f"{model}, scaling of training over that of products", SCALING, ratio)


def _worker(pipe: Connection, model: str, index: int) -> None:
    """Do what is asked for as long as is asked; answer with units a second."""
    torch.set_num_threads(1)
    trainer = trainer_at(model, mini(), seed=index)
    left, right = torch.rand(2, common.SGEMM, common.SGEMM)
    units = {"train": trainer.step, "product": lambda: torch.mm(left, right)}
    while True:
        kind, span = pipe.recv()
        if kind == "end":
            return
        began, done = time.perf_counter(), 0
        while time.perf_counter() - began < span:
            units[kind]()
            done += 1
        pipe.send(done / (time.perf_counter() - began))


# A sweep


def sweep(profile: Profile, *, whole: bool, quick: bool) -> tuple[list[str], list[str], Asked]:
    """Columns and row of the sweep's table, and what is asked of it."""
    if quick:
        profile = _only(profile, profile.grid.models[:1], profile.grid.sizes[:2])
    elif not whole:
        middle = len(profile.grid.sizes) // 2
        sizes = profile.grid.sizes[middle - 1 : middle + 1]
        profile = _only(profile, profile.grid.models[:2], sizes)
    store = Store(common.scratch() / "runs")
    plan = Runs(profile, prepare(store, load_dataset_params("apidocs")), store)
    planned = grid.runs(plan)
    in_steps = _watched(store, planned[0])
    tasks = [task for run in planned for task in (run.train, run.ranking)]
    execute = ExecuteParams(workers=WORKERS, device="cpu")
    wall = common.seconds(lambda: _must(local.run(store, tasks, execute, title="benchmark")))
    trained = sum(_spent(store, "train", run.train.spec) for run in planned)
    ranked = sum(_spent(store, "measure", run.ranking.spec) for run in planned)
    total = WORKERS * wall
    inside = (in_steps * trained + ranked) / total
    parts = (
        in_steps * trained / total,
        ranked / total,
        (1 - in_steps) * trained / total,
        1 - (trained + ranked) / total,
    )
    row = [f"{len(planned)}", f"{wall:.1f}", *(f"{part:.1%}" for part in parts)]
    columns = ["runs", "wall, s", "training and readings", "ranking", "in runs", "between"]
    what = f"a sweep of {len(planned)} runs, share outside training and evaluation"
    return columns, row, Asked(what, OUTSIDE, np.array([1 - inside]), at_most=True)


def _only(profile: Profile, models: list[str], sizes: list[int]) -> Profile:
    cells = profile.grid.model_copy(update={"models": models, "sizes": sizes, "reseeds": 0})
    return profile.model_copy(update={"grid": cells})


def _watched(store: Store, run: Trained) -> float:
    """The share of a run's own time that its steps and readings take; the run is not kept."""
    spent = [0.0]

    def watch(name: str) -> object:
        method = getattr(loop.Trainer, name)

        def timed(self: loop.Trainer) -> object:
            began = time.perf_counter()
            found = method(self)
            spent[0] += time.perf_counter() - began
            return found

        return mock.patch.object(loop.Trainer, name, timed)

    folder = common.scratch() / "watched"
    folder.mkdir()
    makers = Makers(store, "cpu")
    with watch("step"), watch("validate"):
        wall = common.seconds(lambda: makers.make(run.train, folder, _silent))
    return spent[0] / wall


def _silent(_flop: float, _note: str) -> None:
    pass


def _spent(store: Store, kind: str, spec: dict[str, object]) -> float:
    """The seconds that a result took, its publishing not included."""
    folder: Path = store.path(kind, store.key(kind, spec))
    return float(json.loads((folder / "provenance.json").read_text(encoding="utf-8"))["seconds"])


def _must(failed: dict[str, str]) -> None:
    if failed:
        raise SystemExit(f"benchmarks: {len(failed)} runs failed: {next(iter(failed.values()))}")


if __name__ == "__main__":
    main()
