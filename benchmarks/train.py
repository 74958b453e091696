"""Pairs a second in training: this project, sentence-transformers, and a plain loop, by turns.

    python benchmarks/train.py [--threads 1] [--models 2x128 ...] [--quick]

Batches of 64 pairs of apidocs, in-batch negatives alone, cosines over .05, dropout .1, AdamW, the
same weights and the same pairs for all.  `loop` is a loop over sentence-transformers' model and its
MultipleNegativesRankingLoss, `trainer` its SentenceTransformerTrainer without logging, saving or
evaluation, `plain` a loop over transformers' BertModel on token ids: one padded batch of queries
and one of passages.  All use torch's fused AdamW; only ours and `trainer` clip gradients.  Ours and
`plain` read ids tokenised once, `plain` padded beforehand too; the peer tokenises as it goes, texts
cut to length beforehand.
With one thread also: our share of the sgemm rate, and our losses against the peer's.
"""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass
from itertools import chain

import common
import numpy as np
import peer
import torch
from common import Asked
from numpy.typing import NDArray
from torch import Tensor, nn

from repro.data.dataset import Dataset
from repro.data.negatives import NegativesParams
from repro.data.tokens import Tokens
from repro.model.encoder import Encoder, size
from repro.model.memory import Precision
from repro.model.pretrained import Pretrained
from repro.model.texts import Texts
from repro.train.batches import Batches
from repro.train.curve import CurveParams
from repro.train.loop import RunSpec, Trainer, TrainParams

PAIRS = 64
SUBSET = 10_240  # training pairs
LR = 5e-4  # of mini's 2x64 and 2x128
WARM_UP = 2  # steps of each, not counted
LOSS_STEPS = 50
PAPERS, MINI = (32, 180), (24, 64)  # tokens of queries and passages


@dataclass(frozen=True)
class Setting:
    """A model at two lengths, and what is asked of it: pairs a second over the peer's."""

    model: str
    tokens: tuple[int, int]
    steps: int  # of each contender in a round
    times_peer: dict[int, float] = dataclasses.field(default_factory=dict)  # by threads
    of_sgemm: float = 0.0
    times_plain: float = 0.0

    @property
    def name(self) -> str:
        """Model and lengths."""
        return f"{self.model}, {self.tokens[0]}/{self.tokens[1]}"


SETTINGS = [
    Setting("2x128", PAPERS, 8, {1: 2.6, 2: 2.3}, of_sgemm=0.55),
    Setting("4x256", PAPERS, 3, {1: 2.6, 2: 2.3}, of_sgemm=0.70),
    Setting("2x128", MINI, 12, {1: 1.7, 2: 1.5}),
    Setting("1x32", MINI, 40, times_plain=2.0),
    Setting("1x64", MINI, 30, times_plain=2.0),
    Setting("2x64", MINI, 20, times_plain=2.0),
]
LOSSES = SETTINGS[:3]  # whose losses are compared


class Plain:
    """A loop as one writes it first: BertModel, mean of the states, projection, AdamW."""

    def __init__(self, model: str, encoder: Encoder) -> None:
        from transformers import BertModel

        of = common.source(model)
        self.bert = BertModel.from_pretrained(
            of.folder, add_pooling_layer=False, dtype=torch.float32
        ).train()
        self.projection = nn.Linear(of.config.hidden_size, common.WIDTH)
        self.projection.load_state_dict(encoder.projection.state_dict())
        weights = [*self.bert.parameters(), *self.projection.parameters()]
        self.optimizer = torch.optim.AdamW(weights, lr=LR, weight_decay=0.0, fused=True)

    def step(self, queries: dict[str, Tensor], passages: dict[str, Tensor]) -> Tensor:
        """One step on token ids and masks; returns the loss."""
        vectors = [self._vectors(features) for features in (queries, passages)]
        scores = vectors[0] @ vectors[1].T / common.TEMPERATURE
        loss = nn.functional.cross_entropy(scores, torch.arange(len(scores)))
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def _vectors(self, features: dict[str, Tensor]) -> Tensor:
        states = self.bert(**features).last_hidden_state
        weight = features["attention_mask"][..., None].to(states.dtype)
        pooled = (states * weight).sum(1) / weight.sum(1)
        return nn.functional.normalize(self.projection(pooled), dim=-1)


class Pairs:
    """The texts of each step: the batches that our trainer draws too.

    Passages are the positives, in order of the queries, then those that are negatives alone.
    """

    def __init__(self, dataset: Dataset, spec: RunSpec) -> None:
        train, drawn = spec.train, dataset.splits.subset(spec.pairs)
        self.batches = Batches(dataset, drawn, train.batch_pairs, train.negatives, spec.seed)

    def __call__(self, first: int, steps: int) -> list[tuple[NDArray[np.int32], NDArray[np.int32]]]:
        """Queries and passages, int32, of `steps` steps from `first`."""
        drawn = [self.batches(step) for step in range(first, first + steps)]
        return [
            (
                batch.queries,
                np.append(
                    batch.passages[batch.positive], np.delete(batch.passages, batch.positive)
                ),
            )
            for batch in drawn
        ]


class Strings:
    """The texts of apidocs, cut so that they give no more tokens than a model reads."""

    def __init__(self, model: str, tokens: tuple[int, int]) -> None:
        self.tokenizer, self.limits = common.source(model).tokenizer, tokens

    def __call__(
        self, pairs: list[tuple[NDArray[np.int32], NDArray[np.int32]]]
    ) -> list[tuple[list[str], list[str]]]:
        """Queries and passages of each step."""
        collection = common.apidocs().collection
        return [
            (
                [self._cut(collection.queries[i], self.limits[0]) for i in queries],
                [self._cut(collection.passages[i], self.limits[1]) for i in passages],
            )
            for queries, passages in pairs
        ]

    def _cut(self, text: str, limit: int) -> str:
        offsets = self.tokenizer.encode(text, add_special_tokens=False).offsets
        return text if len(offsets) <= limit - 2 else text[: offsets[limit - 3][1]]


def main() -> None:
    """Measure every setting and print the tables."""
    parser = common.options(__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--models", nargs="*", help="these alone")
    given = parser.parse_args()
    common.use_threads(given.threads)
    version = peer.use()
    asked: list[Asked] = []
    rows = []
    chosen = SETTINGS[2:4] if given.quick else SETTINGS
    if given.models:
        chosen = [setting for setting in SETTINGS if setting.model in given.models]
    for setting in chosen:
        if given.threads in setting.times_peer or given.threads == 1:
            row, more = measure(setting, given.threads, common.rounds(given), quick=given.quick)
            rows.append(common.told(row))
            asked += more
    columns = ["model, tokens", "ours", "loop", "trainer", "plain"]
    columns += ["ours / loop", "ours / trainer", "ours / plain", "of sgemm"]
    note = (
        f"Pairs a second, and ratios within a round: median (least to greatest).  Peer: {version}.\n"
        "Of sgemm: useful FLOP a second (6 x encoder parameters x tokens, and attention) over the "
        f"rate of a\n{common.SGEMM} cubed float32 product on one thread in the same round."
    )
    if given.threads == 1:
        asked += [losses(s, given.quick) for s in chosen if s in LOSSES]
    common.show(f"Training, {given.threads} thread(s)", columns, rows, asked, note)


def measure(
    setting: Setting, threads: int, rounds: int, *, quick: bool
) -> tuple[list[str], list[Asked]]:
    """The table row of a setting, and what is asked of it."""
    steps = 2 if quick else setting.steps
    seen = common.texts(setting.model, *setting.tokens)
    spec = run_spec(seen, common.apidocs(), dropout=0.1)
    ours = trainer(setting.model, spec, seen, common.apidocs())
    model = functools.partial(
        peer.model,
        common.encoder(setting.model, spec.encoder),
        setting.model,
        setting.tokens[1],
    )
    loop, made = peer.Loop(model(), LR), model()
    plain = Plain(setting.model, common.encoder(setting.model, spec.encoder))
    draw, strings = Pairs(common.apidocs(), spec), Strings(setting.model, setting.tokens)
    rate = common.sgemm_rate()
    places = dict.fromkeys(("loop", "trainer", "plain"), WARM_UP)
    flop_rates: list[float] = []

    def step_ours() -> float:
        before = ours.flop
        spent = common.seconds(lambda: [ours.step() for _ in range(steps)])
        flop_rates.append((ours.flop - before) / spent)
        return steps * PAIRS / spent

    def next_pairs(name: str) -> list[tuple[NDArray[np.int32], NDArray[np.int32]]]:
        places[name] += steps
        return draw(places[name] - steps, steps)

    def step_loop() -> float:
        batches = strings(next_pairs("loop"))
        return steps * PAIRS / common.seconds(lambda: [loop.step(*batch) for batch in batches])

    def step_trainer() -> float:
        first, later = strings(draw(0, 1)), strings(next_pairs("trainer"))
        queries, passages = (list(chain(*column)) for column in zip(*first, *later, strict=True))
        return steps * PAIRS / peer.trained(made, queries, passages, LR, PAIRS)

    def step_plain() -> float:
        batches = [padded(seen, *batch) for batch in next_pairs("plain")]
        return steps * PAIRS / common.seconds(lambda: [plain.step(*batch) for batch in batches])

    for batch, text in zip(draw(0, WARM_UP), strings(draw(0, WARM_UP)), strict=True):
        ours.step()
        loop.step(*text)
        plain.step(*padded(seen, *batch))
    sgemm = {"sgemm": rate} if threads == 1 else {}
    found = common.alternate(
        {
            "ours": step_ours,
            **sgemm,
            "loop": step_loop,
            "trainer": step_trainer,
            "plain": step_plain,
        },
        rounds,
    )
    times = {name: found["ours"] / found[name] for name in ("loop", "trainer", "plain")}
    share = np.array(flop_rates) / found["sgemm"] if threads == 1 else None
    row = [setting.name]
    row += [f"{np.median(found[name]):,.0f}" for name in ("ours", *times)]
    row += [common.spread(values) for values in times.values()]
    row.append("" if share is None else common.spread(share, 2))
    asked = []
    if threads in setting.times_peer:
        least = setting.times_peer[threads]
        for name in ("trainer", "loop"):
            what = f"{setting.name}, {threads} thread(s), pairs a second over {name}"
            asked.append(Asked(what, least, times[name]))
    if share is not None and setting.of_sgemm:
        asked.append(Asked(f"{setting.name}, of the sgemm rate", setting.of_sgemm, share))
    if threads == 1 and setting.times_plain:
        what = f"{setting.name}, pairs a second over plain"
        asked.append(Asked(what, setting.times_plain, times["plain"]))
    return row, asked


def losses(setting: Setting, quick: bool) -> Asked:
    """The largest relative difference of our losses from the peer's, without dropout, on the same ids.

    Each training pair is of a near-duplicate component of its own, so that nothing is masked.
    """
    dataset = _distinct(common.apidocs())
    seen = common.texts(setting.model, *setting.tokens)
    spec = run_spec(seen, dataset, dropout=0.0)
    spec = spec.model_copy(update={"train": spec.train.model_copy(update={"clip_norm": 1e6})})
    encoder = common.encoder(setting.model, spec.encoder)
    loop = peer.Loop(peer.model(encoder, setting.model, setting.tokens[1]), LR)
    ours = trainer(setting.model, spec, seen, dataset)
    steps = 4 if quick else LOSS_STEPS
    off = []
    for batch in Pairs(dataset, spec)(0, steps):
        theirs = float(loop.features(list(padded(seen, *batch))))
        off.append(abs(float(ours.step()) - theirs) / theirs)
    what = f"{setting.name}, losses of {steps} steps, largest relative difference"
    return Asked(what, 1e-4, np.array([max(off)]), at_most=True)


def run_spec(
    seen: Texts,
    dataset: Dataset,
    *,
    dropout: float,
    precision: Precision = "float32",
    pairs: int = PAIRS,
    negatives: int = 0,
) -> RunSpec:
    """A run over in-batch negatives and as many shared ones as asked for, none of them cached."""
    return RunSpec(
        weights=seen.source.digest,
        tokens=seen.table.digest,
        splits=dataset.splits.digest,
        validation=dataset.evaluation("validation").digest,
        pairs=SUBSET,
        seed=1,
        lr=LR,
        lr_reference=LR,
        encoder=common.encoder_params(dropout, precision),
        texts=seen.params,
        train=TrainParams(
            batch_pairs=pairs,
            negatives=NegativesParams(count=negatives, in_batch=True),
            step_tokens=1_000_000_000,
        ),
        curve=CurveParams(max_steps=10_000),
    )


def trainer(
    model: str, spec: RunSpec, seen: Texts, dataset: Dataset, device: str = "cpu"
) -> Trainer:
    """Our trainer at its start."""
    counts = size(common.source(model), common.WIDTH)
    return Trainer(spec, common.encoder(model, spec.encoder).to(device), counts, seen, dataset)


def padded(
    seen: Texts, queries: NDArray[np.integer], passages: NDArray[np.integer]
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Queries and passages as token ids, each padded to its longest."""
    params, table = seen.params, seen.table
    return (
        _rows(table.queries, queries, params.query_tokens, seen.source),
        _rows(table.passages, passages, params.passage_tokens, seen.source),
    )


def _rows(
    tokens: Tokens, indices: NDArray[np.integer], limit: int, of: Pretrained
) -> dict[str, Tensor]:
    rows = [tokens.ids[tokens.offsets[i] : tokens.offsets[i + 1]][: limit - 2] for i in indices]
    width = 2 + max(len(row) for row in rows)
    ids = np.full((len(rows), width), of.pad_id, np.int64)
    mask = np.zeros_like(ids)
    for line, row in enumerate(rows):
        ids[line, : len(row) + 2] = [of.cls_id, *row, of.sep_id]
        mask[line, : len(row) + 2] = 1
    return {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(mask)}


def _distinct(dataset: Dataset) -> Dataset:
    """The dataset with one training pair of each near-duplicate component."""
    train = dataset.splits.train
    component = dataset.component_of_passage[dataset.collection.pairs[train, 1]]
    first = np.sort(np.unique(component, return_index=True)[1])
    return dataclasses.replace(
        dataset, splits=dataclasses.replace(dataset.splits, train=train[first])
    )


if __name__ == "__main__":
    main()
