"""Passages tokenised a second, and the memory it takes: this project and `datasets.map`, by turns.

    python benchmarks/tokenise.py [--texts 200000] [--processes 2] [--rounds 3] [--quick]

A synthetic corpus (runs of about 56 words out of apidocs) lies on disk in the form of each: a column
of a collection; an Arrow dataset.  Both cut at 512 ids with the tokenizer of micro/2x128, in as many
processes of one thread, and write to disk: the token table with its digest; an Arrow dataset of ids.
Each turn is a process of its own, its start not counted in the time, that of its workers counted;
memory is the most that it and its workers have resident together, looked at every 50 ms.  Where other
work runs beside it, the rate by processor time is the one to read.  At last ours is
killed (SIGKILL) half-way and started again: how many of its finished shards were kept.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import turns

# What a turn needs is imported in it: a worker process imports this file, and its memory counts.

MODEL = "2x128"
WORDS = 56
LEAST, MOST_BYTES = 1.0, 1.5e9


def main() -> None:
    """Make the corpus, run both by turns, kill ours once, print the table."""
    if sys.argv[1:2] == ["turn"]:
        print(json.dumps(turn(*sys.argv[2:])))
        return
    import common
    import numpy as np
    import peer

    parser = common.options(__doc__)
    parser.add_argument("--texts", type=int, default=200_000)
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    peer.use()
    n, place = 5000 if given.quick else given.texts, common.scratch()
    n_bytes = corpus(place, n)
    measured: dict[str, list[dict[str, Any]]] = {"ours": [], "datasets.map": []}

    def run(name: str) -> float:
        measured[name].append(turns.watched(start(name, place, given.processes)))
        return n / measured[name][-1]["seconds"]

    contenders = {name: (lambda name=name: run(name)) for name in measured}
    rates = common.alternate(contenders, common.rounds(given))
    if not same(place):
        sys.exit("benchmarks: the two do not give the same ids")
    memory = {
        name: np.array([each["bytes"] for each in rounds]) for name, rounds in measured.items()
    }
    rows = [
        [name, common.spread(rates[name]),
         common.spread(n / np.array([each["processor"] for each in measured[name]])),
         common.spread(memory[name] / 1e6)]
        for name in measured
    ]  # fmt: skip
    kept, made = killed(place, given.processes)
    asked = [
        common.Asked("rate, ours over datasets.map", LEAST, rates["ours"] / rates["datasets.map"]),
        common.Asked("resident bytes of ours", MOST_BYTES, memory["ours"], at_most=True),
    ]
    note = (
        f"{n:,} passages, {n_bytes / 1e6:,.0f} MB; {given.processes} process(es).  Median (least to "
        f"greatest).  Killed with {kept} shards finished, ours kept them and made the other "
        f"{made - kept}.  Peer: datasets {version('datasets')}."
    )
    columns = ["", "passages a second", "passages a processor second", "MB resident at most"]
    common.show("Tokenising", columns, rows, asked, note)


def corpus(place: Path, n: int) -> int:
    """Write `n` passages as a collection's column and as an Arrow dataset; returns their bytes."""
    import common
    import datasets
    import numpy as np

    from repro.data import column

    words = " ".join(common.apidocs().collection.passages).split()
    random = np.random.default_rng(0)
    spool = column.Spool(place)
    for start, length in zip(
        random.integers(0, len(words) - 2 * WORDS, n).tolist(),
        random.integers(1, 2 * WORDS, n).tolist(),
        strict=True,
    ):
        spool.add(" ".join(words[start : start + length]))
    passages = spool.column()
    column.save(place, "passages", passages)
    rows = datasets.Dataset.from_generator(
        lambda: ({"text": text} for text in passages), cache_dir=str(place / "cache")
    )
    rows.save_to_disk(str(place / "rows"))
    return int(passages.lengths().sum())


def start(name: str, place: Path, processes: int) -> subprocess.Popen[str]:
    """A turn, in a process of its own."""
    import common
    import peer

    tokenizer = common.source(MODEL).folder / "tokenizer.json"
    return turns.start(__file__, name, str(place), str(tokenizer), str(processes), str(peer.PLACE))


def killed(place: Path, processes: int) -> tuple[int, int]:
    """(finished when it was killed, all): of the shards of our turn, killed half-way, then finished.

    Stops the benchmark where one of those that were finished is made again.
    """
    import shutil

    from repro.data import column, tokenising

    passages = column.Column.load(place, "passages")
    n = len(tokenising.cut(passages.lengths(), tokenising.SHARD, tokenising.SHARD_BYTES))
    folder = place / "ours" / "shards" / "passages"
    shutil.rmtree(place / "ours")
    started = start("ours", place, processes)
    while len(list(folder.glob("0*.npy"))) < max(n // 2, 1) and started.poll() is None:
        time.sleep(0.001)
    os.kill(started.pid, signal.SIGKILL)
    started.communicate()
    time.sleep(1.0)  # its workers look for it every half second
    before = {path.name: path.stat().st_ino for path in folder.glob("0*.npy")}
    started = start("ours", place, processes)
    after = dict(before)
    while started.poll() is None:
        after |= {
            path.name: inode(path) or after[path.name] for path in map(folder.joinpath, before)
        }
        time.sleep(turns.POLL_SECONDS)
    started.communicate()
    if started.returncode or after != before:
        sys.exit("benchmarks: after the kill shards were made again, or the turn failed")
    return len(before), n


def inode(path: Path) -> int | None:
    """The file's number; None where it is gone (the table is written)."""
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return None


def turn(name: str, place: str, tokenizer: str, processes: str, peer: str) -> dict[str, Any]:
    """Tokenise the corpus once; in how many seconds."""
    run = ours if name == "ours" else theirs
    return run(Path(place), tokenizer, int(processes), peer)


def ours(place: Path, tokenizer: str, processes: int, _: str) -> dict[str, Any]:
    """The token table of a collection of these passages."""
    import numpy as np
    from tokenizers import Tokenizer

    from repro.data import tokenising
    from repro.data.collection import Collection
    from repro.data.column import Coded, Column
    from repro.data.tokens import write_table

    tokenising.cores = lambda: processes
    tokenising.LEAST_BYTES = 1  # as many as that for a small corpus too
    passages = Column.load(place, "passages")
    groups = Coded([""], np.zeros(len(passages), np.int32))
    none = np.empty((0, 2), np.int32)
    collection = Collection("corpus", "en", [], [], passages, passages, none, groups)
    spent = turns.stopwatch()
    write_table(place / "ours", collection, Tokenizer.from_file(tokenizer))
    return spent()


def theirs(place: Path, tokenizer: str, processes: int, peer: str) -> dict[str, Any]:
    """`map` over the dataset with the tokenizer as transformers wraps it."""
    sys.path.append(peer)
    import shutil

    import datasets
    from transformers import PreTrainedTokenizerFast

    datasets.disable_progress_bars()
    own = PreTrainedTokenizerFast(tokenizer_file=tokenizer)
    rows = datasets.load_from_disk(str(place / "rows"))

    def encode(batch: dict[str, list[str]]) -> dict[str, Any]:
        found = own(
            batch["text"],
            add_special_tokens=False,
            truncation=True,
            max_length=512,
            return_attention_mask=False,
            return_token_type_ids=False,
        )
        return {"ids": found["input_ids"]}

    folder = place / "theirs"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    spent = turns.stopwatch()
    made = rows.map(
        encode,
        batched=True,
        remove_columns=["text"],
        num_proc=processes if processes > 1 else None,
        cache_file_name=str(folder / "ids.arrow"),
        load_from_cache_file=False,
    )
    found = spent()
    assert len(made) == len(rows)
    return found


def same(place: Path) -> bool:
    """Whether both wrote the same ids, passage by passage."""
    import datasets
    import numpy as np

    from repro.data.tokens import TokenTable

    table = TokenTable.load(place / "ours").passages
    at = 0
    for path in sorted((place / "theirs").glob("*.arrow")):  # numbered by process
        for chunk in datasets.Dataset.from_file(str(path)).data.column("ids").chunks:
            offsets = chunk.offsets.to_numpy().astype(np.int64)
            end = at + len(offsets) - 1
            mine = table.offsets[at : end + 1]
            ids = chunk.values.to_numpy()[offsets[0] : offsets[-1]]
            if not np.array_equal(mine - mine[0], offsets - offsets[0]):
                return False
            if not np.array_equal(table.ids[mine[0] : mine[-1]], ids):
                return False
            at = end
    return at == len(table)


def version(package: str) -> str:
    """The version of a package of the peer."""
    from importlib.metadata import version as of

    return of(package)


if __name__ == "__main__":
    main()
