"""A study in a few lines: what it runs, on which data, and what was chosen for it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from repro.experiments.grid import MOST
from repro.experiments.profile import MEANINGLESS

if TYPE_CHECKING:
    from repro.app.study import Study


def describe(study: Study) -> str:
    """The lines that the command line and the notebooks print first."""
    profile, grid = study.profile, study.profile.grid
    hard = profile.train.negatives.own
    own = f" and {hard} of each query's own" if hard else ""
    lines = [
        f"study {study.name}: {profile.description}",
        f"  models{_shapes(grid.models)} {', '.join(grid.models)}; "
        f"D {', '.join(f'{d:,}' for d in grid.sizes)} pairs; "
        f"{grid.seeding()} (root seed {profile.seed})",
        f"  batches of {profile.train.batch_pairs} pairs, "
        f"{profile.train.negatives.count} negatives{own} in training, {profile.texts.query_tokens}/"
        f"{profile.texts.passage_tokens} tokens, {profile.encoder.scoring} score",
        *_chosen(study),
    ]  # fmt: skip
    for section in (profile.labels, profile.allocation, profile.weight_decay):
        lines += [f"  {section.later()}"] if section else []
    departures = study.dataset_params.source.departures()
    if departures:
        lines.append(f"  NOTE: {study.dataset_params.name} is read from {', '.join(departures)}:")
        lines.append("  its digest is recorded, not checked; its numbers compare with no other's")
    return "\n".join([*lines, f"  {MEANINGLESS}"] if profile.meaningless else lines)


def _shapes(models: Sequence[str]) -> str:
    """What names such as 2x64 mean, where all are such."""
    return " (layers x width)" if all(re.fullmatch(r"\d+x\d+", name) for name in models) else ""


def _chosen(study: Study) -> list[str]:
    """What the profile and the dataset file left open, and how it was settled."""
    chosen = []
    if study.declared.grid.doubled_to:
        sizes, most = study.profile.grid.sizes, study.declared.grid.doubled_to
        asked = f", and no more than the {most:,} that were asked for" if most < MOST else ""
        chosen.append(
            f"  D chosen: {len(sizes)} doublings of {sizes[0]:,}, of the "
            f"{len(study.dataset.splits.train):,} pairs that there are to train on{asked}"
        )
    if study.dataset_params.automatic:
        chosen.append(f"  splits chosen: {study.dataset.params.in_words()}")
    return chosen
