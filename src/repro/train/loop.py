"""One training run: from pre-trained weights to the minimum of the validation loss, and past it.

A step is a pure function of the weights, the seed and the step number, so that a run that was
interrupted goes on from its last reading and ends with the same numbers, bit for bit on a CPU.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field, model_validator
from torch import Tensor

from repro import seeds
from repro.data.dataset import Dataset
from repro.data.negatives import NegativesParams
from repro.measure.evaluate import pair_entropies, reading_flop
from repro.model.encoder import Encoder, EncoderParams, Size, save
from repro.model.infonce import backward, infonce, same_dropout
from repro.model.texts import TextParams, Texts
from repro.params import Params
from repro.train import checkpoint
from repro.train.batches import Batch, Batches
from repro.train.curve import CurveParams, readings, state, worth_reading
from repro.train.record import Record

MOST_LR = 10.0

# Called at each reading with the FLOPs spent so far and a word on the run.
Report = Callable[[float, str], None]


class TrainParams(Params):
    """How a run is trained.  The defaults are the papers' text (docs/DECISIONS.md)."""

    batch_pairs: Annotated[int, Field(ge=2, le=65_536)] = 128
    negatives: NegativesParams = NegativesParams()
    warmup_steps: Annotated[int, Field(ge=0, le=1_000_000)] = 0  # linear; then constant
    weight_decay: Annotated[float, Field(ge=0, le=100_000)] = 0.0
    # Which tensors are decayed: matrices alone, or biases and norms too; the temperature never is.
    decayed: Literal["matrices", "all"] = "matrices"
    beta1: Annotated[float, Field(ge=0, lt=1)] = 0.9
    beta2: Annotated[float, Field(ge=0, lt=1)] = 0.999
    epsilon: Annotated[float, Field(gt=0, le=1)] = 1e-8
    clip_norm: Annotated[float, Field(gt=0, le=1e6)] = 1.0
    step_tokens: Annotated[int, Field(ge=64, le=1_000_000_000)] = 65_536  # above: gradient caching


class RunSpec(Params):
    """Everything that determines the result of a training run; its digest is the run's key."""

    weights: str  # digest of the initial weights
    tokens: str  # digest of the token table
    splits: str  # digest of the splits: the training pairs and their order
    validation: str  # digest of the validation set
    pairs: Annotated[int, Field(ge=1)]  # D
    seed: int  # batch order, negatives, the projection, and what the next two leave open
    subset_seed: int | None = None  # draws the pairs; none: the data's own order
    dropout_seed: int | None = None  # none: `seed`
    lr: Annotated[float, Field(gt=0, le=MOST_LR)]
    lr_reference: Annotated[float, Field(gt=0, le=MOST_LR)]
    encoder: EncoderParams
    texts: TextParams
    train: TrainParams
    curve: CurveParams

    def rates(self, n_steps: int) -> NDArray[np.float64]:
        """The learning rate of each of the first steps, float64 [n_steps]: warm-up, then constant."""
        warm = self.train.warmup_steps
        return self.lr * np.minimum(1.0, np.arange(1, n_steps + 1) / max(warm, 1))

    @model_validator(mode="after")
    def _possible(self) -> RunSpec:
        if self.lr * self.train.weight_decay >= 1:
            raise ValueError(
                f"lr x weight decay is {self.lr * self.train.weight_decay:g}: a step would turn the "
                "weights over\n  remedy: keep the product under 1"
            )
        if self.train.batch_pairs > self.pairs:
            raise ValueError(
                f"a batch of {self.train.batch_pairs} pairs is larger than the {self.pairs} pairs\n"
                "  remedy: lower train.batch_pairs or raise the data size"
            )
        return self


def run(
    spec: RunSpec,
    encoder: Encoder,
    size: Size,
    texts: Texts,
    dataset: Dataset,
    folder: Path,
    report: Report,
) -> None:
    """Train until the curve has ended and write the result into `folder`.

    Writes best.safetensors (the weights at the minimum), curve.parquet, validation.npy (float64
    [m], the loss of each validation pair at the minimum, nats) and summary.json.
    """
    trainer = Trainer(spec, encoder, size, texts, dataset)
    record = _resume(folder, trainer)
    before, began = record.seconds, time.monotonic()
    ended, losses = None, []
    while ended is None:
        losses += [trainer.step() for _ in range(trainer.next_reading - trainer.done)]
        last = trainer.done >= spec.curve.max_steps
        spent = trainer.flop - (record.last("flop") if record.rows else 0.0)
        if not last and not worth_reading(spent, trainer.reading_flop, spec.curve):
            continue
        pairs = trainer.validate()
        record.seconds = before + time.monotonic() - began
        lr_steps = float(trainer.lr_steps[trainer.done - 1])
        train_loss, losses = float(torch.stack(losses).mean()), []
        lowest = record.add(
            step=trainer.done,
            lr_steps=lr_steps,
            sum_lr=lr_steps * spec.lr_reference,
            pairs=pairs,
            train_loss=train_loss,
            tokens=trainer.tokens,
            flop=trainer.flop,
        )
        if lowest:
            save(encoder, folder / BEST)
        axis, curve = record.arrays("lr_steps", "loss")
        passes = trainer.done * spec.train.batch_pairs / spec.pairs
        rise = pairs - record.best
        ended = state(axis, curve, rise, spec.curve, passes=passes, last=last)
        if not math.isfinite(train_loss):
            ended = "diverged"
        if ended is None:
            about = {**record.as_dict(), "cached": trainer.cached}
            checkpoint.write(folder, encoder, trainer.optimizer, record.best, about)
        report(trainer.flop, f"step {trainer.done}, loss {record.last('loss'):.3f}")
    if not (folder / BEST).exists():
        save(encoder, folder / BEST)  # diverged before the first reading
    record.write(folder, ended, {"gradient_caching": trainer.cached, **size.as_dict()})
    checkpoint.remove(folder)


BEST = "best.safetensors"


class Trainer:
    """What changes in a run: weights, optimiser, steps done."""

    def __init__(
        self, spec: RunSpec, encoder: Encoder, size: Size, texts: Texts, dataset: Dataset
    ) -> None:
        self.spec, self.encoder, self.size, self.texts = spec, encoder, size, texts
        self.evaluation = dataset.evaluation("validation")
        self.reading_flop = reading_flop(size, texts, self.evaluation)
        train, drawn = spec.train, dataset.splits.subset(spec.pairs, spec.subset_seed)
        self.batches = Batches(dataset, drawn, train.batch_pairs, train.negatives, spec.seed)
        self.dropout_seed = spec.seed if spec.dropout_seed is None else spec.dropout_seed
        self.device = next(encoder.parameters()).device
        self.optimizer = optimizer(encoder, spec)
        self.trained = [p for group in self.optimizer.param_groups for p in group["params"]]
        self.lr = spec.rates(spec.curve.max_steps)
        self.lr_steps = np.cumsum(self.lr) / spec.lr_reference
        self.readings = readings(self.lr_steps, spec.curve)
        self.done = self.tokens = 0
        self.flop = 0.0
        self.cached = False

    @property
    def next_reading(self) -> int:
        """The step after which the curve is read next."""
        return int(self.readings[np.searchsorted(self.readings, self.done, side="right")])

    def step(self) -> Tensor:
        """One optimiser step; returns the training loss, a scalar on the device."""
        spec, batch = self.spec, self.batches(self.done)
        chunks = self.texts.chunks(batch.queries, batch.passages)
        self.cached = sum(chunk.ids.numel() for chunk in chunks) > spec.train.step_tokens
        order = torch.from_numpy(np.concatenate([chunk.rows for chunk in chunks])).to(self.device)

        def embed(i: int) -> Tensor:
            vectors: Tensor = self.encoder(chunks[i].to(self.device))
            return vectors

        for group in self.optimizer.param_groups:
            group["lr"] = float(self.lr[self.done])
        self.optimizer.zero_grad(set_to_none=True)
        loss = backward(
            same_dropout(embed, seeds.derive(self.dropout_seed, "step", self.done), self.device),
            len(chunks),
            order,
            lambda vectors: step_loss(vectors, batch, self.encoder.scale()),
            cached=self.cached,
        )
        torch.nn.utils.clip_grad_norm_(self.trained, spec.train.clip_norm)
        self.optimizer.step()
        lengths = np.concatenate([chunk.lengths for chunk in chunks])
        self.flop += self.size.train_flop(lengths)
        self.tokens += int(lengths.sum())
        self.done += 1
        return loss

    def validate(self) -> NDArray[np.float64]:
        """The contrastive entropy of each validation pair, float64 [m], nats."""
        return pair_entropies(self.encoder, self.texts, self.evaluation)


def optimizer(encoder: Encoder, spec: RunSpec) -> torch.optim.AdamW:
    """AdamW; `train.decayed` says what is decayed: matrices, or vectors (biases, norms) too."""
    least = 2 if spec.train.decayed == "matrices" else 1  # dimensions; the temperature has none
    trained = [p for p in encoder.parameters() if p.requires_grad]
    groups = [
        {
            "params": [p for p in trained if p.ndim >= least],
            "weight_decay": spec.train.weight_decay,
        },
        {"params": [p for p in trained if p.ndim < least], "weight_decay": 0.0},
    ]
    betas = (spec.train.beta1, spec.train.beta2)
    return torch.optim.AdamW(groups, lr=spec.lr, betas=betas, eps=spec.train.epsilon, fused=True)


def step_loss(vectors: Tensor, batch: Batch, scale: Tensor) -> Tensor:
    """The mean InfoNCE loss of a batch; vectors: [b + u, width], queries first, then passages."""
    queries, passages = vectors.split([len(batch.queries), len(batch.passages)])
    scores = scale * (queries @ passages.T)
    positive = torch.from_numpy(batch.positive).to(vectors.device)
    candidates = torch.from_numpy(batch.candidates).to(vectors.device)
    return infonce(scores, positive, candidates).mean()


def _resume(folder: Path, trainer: Trainer) -> Record:
    """The readings so far, with the trainer put back to the last of them; else a fresh start."""
    kept = checkpoint.read(folder, trainer.encoder, trainer.optimizer)
    if kept is None:
        return Record(zero_shot=float(trainer.validate().mean()))
    best, about = kept
    trainer.cached = about.pop("cached")
    record = Record.from_dict(about, best)
    trainer.done, trainer.tokens = int(record.last("step")), int(record.last("tokens"))
    trainer.flop = record.last("flop")
    return record
