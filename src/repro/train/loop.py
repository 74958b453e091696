"""One training run: from pre-trained weights to the minimum of the validation loss, and past it.

A step is a pure function of the weights, the seed and the step number, so that a run that was
interrupted goes on from where its state was kept (its last reading; where a signal asks for it, any
step) and ends with the same numbers, bit for bit on a CPU.
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
from repro.model import tensors
from repro.model.encoder import Encoder, EncoderParams, Size, save
from repro.model.infonce import backward, infonce, same_dropout
from repro.model.texts import TextParams, Texts
from repro.params import Params, switch
from repro.store import Spoilt
from repro.train import checkpoint
from repro.train.batches import Batch, Batches
from repro.train.curve import CurveParams, readings, state, worth_reading
from repro.train.pause import Pause
from repro.train.record import Record

MOST_LR = 10.0

# Called at each reading with the FLOPs spent so far and a word on the run.
Report = Callable[[float, str], None]


class TrainParams(Params):
    """How a run is trained.  The defaults are the papers' text (docs/DECISIONS.md)."""

    batch_pairs: Annotated[int, Field(ge=2, le=65_536)] = 128
    negatives: NegativesParams = NegativesParams()
    warmup_steps: Annotated[int, Field(ge=0, le=1_000_000)] = 0  # linear
    # Of the learning rate after that; `linear`: to 0 behind the last step that a run may take.
    schedule: Literal["constant", "linear"] = switch("constant")
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
    # Digest of the hard negatives, where train.negatives.own asks for them.
    own_negatives: str | None = Field(default=None, exclude_if=lambda digest: digest is None)
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

    @property
    def max_steps(self) -> int:
        """The steps at which the run ends at the latest."""
        most = self.curve.most_passes
        if most is None:
            return self.curve.max_steps
        return min(self.curve.max_steps, math.ceil(most * self.pairs / self.train.batch_pairs))

    def rates(self, n_steps: int) -> NDArray[np.float64]:
        """The learning rate of each of the first steps, float64 [n_steps], by warm-up and schedule."""
        warm, step = self.train.warmup_steps, np.arange(n_steps)
        share = np.minimum(1.0, (step + 1) / max(warm, 1))
        if self.train.schedule == "linear":
            left = np.maximum(self.max_steps - step, 1)
            share = np.minimum(share, left / max(self.max_steps - warm, 1))
        return self.lr * share

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
    pause: Pause,
) -> None:
    """Train until the curve has ended and write the result into `folder`.

    `report` hears of each reading before anything of it is kept: what it raises ends the run there.

    Writes best.safetensors (the weights at the minimum), curve.parquet, validation.npy (float64
    [m], the loss of each validation pair at the minimum, nats) and summary.json.
    """
    pause.listens = True
    trainer = Trainer(spec, encoder, size, texts, dataset)
    record, losses, best = _resume(folder, trainer)
    before, began = record.seconds, time.monotonic()
    ended = None
    while ended is None:
        reading = trainer.next_reading
        while trainer.done < reading:
            losses.append(trainer.step())
            if pause.wish and trainer.done < reading:
                record.seconds = before + time.monotonic() - began
                _keep(folder, trainer, record, losses, best)
                pause.heed()
        last = trainer.done >= spec.max_steps
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
        report(trainer.flop, f"step {trainer.done}, best loss {record.best.mean():.3f}")
        best = tensors.digest(encoder.state_dict()) if lowest else best
        axis, curve = record.arrays("lr_steps", "loss")
        passes = trainer.done * spec.train.batch_pairs / spec.pairs
        rise = pairs - record.best
        ended = state(axis, curve, rise, spec.curve, passes=passes, last=last)
        if not math.isfinite(train_loss):
            ended = "diverged"
        if ended is None:
            _keep(folder, trainer, record, losses, best)
        if lowest:  # after the state, from which it can be written again
            save(encoder, folder / BEST)
        if ended is None:
            pause.heed()
    if not best:
        save(encoder, folder / BEST)  # diverged before the first reading
    elif tensors.file_digest(folder / BEST) != best:
        checkpoint.remove(folder)
        raise Spoilt(f"{BEST} was changed on disk while the run went on")
    record.write(folder, ended, {"gradient_caching": trainer.cached, **size.as_dict()})
    checkpoint.remove(folder)


BEST = "best.safetensors"


class Trainer:
    """What changes in a run: weights, optimiser, steps done."""

    def __init__(
        self, spec: RunSpec, encoder: Encoder, size: Size, texts: Texts, dataset: Dataset
    ) -> None:
        self.spec, self.encoder, self.size, self.texts = spec, encoder, size, texts
        self.trained_on = texts.in_training()
        self.evaluation = dataset.evaluation("validation")
        self.reading_flop = reading_flop(size, texts, self.evaluation)
        train, drawn = spec.train, dataset.splits.subset(spec.pairs, spec.subset_seed)
        self.batches = Batches(dataset, drawn, train.batch_pairs, train.negatives, spec.seed)
        self.dropout_seed = spec.seed if spec.dropout_seed is None else spec.dropout_seed
        self.device = next(encoder.parameters()).device
        self.optimizer = optimizer(encoder, spec)
        self.trained = [p for group in self.optimizer.param_groups for p in group["params"]]
        self.lr = spec.rates(spec.max_steps)
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
        chunks = self.trained_on.chunks(batch.queries, batch.passages)
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


def _keep(folder: Path, trainer: Trainer, record: Record, losses: list[Tensor], best: str) -> None:
    """Write the resume state; losses: of the steps since the last reading; best: digest of BEST."""
    about = {
        **record.as_dict(),
        "best": best,
        "cached": trainer.cached,
        "done": trainer.done,
        "tokens": trainer.tokens,
        "flop": trainer.flop,
        "losses": [float(loss) for loss in losses],
    }
    checkpoint.write(folder, trainer.encoder, trainer.optimizer, record.best, about)


def _resume(folder: Path, trainer: Trainer) -> tuple[Record, list[Tensor], str]:
    """The readings so far, the losses since the last and the digest of BEST; the trainer is put back.

    A fresh start where no sound state is there, or the weights at the minimum are lost with it.
    """
    kept = checkpoint.read(folder)
    if kept and kept.about["best"] and tensors.file_digest(folder / BEST) != kept.about["best"]:
        if tensors.digest(kept.weights) == kept.about["best"]:  # killed in between, or damaged
            tensors.write(folder / BEST, kept.weights)
        else:
            checkpoint.aside(folder, f"is sound, but {BEST} beside it is damaged")
            kept = None
    if kept is None:
        return Record(zero_shot=float(trainer.validate().mean())), [], ""
    kept.restore(trainer.encoder, trainer.optimizer)
    about = kept.about
    record = Record.from_dict(about, kept.best)
    trainer.cached, trainer.done = about["cached"], about["done"]
    trainer.tokens, trainer.flop = about["tokens"], about["flop"]
    losses = torch.tensor(about["losses"], device=trainer.device)
    return record, list(losses), about["best"]
