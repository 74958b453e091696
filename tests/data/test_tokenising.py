"""Pins: shards are made once, by any number of processes, and kept when the maker is killed."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from made import collect, word_tokenizer

from repro.data import tokenising
from repro.data.collection import Collection
from repro.data.tokenising import cut, shards
from repro.data.tokens import TokenTable, write_table
from repro.errors import UserError

WORDS = [f"w{i}" for i in range(50)]


def text(i: int) -> str:
    return " ".join(WORDS[(i * 7 + j * j) % 50] for j in range(i % 60))


def many(n: int) -> Collection:
    return collect([(f"w{i % 50} {i}", f"{text(i)} {i}") for i in range(n)])


@pytest.fixture
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenising, "SHARD", 16)


@pytest.fixture
def two_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenising, "cores", lambda: 2)
    monkeypatch.setattr(tokenising, "LEAST_BYTES", 1)


def test_runs_hold_so_many_texts_and_bytes_or_one_text() -> None:
    assert cut(np.array([3, 3, 3, 3, 9, 1, 1]), 3, 6) == [(0, 2), (2, 4), (4, 5), (5, 7)]
    assert cut(np.array([0] * 7), 3, 6) == [(0, 3), (3, 6), (6, 7)]
    assert cut(np.array([], int), 3, 6) == []


@pytest.mark.usefixtures("small_shards")
def test_shards_of_any_size_give_the_same_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    collection, tokenizer = many(90), word_tokenizer([*WORDS, *map(str, range(90))])
    write_table(tmp_path / "small", collection, tokenizer)
    monkeypatch.setattr(tokenising, "BATCH_BYTES", 50)
    monkeypatch.setattr(tokenising, "SHARD_BYTES", 100)
    write_table(tmp_path / "bytes", collection, tokenizer)
    monkeypatch.undo()
    write_table(tmp_path / "one", collection, tokenizer)
    small, other, one = (TokenTable.load(tmp_path / name) for name in ("small", "bytes", "one"))
    assert small.digest == other.digest == one.digest
    assert sorted(path.name for path in (tmp_path / "small").iterdir()) == [
        "passages_ids.npy", "passages_offsets.npy", "queries_ids.npy", "queries_offsets.npy",
        "tokens.json",
    ]  # fmt: skip


@pytest.mark.usefixtures("small_shards")
def test_what_is_there_is_not_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts, tokenizer = [text(i) for i in range(90)], word_tokenizer(WORDS)
    whole = [ids.tolist() for ids, _ in shards(tmp_path / "a", texts, tokenizer, "")]
    interrupted = shards(tmp_path / "b", texts, tokenizer, "")
    for _ in range(3):
        next(interrupted)
    interrupted.close()
    there = sorted((tmp_path / "b").iterdir())
    made = []
    make = tokenising._make

    def counted(tokenizer: object, path: Path, texts: list[str]) -> None:
        made.append(path)
        make(tokenizer, path, texts)

    monkeypatch.setattr(tokenising, "_make", counted)
    again = [ids.tolist() for ids, _ in shards(tmp_path / "b", texts, tokenizer, "")]
    assert again == whole
    assert len(there) == 3
    assert len(made) == 3
    assert not set(made) & set(there)


@pytest.mark.usefixtures("small_shards", "two_processes")
def test_processes_give_the_same_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    collection, tokenizer = many(200), word_tokenizer([*WORDS, *map(str, range(200))])
    write_table(tmp_path / "several", collection, tokenizer)
    assert "tokens of the passages of small: 13 of 13 done" in capsys.readouterr().out
    monkeypatch.setattr(tokenising, "cores", lambda: 1)
    write_table(tmp_path / "one", collection, tokenizer)
    assert capsys.readouterr().out == ""
    several, one = (TokenTable.load(tmp_path / name) for name in ("several", "one"))
    assert several.digest == one.digest
    np.testing.assert_array_equal(several.passages.offsets, one.passages.offsets)


@pytest.mark.usefixtures("small_shards", "two_processes")
def test_a_worker_that_is_killed_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = tokenising.ProcessPoolExecutor.submit

    def kill_once(pool: object, *args: object) -> object:
        future = start(pool, *args)
        for process in pool._processes.values():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
        return future

    monkeypatch.setattr(tokenising.ProcessPoolExecutor, "submit", kill_once)
    with pytest.raises(UserError, match="a process that tokenises was ended") as caught:
        list(shards(tmp_path, [text(i) for i in range(90)], word_tokenizer(WORDS), ""))
    assert "finished shards are kept" in caught.value.remedy


@pytest.mark.usefixtures("small_shards", "two_processes")
def test_a_worker_that_dies_while_another_one_is_started_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts, tokenizer = [text(i) for i in range(90)], word_tokenizer(WORDS)
    for fault, told in (
        (OSError("handle is closed"), "a process that tokenises was ended"),  # by its pool
        (OSError(28, "No space left on device"), "No space left"),
    ):

        def fail(*args: object, fault: OSError = fault) -> object:
            raise fault

        monkeypatch.setattr(tokenising.ProcessPoolExecutor, "submit", fail)
        with pytest.raises((UserError, OSError), match=told):
            list(shards(tmp_path, texts, tokenizer, ""))


KILLED = """
import sys
from pathlib import Path
sys.path[:0] = sys.argv[2:]
from repro.data import tokenising
from repro.data.tokens import write_table
from test_tokenising import WORDS, many, word_tokenizer

if __name__ == "__main__":
    tokenising.SHARD, tokenising.LEAST_BYTES, tokenising.cores = 16, 1, lambda: 2
    write_table(Path(sys.argv[1]), many(3000), word_tokenizer([*WORDS, *map(str, range(3000))]))
"""


def test_a_killed_call_loses_no_finished_shard_and_leaves_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    psutil = pytest.importorskip("psutil")
    script, folder = tmp_path / "killed.py", tmp_path / "table"
    script.write_text(KILLED)
    process = subprocess.Popen(
        [sys.executable, str(script), str(folder), str(Path(__file__).parent)]
    )
    passages = folder / "shards" / "passages"
    deadline = time.time() + 240  # a busy machine takes its time
    while len(list(passages.glob("0*.npy"))) < 20 and time.time() < deadline:
        time.sleep(0.01)
    workers = psutil.Process(process.pid).children(recursive=True)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert workers
    assert not psutil.wait_procs(workers, timeout=60)[1]
    kept = {path: path.stat().st_mtime_ns for path in passages.glob("0*.npy")}
    assert 20 <= len(kept) < 188  # the premise: it was killed on its way

    collection, tokenizer = many(3000), word_tokenizer([*WORDS, *map(str, range(3000))])
    monkeypatch.setattr(tokenising, "SHARD", 16)
    used = {}
    remove = shutil.rmtree

    def remember(place: Path) -> None:
        used.update({path: path.stat().st_mtime_ns for path in place.rglob("*.npy")})
        remove(place)

    monkeypatch.setattr(shutil, "rmtree", remember)
    write_table(folder, collection, tokenizer)
    assert {path: used[path] for path in kept} == kept
    assert len(used) == 188 + 188
    write_table(tmp_path / "whole", collection, tokenizer)
    assert TokenTable.load(folder).digest == TokenTable.load(tmp_path / "whole").digest


@pytest.mark.usefixtures("small_shards")
@pytest.mark.parametrize("how", ["emptied", "cut", "a bit flipped"])
def test_a_damaged_shard_is_made_again(
    tmp_path: Path, how: str, capsys: pytest.CaptureFixture[str]
) -> None:
    tokenizer, texts = word_tokenizer(WORDS), [text(i) for i in range(90)]
    whole = [ids.tolist() for ids, _ in shards(tmp_path, texts, tokenizer, "t")]
    path = sorted(tmp_path.glob("*.npy"))[2]
    data = bytearray(path.read_bytes())
    data[-40] ^= 1  # in the last id
    path.write_bytes({"emptied": b"", "cut": bytes(data[:-9])}.get(how, bytes(data)))
    assert [ids.tolist() for ids, _ in shards(tmp_path, texts, tokenizer, "t")] == whole
    assert f"the shard {path.name} is damaged, and made again" in capsys.readouterr().out
