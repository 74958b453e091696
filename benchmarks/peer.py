"""The peer: sentence-transformers, kept in build/peer, and our encoder as one of its models.

python benchmarks/peer.py      (installs it; `make bench` does so)
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import common
import torch
from torch import Tensor

from repro.model.encoder import Encoder
from repro.places import home

LOCK = Path(__file__).parent / "requirements.lock"
PLACE = home() / "build" / "peer"
STAMP = PLACE / "repro-stamp"
SCALE = 1 / common.TEMPERATURE


def install() -> None:
    """Put the locked packages into build/peer, unless they are there."""
    if _installed():
        return
    shutil.rmtree(PLACE, ignore_errors=True)
    pip = [sys.executable, "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
    done = subprocess.run([*pip, "--no-deps", "--target", str(PLACE), "-r", str(LOCK)])
    if done.returncode != 0:
        sys.exit("benchmarks: pip could not install the peer (its words are above)")
    STAMP.write_text(_digest())


def use() -> str:
    """Make the peer importable; returns its name and version."""
    if not _installed():
        sys.exit("benchmarks: the peer is not installed\n  remedy: python benchmarks/peer.py")
    if str(PLACE) not in sys.path:
        sys.path.append(str(PLACE))  # behind the project's own packages
    import datasets
    import sentence_transformers
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    datasets.disable_progress_bars()
    return f"sentence-transformers {sentence_transformers.__version__}"


def model(encoder: Encoder, name: str, max_tokens: int, device: str = "cpu") -> Any:
    """A SentenceTransformer with the weights and the dropout of `encoder` as it starts."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Dense, Normalize, Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling

    rate = encoder.params.dropout
    transformer = Transformer(
        str(common.source(name).folder),
        model_kwargs={"dtype": torch.float32},
        config_kwargs={"hidden_dropout_prob": rate, "attention_probs_dropout_prob": rate},
        max_seq_length=max_tokens,
    )
    width = common.source(name).config.hidden_size
    dense = Dense(
        width,
        common.WIDTH,
        activation_function=None,
        init_weight=encoder.projection.weight.detach().clone(),
        init_bias=encoder.projection.bias.detach().clone(),
    )
    return SentenceTransformer(
        modules=[transformer, Pooling(width, "mean"), dense, Normalize()], device=device
    )


class Loop:
    """A plain loop: the peer's model and loss, its own tokenising, torch's AdamW.

    reduced: under autocast to bfloat16.
    """

    def __init__(self, made: Any, lr: float, *, reduced: bool = False) -> None:
        from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

        self.model, self.reduced = made.train(), reduced
        self.loss = MultipleNegativesRankingLoss(made, scale=SCALE)
        self.optimizer = torch.optim.AdamW(made.parameters(), lr=lr, weight_decay=0.0, fused=True)

    def step(self, queries: list[str], passages: list[str]) -> Tensor:
        """One step on texts; returns the loss."""
        return self.features([self.model.preprocess(queries), self.model.preprocess(passages)])

    def features(self, features: list[dict[str, Tensor]]) -> Tensor:
        """One step on token ids: `input_ids` and `attention_mask` of queries and of passages."""
        from sentence_transformers.util import batch_to_device

        device = self.model.device
        there = [batch_to_device(each, device) for each in features]
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device.type, torch.bfloat16, enabled=self.reduced):
            loss = self.loss(there, labels=None)
        loss.backward()
        self.optimizer.step()
        return loss.detach()


def trained(made: Any, queries: list[str], passages: list[str], lr: float, size: int) -> float:
    """Seconds that SentenceTransformerTrainer takes, as users run it, after its first step.

    Batches of `size` pairs; neither its start nor its first step is counted.
    """
    import datasets
    from sentence_transformers import (
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
    )
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    arguments = SentenceTransformerTrainingArguments(
        output_dir=str(common.scratch() / "trainer"),
        per_device_train_batch_size=size,
        num_train_epochs=1,
        learning_rate=lr,
        use_cpu=True,
        dataloader_num_workers=0,
        eval_strategy="no",
        save_strategy="no",
        logging_strategy="no",
        report_to="none",
        disable_tqdm=True,
    )
    with _stopwatch() as watch:
        trainer = SentenceTransformerTrainer(
            model=made,
            args=arguments,
            train_dataset=datasets.Dataset.from_dict({"anchor": queries, "positive": passages}),
            loss=MultipleNegativesRankingLoss(made, scale=SCALE),
            callbacks=[watch],
        )
        trainer.train()
    return float(watch.ends[-1] - watch.ends[0])


@contextmanager
def _stopwatch() -> Iterator[Any]:
    """A callback whose `ends` are the times at which steps ended; what is printed is dropped."""
    import contextlib
    import io
    import time

    from transformers import TrainerCallback

    class Stopwatch(TrainerCallback):
        def __init__(self) -> None:
            self.ends: list[float] = []

        def on_step_end(self, *_: Any, **__: Any) -> None:
            self.ends.append(time.perf_counter())

    heard = io.StringIO()
    with contextlib.redirect_stdout(heard), contextlib.redirect_stderr(heard):
        yield Stopwatch()


def _installed() -> bool:
    return STAMP.is_file() and STAMP.read_text() == _digest()


def _digest() -> str:
    parts = LOCK.read_bytes() + sys.version.encode()
    return hashlib.sha256(parts).hexdigest()


if __name__ == "__main__":
    install()
