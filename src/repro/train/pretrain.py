"""Pre-training of micro-encoders on plain text: crops, and masked language modelling if wanted.

A step embeds two random crops of each document.  The contrastive loss asks each crop to find its
partner among the others of the step; the masked-language-model loss, where it has a weight, asks
for the tokens masked in the second crop.  One pass serves both.  The finished folder is in Hugging
Face layout, with the projection beside it.  Source of crops: Izacard et al. 2022 (arXiv
2112.09118); of masked language modelling: Devlin et al. 2019, section 3.1.
"""

from __future__ import annotations

import json
import math
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
from pydantic import Field, field_validator, model_validator
from tokenizers import Tokenizer
from torch import nn

from repro import seeds
from repro.errors import UserError
from repro.files import digest
from repro.measure.entropy import contrastive_entropy
from repro.model import pretrained
from repro.model.encoder import Encoder, EncoderParams, encode
from repro.params import Params
from repro.provenance import provenance
from repro.train import checkpoint, vocabulary
from repro.train.crops import Crops, Pieces, batch, chunks, mask, tokenize
from repro.train.learner import Learner, both_ways
from repro.train.micro_folder import fill, lay_out
from repro.train.pretraining_text import Text
from repro.train.vocabulary import Vocabulary

SizeName = Annotated[str, Field(pattern=r"^[1-9][0-9]?x[1-9][0-9]{1,3}$")]
Steps = Annotated[int, Field(ge=1, le=100_000_000)]
CANDIDATES = 257  # of the held-out entropy, as in the papers: one partner and 256 others
HELD_OUT_PAIRS = 512


class Shape(Params):
    """What the sizes have in common; the feed-forward layers are four widths wide."""

    head_width: Annotated[int, Field(ge=4, le=256)] = 32
    positions: Annotated[int, Field(ge=8, le=32_768)] = 192  # longest input, tokens
    output: Annotated[int, Field(ge=2, le=8192)] = 128  # width of the embeddings


class Training(Params):
    """How one size is trained."""

    steps: Steps = 2000
    batch: Annotated[int, Field(ge=2, le=65_536)] = 64  # documents a step
    lr: Annotated[float, Field(gt=0, le=1)] = 5e-3  # peak at width 32; falls with its root
    warmup_steps: Annotated[int, Field(ge=0)] = 150
    weight_decay: Annotated[float, Field(ge=0, le=10)] = 0.01
    clip_norm: Annotated[float, Field(gt=0, le=1e6)] = 1.0
    temperature: Annotated[float, Field(gt=0, le=100)] = 0.05  # at the start; learnt
    mlm_weight: Annotated[float, Field(ge=0, le=100)] = 0.5
    crops: Crops = Crops()
    chunk_tokens: Annotated[int, Field(ge=64)] = 2048  # padded, embedded at once
    log_every: Steps = 25
    save_every: Steps = 250  # steps between resume states, and between held-out entropies

    @model_validator(mode="after")
    def _aligned(self) -> Training:
        if self.save_every % self.log_every:
            raise ValueError(
                f"save_every {self.save_every} is no multiple of log_every {self.log_every}\n"
                "  remedy: make it one, so that no row of the log is cut in two"
            )
        return self


class PretrainParams(Params):
    """A pre-training file: params/pretrain.yaml."""

    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1
    sizes: Annotated[list[SizeName], Field(min_length=1)] = ["1x32"]
    shape: Shape = Shape()
    vocabulary: Vocabulary = Vocabulary()
    training: Training = Training()
    checkpoints: dict[SizeName, list[Steps]] = {}  # steps at which a size is kept as SIZE-STEPS
    text: Text = Text()

    @field_validator("sizes")
    @classmethod
    def _once(cls, sizes: list[str]) -> list[str]:
        return list(dict.fromkeys(sizes))

    @model_validator(mode="after")
    def _fits(self) -> PretrainParams:
        longest = max(*self.training.crops.query_tokens, *self.training.crops.passage_tokens) + 2
        if longest > self.shape.positions:
            raise ValueError(
                f"a crop of {longest} tokens, special ones included, does not fit into "
                f"{self.shape.positions} positions\n  remedy: raise shape.positions"
            )
        return self

    def layers_width(self, size: str) -> tuple[int, int]:
        """Layers and width of a size such as 2x64."""
        layers, width = size.split("x")
        return int(layers), int(width)


def run(
    params: PretrainParams, documents: list[str], out: Path, say: Callable[[str], None]
) -> list[Path]:
    """Vocabulary and weights of all sizes from `documents`; returns the folders, one a size.

    The first documents (`text.held_out`, at most a tenth) are kept from training and from the
    vocabulary.  A finished size of the same recipe and text is left alone; an interrupted one
    goes on.
    """
    n_held_out = min(params.text.held_out, len(documents) // 10)
    held_out, training = documents[:n_held_out], documents[n_held_out:]
    tokenizer = vocabulary.train(training, params.vocabulary)
    least = 4
    pieces = tokenize(tokenizer, training, least)
    measured = tokenize(tokenizer, held_out, least)
    say(
        f"{len(pieces):,} documents, {len(pieces.ids):,} tokens, vocabulary of "
        f"{tokenizer.get_vocab_size():,}; {len(measured):,} documents held out"
    )
    if len(pieces) < params.training.batch:
        raise UserError(
            f"{len(pieces)} documents are too few: a step takes {params.training.batch}",
            remedy="give more text, or lower training.batch and text.min_words",
        )
    text = {"documents": len(documents), "tokens": len(pieces.ids), "digest": digest(documents)}
    folders = []
    for size in params.sizes:
        spec = {
            "size": size,
            "recipe": params.model_dump(mode="json", exclude={"sizes", "text"}),
            "text": text,
        }
        folder = out / size
        about = folder / "pretraining.json"
        if about.exists() and json.loads(about.read_text("utf-8")).get("key") == digest(spec):
            say(f"{size}: there already")
        else:
            Pretraining(params, spec, tokenizer, pieces, measured, out, say).run()
        folders.append(folder)
    return folders


class Pretraining:
    """The pre-training of one size."""

    def __init__(
        self,
        params: PretrainParams,
        spec: dict[str, Any],
        tokenizer: Tokenizer,
        pieces: Pieces,
        held_out: Pieces,
        out: Path,
        say: Callable[[str], None],
    ) -> None:
        self.params, self.training, self.size, self.say = params, params.training, spec["size"], say
        self.tokenizer, self.pieces, self.held_out, self.out = tokenizer, pieces, held_out, out
        self.spec, self.key = spec, digest(spec)
        self.seed = seeds.derive(params.seed, "pretrain", self.size)
        self.layers, self.width = params.layers_width(self.size)
        self.work = out / ".work" / f"{self.size}-{self.key}"
        self.learner = self._start()
        self.optimizer = _optimizer(self.learner, self.training)

    def run(self) -> None:
        """Train to the last step and write the folder; goes on where it was interrupted."""
        training, (log, before) = self.training, self._resume()
        done = begun = log[-1]["step"] if log else 0
        started = time.time()
        sums: list[tuple[float, float]] = []
        while done < training.steps:
            lr = self._lr(done)
            sums.append(self._step(done, lr))
            done += 1
            last = done == training.steps
            if done % training.log_every == 0 or last:
                mlm, contrastive = (float(mean) for mean in np.mean(sums, axis=0))
                row = {"step": done, "mlm_loss": mlm, "contrastive_loss": contrastive, "lr": lr}
                if done % training.save_every == 0 or last:
                    row["held_out_entropy"] = self.entropy()
                log, sums = [*log, row], []
                self._tell(row, (time.time() - started) / (done - begun))
            seconds = before + time.time() - started
            if done in self.params.checkpoints.get(self.size, []):
                self._write(f"{self.size}-{done}", log, seconds)
            if done % training.save_every == 0 and not last:
                about = {"log": log, "seconds": seconds}
                empty = np.empty(0, np.float64)
                checkpoint.write(self.work, self.learner, self.optimizer, empty, about)
        self._write(self.size, log, before + time.time() - started)
        shutil.rmtree(self.work)

    def entropy(self) -> float | None:
        """Contrastive entropy of held-out documents, nats: which passage belongs to the query?

        Crops do not overlap, of the lengths trained on; None where too few documents are held out.
        """
        n_texts = min(HELD_OUT_PAIRS, len(self.held_out))
        if n_texts < 3:
            return None
        crops = self.training.crops.model_copy(update={"apart": 1.0})
        seed = seeds.derive(self.params.seed, "held out")
        first, second = batch(self.held_out, crops, seed, 0, n_texts)
        texts, nowhere = [*first, *second], [np.empty(0, np.int64)] * (2 * n_texts)
        parts = chunks(texts, texts, nowhere, self.training.chunk_tokens, self.width)
        encoder = self.learner.encoder
        vectors = encode(encoder, [part.chunk for part in parts], 2 * n_texts)
        scores = float(encoder.scale().detach()) * (vectors[:n_texts] @ vectors[n_texts:].T)
        n_negatives = min(CANDIDATES, n_texts) - 1
        own = np.arange(n_texts)
        others = [
            np.delete(own, i)[seeds.stream(seed, "negatives", i).permutation(n_texts - 1)]
            for i in range(n_texts)
        ]
        negatives = np.stack(others)[:, :n_negatives]
        return float(contrastive_entropy(scores, own, negatives).mean())

    def _step(self, step: int, lr: float) -> tuple[float, float]:
        """One step (from 0); the mean losses, nats: per masked token, per pair."""
        training, n_pairs = self.training, self.training.batch
        first, second = batch(self.pieces, training.crops, self.seed, step, n_pairs)
        originals = [*first, *second]
        n_pieces = self.tokenizer.get_vocab_size()
        shown, places = mask(originals, n_pairs, training.crops, n_pieces, self.seed, step)
        parts = chunks(shown, originals, places, training.chunk_tokens, self.width)
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        self.optimizer.zero_grad(set_to_none=True)
        outputs = [self.learner(part) for part in parts]
        order = torch.from_numpy(np.concatenate([part.chunk.rows for part in parts]))
        vectors = torch.cat([vectors for vectors, _ in outputs])
        vectors = torch.empty_like(vectors).index_copy(0, order, vectors)
        n_masked = max(1, sum(len(part.labels) for part in parts))
        mlm = torch.stack([loss for _, loss in outputs]).sum() / n_masked
        contrastive = both_ways(vectors[:n_pairs], vectors[n_pairs:], self.learner.encoder.scale())
        (contrastive + training.mlm_weight * mlm).backward()
        torch.nn.utils.clip_grad_norm_(self.learner.parameters(), training.clip_norm)
        self.optimizer.step()
        losses = float(mlm.detach()), float(contrastive.detach())
        if not math.isfinite(sum(losses)):
            raise FloatingPointError(
                f"{self.size}: the loss is not finite at step {step}; lower training.lr"
            )
        return losses

    def _lr(self, step: int) -> float:
        """Linear warm-up, then a cosine to zero; the peak falls with the root of the width."""
        training = self.training
        peak = training.lr * math.sqrt(32 / self.width)
        warm = min(training.warmup_steps, training.steps)
        if step < warm:
            return peak * (step + 1) / warm
        share = (step - warm) / max(1, training.steps - warm)
        return peak * 0.5 * (1 + math.cos(math.pi * share))

    def _start(self) -> Learner:
        """The learner before its first step; every weight is drawn from the seed."""
        self._lay_out(self.work)
        source = pretrained.load(str(self.work), untrained=True)
        draw = seeds.derive(self.seed, "weights")
        backbone = pretrained.backbone(source, dropout=0.0, random_seed=draw)
        params = EncoderParams(
            projection=self.params.shape.output,
            scoring="cosine",
            temperature=self.training.temperature,
            dropout=0.0,
        )
        encoder = Encoder(backbone, nn.Linear(self.width, params.projection), params)
        return Learner(encoder, self.width, self.tokenizer.get_vocab_size(), self.seed)

    def _resume(self) -> tuple[list[dict[str, Any]], float]:
        """Log and seconds of an interrupted pre-training; the learner is put back to its end."""
        kept = checkpoint.read(self.work)
        if kept is None:
            return [], 0.0
        kept.restore(self.learner, self.optimizer)
        about = kept.about
        self.say(f"{self.size}: going on from step {about['log'][-1]['step']}")
        return about["log"], about["seconds"]

    def _tell(self, row: dict[str, Any], seconds_a_step: float) -> None:
        entropy = row.get("held_out_entropy")
        left = seconds_a_step * (self.training.steps - row["step"])
        self.say(
            f"{self.size} step {row['step']}/{self.training.steps}: masked {row['mlm_loss']:.3f}, "
            f"crops {row['contrastive_loss']:.3f}"
            + (f", held out {entropy:.3f}" if entropy is not None else "")
            + f"; {1 / seconds_a_step:.1f} steps/s, {left / 60:.1f} min left"
        )

    def _write(self, name: str, log: list[dict[str, Any]], seconds: float) -> None:
        """The folder `name` of what has been trained by now."""
        folder = self.out / name
        self._lay_out(folder)
        about = {"key": self.key, **self.spec, "provenance": provenance(time.time() - seconds)}
        fill(folder, self.learner.encoder, log, about)

    def _lay_out(self, folder: Path) -> None:
        shape = self.params.shape
        heads = max(1, self.width // shape.head_width)
        lay_out(
            folder,
            self.tokenizer,
            layers=self.layers,
            width=self.width,
            heads=heads,
            positions=shape.positions,
        )


def _optimizer(learner: nn.Module, training: Training) -> torch.optim.AdamW:
    """AdamW; matrices are decayed, vectors (biases, norms, temperature) are not."""
    weights = list(learner.parameters())
    groups = [
        {"params": [w for w in weights if w.ndim >= 2], "weight_decay": training.weight_decay},
        {"params": [w for w in weights if w.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=training.lr, betas=(0.9, 0.98), fused=True)
