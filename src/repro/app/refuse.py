"""What a study refuses before anything runs: each fault with its place in the profile, and a remedy."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from repro import params
from repro.params import UserError

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
            place = _place(study, "models", name, "weights")
            raise UserError(error.what, where=place, remedy=error.remedy) from None
        for key in ("query_tokens", "passage_tokens"):
            asked = getattr(study.profile.texts, key)
            if most is not None and asked > most:
                raise UserError(
                    f"texts.{key} is {asked:,}, but {name} reads {most:,} tokens at the most",
                    where=_place(study, "texts", key),
                    remedy=f"use {most:,} or less",
                )


def negatives(study: Study) -> None:
    """Refuse more negatives than there are passages to draw them from."""
    pool, asked = len(study.dataset.splits.pool), study.profile.train.negatives.count
    if asked > pool:
        raise UserError(
            f"train.negatives.count asks for {asked:,} negatives, but there are {pool:,} "
            f"passages in the pool of {study.dataset_params.name}",
            where=_place(study, "train", "negatives", "count"),
            remedy=f"use {pool:,} or less",
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
                where=_place(study, name, key),
                remedy=f"keep sizes at or below {available:,}, or name a larger dataset",
            )


def _place(study: Study, *location: str) -> str:
    """The file and line of the profile where that key stands."""
    return params.read(study.profile_file).place(location)
