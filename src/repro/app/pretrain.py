"""`repro pretrain`: make vocabulary and weights of micro-encoders from plain text."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from repro.train.pretrain import PretrainParams


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command and its options."""
    parser = subparsers.add_parser(
        "pretrain", help="make micro-encoders from plain text, in any language"
    )
    parser.add_argument(
        "--params", type=Path, default=None, help="the recipe (default: params/pretrain.yaml)"
    )
    parser.add_argument("--sizes", default="", help="layers x width, e.g. 1x32,2x64 (default: all)")
    parser.add_argument(
        "--text",
        type=Path,
        nargs="+",
        default=[],
        metavar="FILE",
        help="your own text instead of the recipe's: .txt (blank lines between documents) or "
        ".jsonl (field `text`)",
    )
    parser.add_argument(
        "--dataset",
        default="",
        help="the passages of a dataset's training side instead of the recipe's text",
    )
    parser.add_argument(
        "--out", type=Path, default=None, help="folder of the results (default: build/pretrain)"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Pre-train the sizes asked for; prints where each lies."""
    import torch

    from repro import params as parameters
    from repro import places
    from repro.errors import UserError
    from repro.train import pretrain, pretraining_text

    torch.set_num_threads(1)
    path = args.params or places.ROOT / "params" / "pretrain.yaml"
    params = parameters.load(path, pretrain.PretrainParams)
    if args.sizes:
        params = _with_sizes(params, args.sizes.split(","))
    out = args.out or places.home() / "build" / "pretrain"

    def say(line: str) -> None:
        print(line, flush=True)

    if args.text and args.dataset:
        raise UserError("--text and --dataset exclude each other", remedy="name one of them")
    if args.text:
        documents = pretraining_text.read_files(args.text, params.text, params.seed)
    elif args.dataset:
        documents = _training_side(args.dataset, params)
    else:
        documents = pretraining_text.collect(params.text, out / "text", params.seed, say)
    for folder in pretrain.run(params, documents, out, say):
        say(f"{folder.name}: {folder}   (as `weights:` in a profile)")
    return 0


def _training_side(name: str, params: PretrainParams) -> list[str]:
    """The passages that training may see: those of no evaluated, held-out or tuning pair."""
    from repro import places
    from repro.data.dataset import load_dataset_params, prepare
    from repro.store import Store
    from repro.train import pretraining_text

    dataset = prepare(Store(places.home() / "runs"), load_dataset_params(name))
    passages = [dataset.collection.passages[i] for i in dataset.splits.pool]
    return pretraining_text.shuffled(passages, params.seed)


def _with_sizes(params: PretrainParams, sizes: list[str]) -> PretrainParams:
    """The recipe for other sizes, checked."""
    from pydantic import ValidationError

    from repro.errors import UserError

    try:
        return type(params).model_validate({**params.model_dump(), "sizes": sizes})
    except ValidationError as error:
        raise UserError(
            f"--sizes {','.join(sizes)}: {error.errors()[0]['msg']}",
            remedy="write layers x width, for instance 1x32,2x64",
        ) from None
