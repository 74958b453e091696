"""Texts a second in encoding: this project and SentenceTransformer.encode, by turns.

    python benchmarks/encode.py [--threads 1] [--quick]

Passages of apidocs, cut at 64 and at 180 tokens, one thread.  `ids`: from the token table, as the
curve is read and the corpus is searched; `texts`: tokenising included, which is what the peer does.
The peer runs at its default batch of 32 and at 128; both sort by length.
"""

from __future__ import annotations

import common
import numpy as np
import peer
from common import Asked
from tokenizers import Tokenizer

from repro.data.tokens import MAX_IDS, Tokens, TokenTable, tokenise
from repro.model.encoder import encode
from repro.model.texts import TextParams, Texts

SETTINGS = [("1x32", 64), ("2x128", 64), ("2x128", 180), ("4x256", 180)]
BATCHES = (32, 128)  # the first is the peer's default
LEAST = 1.5
MOST_APART = 1e-4


def main() -> None:
    """Measure every setting and print the table."""
    parser = common.options(__doc__)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    common.use_threads(given.threads)
    version = peer.use()
    rows, asked = [], []
    for model, length in SETTINGS[:1] if given.quick else SETTINGS:
        n_texts = 256 if given.quick else (4096 if model == "1x32" else 1024)
        row, more = measure(model, length, n_texts, common.rounds(given))
        rows.append(common.told(row))
        asked += more
    columns = ["model, tokens", "ids", "texts", *(f"peer, {size}" for size in BATCHES)]
    columns += ["ids / peer's best", *(f"texts / peer, {size}" for size in BATCHES)]
    note = (
        f"Texts a second, and ratios within a round: median (least to greatest).  Peer: {version}."
    )
    common.show(f"Encoding, {given.threads} thread(s)", columns, rows, asked, note)


def measure(model: str, length: int, n_texts: int, rounds: int) -> tuple[list[str], list[Asked]]:
    """The table row of a model at a length, and what is asked of it."""
    params = common.encoder_params()
    encoder, seen = common.encoder(model, params), common.texts(model, length, length)
    theirs = peer.model(encoder, model, length)
    passages = common.apidocs().collection.passages[:n_texts]
    indices, none = np.arange(n_texts), np.empty(0, np.int64)
    tokenizer = Tokenizer.from_str(seen.source.tokenizer.to_str())
    tokenizer.enable_truncation(min(length, MAX_IDS))

    def from_ids() -> np.ndarray:
        return encode(encoder, seen.chunks(none, indices), n_texts)

    def from_texts() -> np.ndarray:
        tokens = tokenise(tokenizer, passages)
        empty = Tokens(np.empty(0, np.int32), np.zeros(1, np.int64))
        table = TokenTable(empty, tokens, 0.0, "")
        own = Texts(table, seen.source, TextParams(query_tokens=length, passage_tokens=length))
        return encode(encoder, own.chunks(none, indices), n_texts)

    def by_peer(size: int) -> np.ndarray:
        return theirs.encode(passages, batch_size=size, show_progress_bar=False)

    contenders = {"ids": from_ids, "texts": from_texts}
    contenders |= {f"peer {size}": lambda size=size: by_peer(size) for size in BATCHES}
    vectors = [run() for run in contenders.values()]  # warms up too
    apart = max(float(np.abs(vectors[0] - other).max()) for other in vectors[1:])
    rates = {
        name: (lambda run=run: n_texts / common.seconds(run)) for name, run in contenders.items()
    }
    found = common.alternate(rates, rounds)
    best = np.maximum(*(found[f"peer {size}"] for size in BATCHES))
    over = [found["texts"] / found[f"peer {size}"] for size in BATCHES]
    row = [f"{model}, {length}", *(f"{np.median(values):,.0f}" for values in found.values())]
    row += [common.spread(found["ids"] / best), *(common.spread(values) for values in over)]
    asked = [
        Asked(f"{model}, {length}, from ids, over the peer's best", LEAST, found["ids"] / best)
    ]
    asked += [
        Asked(f"{model}, {length}, from texts, over the peer at {size}", LEAST, values)
        for size, values in zip(BATCHES, over, strict=True)
    ]
    asked.append(
        Asked(
            f"{model}, {length}, vectors, largest difference",
            MOST_APART,
            np.array([apart]),
            at_most=True,
        )
    )
    return row, asked


if __name__ == "__main__":
    main()
