"""Every experiment of a study: the runs that it asks for, and what they answer.

To add one, write its file (runs, table, answers), give it a section in the profile, and name it here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from repro.experiments import (
    allocation,
    classical,
    foresight,
    grid,
    label_answers,
    labels,
    law_choice,
    lr_invariance,
    metric_link,
    planted,
    transfer,
    transfer_answers,
    transfer_budget,
    variance,
    weight_decay,
    weight_decay_answers,
)
from repro.experiments.runs import Runs, Trained
from repro.work.queue import Task

# Experiment -> the runs that are known by now; none where the profile does not ask for it.
RUNS: dict[str, Callable[[Runs], list[Trained]]] = {
    "grid": grid.runs,
    "lr_study": lr_invariance.runs,
    "variance": variance.runs,
    "labels": labels.runs,
    "allocation": allocation.runs,
    "weight_decay": weight_decay.runs,
    "transfer": lambda plan: transfer.runs(transfer.plans(plan)),
}

# What is made before the runs of an experiment are known.
PREPARED: list[Callable[[Runs], list[Task]]] = [labels.tasks]

# Experiment -> stand-ins for its runs that are not known yet: for the budget alone, never executed.
LATER: dict[str, Callable[[Runs], list[Trained]]] = {
    "labels": labels.stand_ins,
    "allocation": allocation.stand_ins,
    "weight_decay": weight_decay.stand_ins,
}


def later(plan: Runs) -> dict[str, list[Trained]]:
    """The stand-ins of each experiment that has runs still to be known."""
    found = {name: runs(plan) for name, runs in LATER.items()}
    return {name: runs for name, runs in found.items() if runs}


def answers(plan: Runs) -> dict[str, Any]:
    """Experiment -> its answers, of those that the profile asks for; plain data."""
    table, pairs, profile = grid.table(plan), grid.pair_losses(plan), plan.profile
    n, control = f"n_{profile.n}", allocation.control_table(plan)
    found = {
        "law_choice": law_choice.answers(table, pairs, n),
        "metric_link": metric_link.answers(table),
        "planted": planted.answers(table, pairs),
        "classical": classical.answers(table),
        "allocation": allocation.answers(table, control, pairs, n),
    }
    if "S10" in profile.comparable:  # Chinese data: the claim is S3 and S4, asked there
        found["law_choice"]["S10"] = foresight.elsewhere(found["law_choice"])
    if profile.lr_study:
        compared = lr_invariance.alike(plan)
        own, curves = lr_invariance.table(plan), lr_invariance.curves(plan)
        found["lr_invariance"] = lr_invariance.answers(own, curves, compared)
    if profile.variance:
        found["variance"] = variance.answers(variance.table(plan))
    if profile.labels:
        own, made = labels.table(plan), labels.made(plan)
        found["labels"] = label_answers.answers(own, labels.pair_losses(plan), made)
    if profile.weight_decay:
        own, targets = weight_decay.table(plan), weight_decay.targets(plan)
        losses = weight_decay.pair_losses(plan)
        found["weight_decay"] = weight_decay_answers.answers(
            own, targets, losses, profile.weight_decay.decayed
        )
    points = transfer.table(transfer.plans(plan)) if profile.transfer else None
    prices = profile.transfer.prices if profile.transfer else transfer_budget.PRICES
    found["transfer"] = transfer_answers.answers(points, prices)
    return found


def evidence(plan: Runs, runs: list[Trained]) -> list[Any]:
    """What the answers rest on: the row of each of the runs, and its rows on the targets."""
    return [[_plain(plan.row(run)), plan.target_rows(run)] for run in runs]


def _plain(row: dict[str, Any] | None) -> dict[str, Any] | None:
    return row and {k: None if isinstance(v, float) and pd.isna(v) else v for k, v in row.items()}
