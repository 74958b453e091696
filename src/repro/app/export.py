"""`repro export`: the best checkpoint of a run as a folder that sentence-transformers loads."""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from repro.model.pretrained import Pretrained
    from repro.store import Store
    from repro.train.loop import RunSpec


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "export", help="write a run's encoder as a folder that sentence-transformers loads"
    )
    parser.add_argument(
        "which", nargs="+", metavar="RUN",
        help="a key in runs/train/, or its first letters; or PROFILE MODEL D SEED, such as: "
        "mini 2x64 5120 1",
    )  # fmt: skip
    parser.add_argument("--out", type=Path, required=True, help="the folder, which must not exist")
    parser.add_argument(
        "--weights", metavar="NAME",
        help="the model that the run started from, where a key does not tell: a folder or a hub id",
    )  # fmt: skip
    parser.set_defaults(run=run)


@dataclass(frozen=True)
class Found:
    """A finished run and the model that it started from."""

    key: str
    folder: Path
    spec: RunSpec
    source: Pretrained


def run(args: argparse.Namespace) -> int:
    """Write the folder and say what is in it; raises `UserError`."""
    from repro.errors import UserError
    from repro.model.encoder import build, restore
    from repro.model.exported import export
    from repro.places import home
    from repro.store import Store

    if args.out.exists():
        raise UserError("this is there already", where=str(args.out), remedy="name a new folder")
    store = Store(home() / "runs")
    if len(args.which) == 1:
        found = _by_key(store, args.which[0], args.weights)
    elif len(args.which) == 4:
        found = _by_name(*args.which)
    else:
        raise UserError(
            f"a run is one key, or four words: profile, model, pairs, seed ({len(args.which)} given)",
            remedy="for instance: repro export mini 2x64 5120 1 --out my-encoder",
        )
    encoder = build(found.source, found.spec.encoder, found.spec.seed)
    restore(encoder, found.folder / "best.safetensors")
    summary = json.loads((found.folder / "summary.json").read_text(encoding="utf-8"))
    about = {
        "run": found.key,
        "started from": f"{found.source.name}, stored as {' and '.join(found.source.stored)}, "
        "trained in float32",
        "pairs": f"{found.spec.pairs:,}",
        "seed": found.spec.seed,
        "validation loss": f"{summary['mael']:.4f} nats ({summary['state']})",
    }
    spec = (found.folder / "spec.json").read_text(encoding="utf-8")
    export(args.out, encoder, found.source, found.spec.texts, about, spec)
    print(
        f"{args.out}: run {found.key}, {found.spec.pairs:,} pairs, from {found.source.name}; "
        "its README.md says how it is used"
    )
    return 0


def _by_name(profile: str, model: str, pairs: str, seed: str) -> Found:
    """The finished run of a profile; raises `UserError` where there is none."""
    from repro.app.named import files
    from repro.app.study import Study
    from repro.errors import UserError, nearest

    try:
        n_pairs, root = int(pairs.replace(",", "")), int(seed)
    except ValueError:
        raise UserError(
            f"`{pairs}` and `{seed}` are to be a number of pairs and a seed",
            remedy="for instance: repro export mini 2x64 5120 1 --out my-encoder",
        ) from None
    study = Study(*files(profile))
    if model not in study.profile.models:
        raise UserError(
            f"{study.name} has no model `{model}`",
            where=str(study.profile_file),
            remedy=nearest(model, list(study.profile.models)),
        )
    spec_of = study.runs.trained(model, pairs=n_pairs, seed=root - study.profile.seed)
    key = study.store.key("train", spec_of.train.spec)
    folder = study.store.find("train", key)
    if folder is None:
        there = sorted({
            (run.pairs, run.seed)
            for run in study.planned()
            if run.model == model and study.store.has("train", study.store.key("train", run.train.spec))
        })  # fmt: skip
        made = ", ".join(f"{pairs} {seed}" for pairs, seed in there) or "none"
        raise UserError(
            f"the run of {model} on {n_pairs:,} pairs with seed {root} is not in the store",
            where=str(study.store.root),
            remedy=f"run it, or take one of those that are (pairs, seed): {made}",
        )
    return Found(key, folder, spec_of.spec, study.runs.source(study.profile.models[model].weights))


def _by_key(store: Store, prefix: str, weights: str | None) -> Found:
    """The finished run whose key begins so; raises `UserError` where there is not one."""
    from repro.errors import UserError
    from repro.train.loop import RunSpec

    where = store.root / "train"
    keys = sorted(path.name for path in where.glob("[0-9a-f]*") if store.has("train", path.name))
    matching = [key for key in keys if key.startswith(prefix)]
    if len(matching) != 1:
        told = ", ".join(matching[:5]) or "none"
        raise UserError(
            f"{len(matching)} of the {len(keys)} runs begin with `{prefix}` ({told})",
            where=str(where),
            remedy="give more of the key, or name the run: PROFILE MODEL D SEED",
        )
    key = matching[0]
    folder = store.find("train", key)
    if folder is None:
        raise UserError(f"the run {key} is damaged", where=str(where), remedy="run it again")
    spec = json.loads((folder / "spec.json").read_text(encoding="utf-8"))["spec"]
    return Found(key, folder, RunSpec.model_validate(spec), _source(spec["weights"], weights))


def _source(digest: str, weights: str | None) -> Pretrained:
    """The model of that digest: the one that is named, else one of those shipped."""
    from repro.errors import UserError
    from repro.model import files, pretrained

    for name in [weights] if weights else files.names():
        found = pretrained.load(name)
        if found.digest == digest:
            return found
    named = f"`{weights}` is not the model that this run started from" if weights else (
        "this run started from none of the shipped models"
    )  # fmt: skip
    raise UserError(
        f"{named} (digest {digest[:12]})",
        remedy="name that model with --weights, or the run by PROFILE MODEL D SEED",
    )
