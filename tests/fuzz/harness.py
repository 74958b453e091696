"""Feeds one reader many inputs: each is read right or refused clearly, in no time, and memory stays.

The inputs come from hypothesis, several at once (it takes longer for one than most readers do), in
rounds: each has a seed of its own and is forgotten, so that what hypothesis remembers does not count
as growth, and the same inputs come every time.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import gc
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from repro.errors import UserError

SMALL = 250  # inputs per reader in `make test`
MORE = 3000  # in the slow tests
LEAST = 150  # for a part of a reader
AT_ONCE = 25  # inputs in one of hypothesis' examples
ROUND = 40  # examples under one seed
MOST_SECONDS = 5.0  # for one input, on a busy machine
MOST_GROWTH = 24 * 2**20  # bytes, from the first quarter of a large run to its end

REFUSED = object()
Check = Callable[[Any], bool]  # True: read, and right; False: refused


@dataclass
class Fuzz:
    """One test's inputs: how many, and the folder that its files lie in."""

    name: str
    folder: Path
    inputs: int
    done: list[str]

    def __call__(self, inputs: st.SearchStrategy[Any], check: Check, *, share: float = 1) -> None:
        """Run `check` on that share of the inputs; fails unless some are read and some are refused."""
        found: Counter[bool] = Counter()
        wanted, at_first, slowest = max(LEAST, int(self.inputs * share)), 0, 0.0
        began, busy = time.monotonic(), time.process_time()

        def all_of(given_inputs: list[Any]) -> None:
            nonlocal slowest
            for each in given_inputs:
                started = time.monotonic()
                try:
                    with _alarm(MOST_SECONDS):
                        found[check(each)] += 1
                except BaseException as error:
                    error.add_note(f"the input: {each!r:.3000}")
                    raise
                slowest = max(slowest, time.monotonic() - started)

        examples = -(-wanted // AT_ONCE)
        rounds = -(-examples // ROUND)
        for number in range(rounds):
            if number == max(1, rounds // 4):
                at_first = _resident()
            _round(inputs, all_of, min(ROUND, examples), number)
        grown = _resident() - at_first if at_first else 0
        self.done.append(
            f"{self.name}: {found.total():,} inputs, {found[True]:,} read, {found[False]:,} refused, "
            f"{time.monotonic() - began:.0f} s ({time.process_time() - busy:.0f} s of CPU), "
            f"slowest {slowest * 1000:.0f} ms, "
            f"memory {grown / 2**20:+.1f} MiB"
        )
        print(self.done[-1], flush=True)  # `-s` shows it at once
        assert found[True] > 0
        assert found[False] > 0
        assert grown < MOST_GROWTH, self.done[-1]


def attempt(call: Callable[[], Any], *places: Path | str) -> Any:
    """What `call` gives, or `REFUSED` where it raises a clear `UserError`."""
    try:
        return call()
    except UserError as error:
        refusal = error
    check_clear(refusal, *places)
    return REFUSED


def check_clear(error: UserError, *places: Path | str) -> None:
    """Asserts that an error can be shown, has a remedy, and names one of the `places` if any are given."""
    told = str(error)
    told.encode()
    assert error.what.strip()
    assert "remedy: " in told
    assert len(told) < 8000
    assert told.replace("\n", "").isprintable(), "control characters reach the terminal"
    assert not places or any(str(place) in told for place in places)


def _round(
    inputs: st.SearchStrategy[Any], all_of: Callable[[Any], None], n: int, number: int
) -> None:
    quiet = settings(
        max_examples=n,
        database=None,
        deadline=None,
        phases=[Phase.generate],  # the input at fault is told by itself: nothing to shrink
        suppress_health_check=list(HealthCheck),
    )
    several = st.lists(inputs, min_size=AT_ONCE, max_size=AT_ONCE)
    seed(number)(quiet(given(several)(all_of)))()


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """A hang becomes a failure (of this process's main thread)."""

    def ring(*_: object) -> None:
        raise TimeoutError(f"an input took more than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _resident() -> int:
    """Bytes of this process in memory, freed ones given back first."""
    gc.collect()
    name = ctypes.util.find_library("c")
    if name and hasattr(libc := ctypes.CDLL(name), "malloc_trim"):
        libc.malloc_trim(0)
    with open("/proc/self/statm", encoding="utf-8") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")
