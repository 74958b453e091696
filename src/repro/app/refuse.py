"""What a study refuses before anything runs: each fault with its place in the profile, and a remedy."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from repro.data.tokens import MAX_IDS
from repro.errors import UserError
from repro.experiments.doors import is_declared

if TYPE_CHECKING:
    from repro.app.study import Study


def unwritable(folder: Path) -> None:
    """Refuse a folder that cannot be made, or written to."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".probe-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise UserError(
            f"cannot write there: {error.strerror}",
            where=str(folder),
            remedy="name another folder in REPRO_HOME: runs/ and build/ go there",
        ) from None


def models(study: Study) -> None:
    """Refuse models that cannot be loaded, and texts that are longer than they read."""
    for name, model in study.profile.models.items():
        try:
            most = study.runs.source(model.weights).max_tokens
        except UserError as error:
            place = key_place(study, "models", name, "weights")
            raise UserError(error.what, where=place, remedy=error.remedy) from None
        kept = MAX_IDS + 2  # with the two special ones
        for key in ("query_tokens", "passage_tokens"):
            asked = getattr(study.profile.texts, key)
            for limit, whose in ((most, f"{name} reads"), (kept, "a token table keeps")):
                if limit is not None and asked > limit:
                    raise UserError(
                        f"texts.{key} is {asked:,}, but {whose} {limit:,} tokens at the most",
                        where=key_place(study, "texts", key),
                        remedy=f"use {limit:,} or less",
                    )


def elsewhere(study: Study) -> None:
    """Refuse to measure what is only declared."""
    models = {
        each.weights: study.runs.source(each.weights) for each in study.profile.models.values()
    }
    lacking = [name for name, source in models.items() if is_declared(source.digest)]
    lacking += [] if study.dataset.is_here else [study.dataset_params.name]
    if lacking:
        raise UserError(
            f"{', '.join(lacking)}: not on this machine, so that nothing can be measured",
            remedy="get them first, or name a device of the table: --device",
        )


def negatives(study: Study) -> None:
    """Refuse more negatives than there are passages to draw them from."""
    pool, asked = len(study.dataset.splits.pool), study.profile.train.negatives.count
    if asked > pool:
        raise UserError(
            f"train.negatives.count asks for {asked:,} negatives, but there are {pool:,} "
            f"passages in the pool of {study.dataset_params.name}",
            where=key_place(study, "train", "negatives", "count"),
            remedy=f"use {pool:,} or less",
        )
    if study.profile.train.negatives.own and not len(study.dataset.own_negatives.passages):
        raise UserError(
            f"train.negatives.own asks for each query's own negatives, but {study.dataset_params.name} "
            "names none (or none that lies in the pool of training passages)",
            where=key_place(study, "train", "negatives", "own"),
            remedy="name their column, `source: {kind: pairs, columns: {negative: ...}}`, in the "
            "dataset file, or use 0",
        )


def sizes(study: Study, name: str) -> None:
    """Refuse data sizes of a section that are more than there is to train on."""
    section, own = getattr(study.profile, name), study.dataset_params.name
    available = len(study.dataset.splits.train)
    for key in ("sizes", "law_sizes"):
        largest = max(getattr(section, key, None) or [0])
        if largest > available:
            raise UserError(
                f"{name}.{key} asks for {largest:,} pairs, but {own} has {available:,} to train on",
                where=key_place(study, name, key),
                remedy=f"keep sizes at or below {available:,}"
                + (", write `sizes: auto`" if name in ("grid", "lr_study") else "")
                + ", or name a larger dataset; an overlay changes a profile without touching its file",
            )


def key_place(study: Study, *location: str) -> str:
    """The file and line of the profile where that key stands."""
    return study.document.place(location)
