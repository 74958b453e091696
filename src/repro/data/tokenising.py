"""Tokenising: shard after shard, each kept as it is made, by several processes where that pays.

    <folder>/<from>-<to>.npy      int32: the number of ids of each of these texts, then their ids;
                                  behind the array the sha256 of what stands before

An interrupted call goes on after the shards that are there; a damaged one is made again.  Each
process holds a few shards of texts (`SHARD_BYTES` at most, or one text) and of ids, however many
texts there are.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import chain
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from repro.data.column import lengths
from repro.files import write_bytes
from repro.process import cores, serve_parent
from repro.progress import Progress

BATCH = 2048  # texts tokenised at once at most, and so many
BATCH_BYTES = 1 << 20  # bytes (or one text): tokenised, a text takes 30 times its size
SHARD = 8192  # texts in a shard at most, and so many
SHARD_BYTES = 1 << 22  # bytes (or one text)
AHEAD = 2  # shards for each process that wait or are in the making
MOST_PROCESSES = 8  # about 100 MB each
CLOSED = "handle is closed"  # a pool says so where a worker dies while another one is started
SEAL = 32  # bytes of a sha256
LEAST_BYTES = 1 << 24  # of text for each process: below, starting it takes longer than its work


def shards(
    folder: Path, texts: Sequence[str], tokenizer: Tokenizer, title: str
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(ids int32, lengths int32) of one run of texts after another, under the tokenizer's truncation.

    What is made lies in `folder` until the caller removes it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    size = lengths(texts)
    runs = cut(size, SHARD, SHARD_BYTES)
    paths = {run: folder / f"{run[0]:010d}-{run[1]:010d}.npy" for run in runs}
    missing = [run for run in runs if not paths[run].exists()]
    n_bytes = int(sum(size[start:end].sum() for start, end in missing))
    with _maker(tokenizer, n_bytes) as (make, window):
        progress = Progress(title, dict.fromkeys(missing, 1.0)) if window > 1 else None
        ahead, making = iter(missing), dict[tuple[int, int], Callable[[], None]]()
        for run in runs:
            while len(making) < window and (following := next(ahead, None)):
                making[following] = make(paths[following], list(texts[slice(*following)]))
            if run in making:
                making.pop(run)()
                if progress:
                    progress.end(run)
                    progress.show()
            values = _read(paths[run])
            if values is None:
                print(
                    f"{title}: the shard {paths[run].name} is damaged, and made again", flush=True
                )
                _make(tokenizer, paths[run], list(texts[slice(*run)]))
                values = _read(paths[run])
                assert values is not None
            yield values[run[1] - run[0] :], values[: run[1] - run[0]]
        if progress:
            progress.close()


def encode(tokenizer: Tokenizer, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """(ids int32, lengths int32) of `texts` without special tokens, under the tokenizer's truncation."""
    ids, length = [np.empty(0, np.int32)], [np.empty(0, np.int32)]
    for start, end in cut(lengths(texts), BATCH, BATCH_BYTES):
        batch = tokenizer.encode_batch_fast(list(texts[start:end]), add_special_tokens=False)
        rows = [one.ids for one in batch]
        length.append(np.array([len(row) for row in rows], np.int32))
        ids.append(np.fromiter(chain.from_iterable(rows), np.int32, int(length[-1].sum())))
    return np.concatenate(ids), np.concatenate(length)


def cut(size: np.ndarray, most: int, most_bytes: int) -> list[tuple[int, int]]:
    """Runs (start, end) of texts of these sizes: at most so many, and so many bytes or one text."""
    total = np.concatenate([[0], np.cumsum(size)])
    runs, start = [], 0
    while start < len(size):
        end = int(np.searchsorted(total, total[start] + most_bytes, side="right")) - 1
        end = min(max(end, start + 1), start + most, len(size))
        runs.append((start, end))
        start = end
    return runs


@contextlib.contextmanager
def _maker(
    tokenizer: Tokenizer, n_bytes: int
) -> Iterator[tuple[Callable[[Path, list[str]], Callable[[], None]], int]]:
    """What starts a shard and gives what waits for it; and how many may be started at once."""
    n = min(cores(), MOST_PROCESSES, n_bytes // LEAST_BYTES)
    if n < 2 or multiprocessing.current_process().daemon:  # a worker may not have workers
        yield lambda path, texts: lambda: _make(tokenizer, path, texts), 1
        return
    pool = ProcessPoolExecutor(
        n, multiprocessing.get_context("spawn"), _start, (tokenizer.to_str(),)
    )

    def make(path: Path, texts: list[str]) -> Callable[[], None]:
        with _told():
            future: Future[None] = pool.submit(_made, path, texts)
        return lambda: _wait(future)

    try:
        yield make, AHEAD * n
    except BaseException:
        # A worker that was being started when another one died is not ended by the pool, which would
        # wait for it for ever.
        for process in list((pool._processes or {}).values()):
            process.kill()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _wait(future: Future[None]) -> None:
    with _told():
        future.result()


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """A worker that was ended from outside is a `UserError`."""
    try:
        yield
    except (BrokenProcessPool, OSError) as fault:
        if isinstance(fault, OSError) and str(fault) != CLOSED:
            raise
        from repro.errors import UserError  # here, because workers need not have it

        raise UserError(
            "a process that tokenises was ended from outside",
            remedy="see whether memory ran out, then call again: finished shards are kept",
        ) from None


_own: Tokenizer | None = None  # of a worker process


def _start(tokenizer: str) -> None:
    global _own
    serve_parent()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # one thread
    _own = Tokenizer.from_str(tokenizer)


def _made(path: Path, texts: list[str]) -> None:
    assert _own is not None
    _make(_own, path, texts)


def _make(tokenizer: Tokenizer, path: Path, texts: list[str]) -> None:
    ids, length = encode(tokenizer, texts)
    data = io.BytesIO()
    np.save(data, np.concatenate([length, ids]), allow_pickle=False)
    write_bytes(path, data.getvalue() + hashlib.sha256(data.getvalue()).digest())


def _read(path: Path) -> np.ndarray | None:
    """The array of a shard; None where it does not match its digest, or is gone."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    if hashlib.sha256(data[:-SEAL]).digest() != data[-SEAL:]:
        return None
    values: np.ndarray = np.load(io.BytesIO(data), allow_pickle=False)
    return values
