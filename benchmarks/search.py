"""Exact search of the 100 best passages: this project, faiss and beir, by turns.

    python benchmarks/search.py [--passages 200000] [--queries 1000] [--width 768] [--quick]

Random vectors lie on disk; all read them from there, one thread.  `ours`: streamed in blocks of 4,096
(`repro.measure.retrieval`); `faiss`: IndexFlatIP, filled by such blocks, then searched; `beir`: its
DenseRetrievalExactSearch, asked for the dot product, with chunks of 50,000, its default.
Each turn is a process of its own, its start not counted in the time; memory is the most that it has
resident (looked at every 50 ms), and what it had after its imports.  Where other work runs beside it, the
rate by processor time is the one to read.
"""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import turns

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# What a turn needs is imported in it: its memory counts.

DEPTH = 100
BLOCK = 4096  # passages, as a ranking reads them
LEAST = 1.0
MOST_APART = 1e-4  # of scores, relative; ids that differ within it are ties


def main() -> None:
    """Draw the vectors, run all by turns, compare what they found, print the table."""
    if sys.argv[1:2] == ["turn"]:
        print(json.dumps(turn(*sys.argv[2:])))
        return
    import common
    import numpy as np
    import peer

    from repro.measure.retrieval import expected_bytes

    parser = common.options(__doc__)
    for name, default in (("passages", 200_000), ("queries", 1000), ("width", 768)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    peer.use()
    shape = given.passages, given.queries, given.width
    n, m, width = (5000, 50, 64) if given.quick else shape
    place = common.scratch()
    draw(place, n, m, width)
    measured: dict[str, list[dict[str, Any]]] = {name: [] for name in CONTENDERS}

    def run(name: str) -> float:
        started = turns.start(__file__, name, str(place), str(width), str(peer.PLACE))
        measured[name].append(turns.watched(started))
        return m / float(measured[name][-1]["seconds"])

    rates = common.alternate(
        {name: functools.partial(run, name) for name in CONTENDERS}, common.rounds(given)
    )

    def of(name: str, what: str) -> NDArray[np.float64]:
        return np.array([each[what] for each in measured[name]])

    rows = [
        [name, common.spread(rates[name]), common.spread(m / of(name, "processor")),
         common.spread(of(name, "bytes") / 1e6), common.spread(of(name, "before") / 1e6)]
        for name in CONTENDERS
    ]  # fmt: skip
    peers = list(CONTENDERS)[1:]
    asked = [common.Asked(f"rate, ours over {p}", LEAST, rates["ours"] / rates[p]) for p in peers]
    for name in peers:
        apart, others = compared(place, name)
        what = f"scores, ours and {name}, largest relative difference"
        asked.append(common.Asked(what, MOST_APART, np.array([apart]), at_most=True))
        what = f"passages found by one of ours and {name} that are no ties"
        asked.append(common.Asked(what, 0, np.array([others]), at_most=True))
    told = expected_bytes(m, width, DEPTH, BLOCK)
    asked.append(
        common.Asked(
            "bytes ours took over those told before",
            1.0,
            (of("ours", "bytes") - of("ours", "before")) / told,
            at_most=True,
        )
    )
    note = (
        f"{n:,} passages of {width} dimensions ({4 * n * width / 1e6:,.0f} MB), {m:,} queries, the "
        f"{DEPTH} best.  Median (least to greatest).\nTold beforehand of ours, metrics included: "
        f"{told / 1e6:.1f} MB.  Peers: {', '.join(map(version, ('faiss-cpu', 'beir')))}."
    )
    columns = ["", "queries a second", "queries a processor second", "MB resident at most"]
    common.show("Exact search", [*columns, "MB after imports"], rows, asked, note)


def draw(place: Path, n: int, m: int, width: int) -> None:
    """Write `n` passages and `m` queries, float32."""
    import numpy as np

    random = np.random.default_rng(0)
    for name, count in (("queries", m), ("passages", n)):
        with (place / name).open("wb") as file:
            for start in range(0, count, BLOCK):
                rows = min(BLOCK, count - start)
                random.standard_normal((rows, width), dtype=np.float32).tofile(file)


def compared(place: Path, name: str) -> tuple[float, int]:
    """The largest relative difference of scores from ours, and passages that one found and are no ties.

    Rank by rank; a tie is a passage whose score is that of the last, as far as scores are the same.
    """
    import numpy as np

    found, scores = (np.load(place / f"ours-{what}.npy") for what in ("found", "scores"))
    theirs, their_scores = (np.load(place / f"{name}-{what}.npy") for what in ("found", "scores"))
    apart = float(np.max(np.abs(their_scores - scores) / np.abs(scores)))
    others = 0
    for row in range(len(found)):
        last = scores[row, -1] + MOST_APART * abs(scores[row, -1])
        for a, b, score in ((found, theirs, scores), (theirs, found, their_scores)):
            others += int((~np.isin(a[row], b[row]) & (score[row] > last)).sum())
    return apart, others


def turn(name: str, place: str, width: str, peer: str) -> dict[str, Any]:
    """Search once; in how many seconds, and how many bytes were resident before it."""
    sys.path.append(peer)
    folder = Path(place)
    import numpy as np

    found, scores, spent = CONTENDERS[name](folder, int(width))
    np.save(folder / f"{name}-found.npy", found)
    np.save(folder / f"{name}-scores.npy", scores)
    return spent


def ours(place: Path, width: int) -> tuple[Any, Any, dict[str, float]]:
    """The search of a ranking."""
    from repro.measure.retrieval import top_k

    spent = begun()
    (queries,) = blocks(place / "queries", width, -1)
    found, scores = top_k(queries, blocks(place / "passages", width, BLOCK), DEPTH)
    return found, scores, spent()


def by_faiss(place: Path, width: int) -> tuple[Any, Any, dict[str, float]]:
    """A flat index of inner products."""
    import faiss

    faiss.omp_set_num_threads(1)
    spent = begun()
    (queries,) = blocks(place / "queries", width, -1)
    index = faiss.IndexFlatIP(width)
    for block in blocks(place / "passages", width, BLOCK):
        index.add(block)
    scores, found = index.search(queries, DEPTH)
    return found, scores, spent()


def by_beir(place: Path, width: int) -> tuple[Any, Any, dict[str, float]]:
    """beir's exact search over vectors that are there already."""
    import numpy as np
    import torch
    from beir.retrieval.search.dense import DenseRetrievalExactSearch

    torch.set_num_threads(1)
    size = 50_000

    class Read:
        """A model that has all texts encoded: rows of the files, in order."""

        def __init__(self) -> None:
            self.passages = blocks(place / "passages", width, size)

        def encode_queries(self, _: list[str], **__: Any) -> torch.Tensor:
            (queries,) = blocks(place / "queries", width, -1)
            return torch.from_numpy(queries)

        def encode_corpus(self, _: list[dict[str, str]], **__: Any) -> torch.Tensor:
            return torch.from_numpy(next(self.passages))

    n, m = (os.path.getsize(place / name) // (4 * width) for name in ("passages", "queries"))
    corpus = {f"p{i}": {"text": ""} for i in range(n)}
    queries = {f"q{i}": "" for i in range(m)}
    spent = begun()
    search = DenseRetrievalExactSearch(Read(), corpus_chunk_size=size)
    results = search.search(corpus, queries, DEPTH, "dot")
    after = spent()
    ranked = [sorted(each.items(), key=lambda pair: -pair[1]) for each in results.values()]
    found = np.array([[int(name[1:]) for name, _ in row] for row in ranked])
    return found, np.array([[score for _, score in row] for row in ranked]), after


CONTENDERS = {"ours": ours, "faiss": by_faiss, "beir": by_beir}


def begun() -> Any:
    """A stopwatch that tells the bytes resident at its start too."""
    before, spent = turns.resident(os.getpid()), turns.stopwatch()
    return lambda: {**spent(), "before": before}


def blocks(path: Path, width: int, size: int) -> Iterator[NDArray[np.float32]]:
    """The vectors in a file, `size` rows at a time; -1: all at once."""
    import numpy as np

    with path.open("rb") as file:
        while len(block := np.fromfile(file, np.float32, size * width if size > 0 else -1)):
            yield block.reshape(-1, width)


def version(package: str) -> str:
    """A peer's name and version."""
    from importlib.metadata import version as of

    return f"{package} {of(package)}"


if __name__ == "__main__":
    main()
