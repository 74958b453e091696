"""Evaluation: each text encoded once against re-encoding each pair's passages; and its share of a run.

    python benchmarks/evaluate.py [--threads 1] [--quick]

The validation set of apidocs (pairs, and for each 256 negatives from one pool).  The plain way
encodes, for each pair, its query, its positive and its 256 negatives, with the same encoder and the
same chunks sorted by length; it is timed on a few pairs and multiplied up to the set.
The share of readings: their time over that of a run at mini's settings, where its curve is read.
"""

from __future__ import annotations

import common
import numpy as np
from common import Asked

from repro import params
from repro.data.evaluation import EvaluationSet
from repro.experiments.profile import Profile
from repro.measure.entropy import contrastive_entropy
from repro.measure.evaluate import pair_entropies
from repro.model.encoder import Encoder, build, encode, size
from repro.model.texts import Texts
from repro.places import ROOT
from repro.train.curve import worth_reading
from repro.train.loop import RunSpec, Trainer

MODELS = ["1x32", "2x64", "2x128"]
RUNS = (100, 300, 1000)  # steps of the runs whose share of readings is shown
LEAST = 20.0
MOST_APART = 1e-4


def main() -> None:
    """Measure every model and print the table."""
    parser = common.options(__doc__)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    common.use_threads(given.threads)
    profile = mini()
    rows, asked = [], []
    for model in MODELS[:1] if given.quick else MODELS:
        row, more = measure(model, profile, 1 if given.quick else 4, common.rounds(given))
        rows.append(common.told(row))
        asked += more
    columns = ["model", "a reading, s", "plain, s", "plain / ours", "a reading, steps"]
    columns += [f"of a run of {steps:,} steps" for steps in RUNS]
    note = "Seconds; ratios within a round: median (least to greatest).  Plain: from a few pairs."
    common.show(f"Evaluation, {given.threads} thread(s)", columns, rows, asked, note)


def measure(
    model: str, profile: Profile, n_pairs: int, rounds: int
) -> tuple[list[str], list[Asked]]:
    """The table row of a model, and what is asked of it."""
    trainer = trainer_at(model, profile)
    encoder, seen, evaluation = trainer.encoder, trainer.texts, trainer.evaluation
    steps = 10 if n_pairs > 1 else 2
    trainer.step()
    pairs = np.arange(n_pairs)
    once = pair_entropies(encoder, seen, evaluation)[pairs]
    apart = float(np.abs(once - plain(encoder, seen, evaluation, pairs)).max())
    whole = len(evaluation.queries) / n_pairs
    drawn = iter(np.arange(rounds * n_pairs).reshape(rounds, n_pairs) % len(evaluation.queries))
    found = common.alternate(
        {
            "ours": lambda: common.seconds(trainer.validate),
            "step": lambda: common.seconds(lambda: [trainer.step() for _ in range(steps)]) / steps,
            "plain": lambda: (
                whole * common.seconds(lambda: plain(encoder, seen, evaluation, next(drawn)))
            ),
        },
        rounds,
    )
    in_steps = found["ours"] / found["step"]
    shares = []
    for n_steps in RUNS:
        spent = in_steps * n_readings(trainer, n_steps)
        shares.append(common.spread(spent / (spent + n_steps), 2))
    row = [model, *(f"{np.median(found[name]):.3g}" for name in ("ours", "plain"))]
    row += [common.spread(found["plain"] / found["ours"]), common.spread(in_steps), *shares]
    asked = [
        Asked(f"{model}, plain over ours", LEAST, found["plain"] / found["ours"]),
        Asked(
            f"{model}, entropies, largest difference", MOST_APART, np.array([apart]), at_most=True
        ),
    ]
    return row, asked


def plain(
    encoder: Encoder, seen: Texts, evaluation: EvaluationSet, pairs: np.ndarray
) -> np.ndarray:
    """The contrastive entropy of these pairs, each with its own passages encoded for it."""
    found = []
    for pair in pairs:
        columns = np.append(evaluation.positive[pair], evaluation.negatives[pair])
        chunks = seen.chunks(evaluation.queries[[pair]], evaluation.passages[columns])
        vectors = encode(encoder, chunks, 1 + len(columns))
        scores = float(encoder.scale().detach()) * (vectors[:1] @ vectors[1:].T)
        negatives = np.arange(1, len(columns))[None]
        found.append(contrastive_entropy(scores, np.array([0]), negatives)[0])
    return np.array(found)


def n_readings(trainer: Trainer, n_steps: int) -> int:
    """How often the curve of a run of `n_steps` is read, the reading before step 1 included.

    The trainer has done some steps: they tell what a step costs.
    """
    a_step, curve = trainer.flop / trainer.done, trainer.spec.curve
    read = [0]
    for step in trainer.readings[trainer.readings < n_steps]:
        if worth_reading((step - read[-1]) * a_step, trainer.reading_flop, curve):
            read.append(int(step))
    return len(read) + 1  # the last step


def mini() -> Profile:
    """The embedded default."""
    return params.load(ROOT / "params" / "mini.yaml", Profile)


def trainer_at(model: str, profile: Profile, seed: int = 0) -> Trainer:
    """A trainer of the shipped model, at the profile's settings and its largest data size."""
    seen = common.texts(model, profile.texts.query_tokens, profile.texts.passage_tokens)
    dataset = common.apidocs()
    spec = RunSpec(
        weights=seen.source.digest,
        tokens=seen.table.digest,
        splits=dataset.splits.digest,
        validation=dataset.evaluation("validation").digest,
        pairs=max(profile.grid.sizes),
        seed=profile.seed + seed,
        lr=profile.models[model].lr,
        lr_reference=profile.lr_reference,
        encoder=profile.encoder,
        texts=profile.texts,
        train=profile.train,
        curve=profile.curve,
    )
    counts = size(seen.source, profile.encoder.projection)
    return Trainer(spec, build(seen.source, spec.encoder, spec.seed), counts, seen, dataset)


if __name__ == "__main__":
    main()
