"""One line that says how far a sweep is: done, running, rate, time left.

In a terminal the line is renewed every second; elsewhere a plain line comes every thirty.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Hashable, Mapping
from typing import Any, TextIO

TERMINAL_SECONDS = 1.0
PLAIN_SECONDS = 30.0


class Progress:
    """Counts work by its estimated cost, so that a long run weighs more than a short one."""

    def __init__(
        self,
        title: str,
        costs: Mapping[Any, float],
        stream: TextIO | None = None,
    ) -> None:
        self.title = title
        self.costs: dict[Hashable, float] = dict(costs)
        self.stream = stream or sys.stdout
        self.live = self.stream.isatty()
        self.began = self.shown = time.monotonic()
        self.done: set[Hashable] = set()
        self.running: dict[Hashable, tuple[str, float, str]] = {}

    def start(self, where: Hashable, label: str) -> None:
        """A task has been taken, perhaps once more."""
        self.done.discard(where)
        self.running[where] = (label, 0.0, "")

    def share(self, where: Hashable, *, done: float, note: str = "") -> None:
        """The share of a running task that is done (0 to 1), and a word on it."""
        if where in self.running:
            self.running[where] = (self.running[where][0], min(done, 1.0), note)

    def end(self, where: Hashable) -> None:
        """A task has ended, well or not."""
        self.running.pop(where, None)
        self.done.add(where)

    def say(self, text: str) -> None:
        """A line of its own, above the live one."""
        self._write(text + "\n")

    def show(self) -> None:
        """Renew the line when it is due."""
        now = time.monotonic()
        if now - self.shown >= (TERMINAL_SECONDS if self.live else PLAIN_SECONDS):
            self.shown = now
            self._write(self.line(now - self.began) + ("" if self.live else "\n"))

    def close(self) -> None:
        """The last line."""
        self._write(self.line(time.monotonic() - self.began) + "\n")

    def line(self, seconds: float) -> str:
        """The line after so many seconds."""
        total = sum(self.costs.values()) or 1.0
        ready = sum(self.costs.get(where, 0.0) for where in self.done)
        ready += sum(
            self.costs.get(where, 0.0) * share for where, (_, share, _) in self.running.items()
        )
        parts = [f"{self.title}: {len(self.done)} of {len(self.costs)} done"]
        if self.running:
            labels = [f"{label} {note}".strip() for label, _, note in self.running.values()]
            parts.append(f"running {', '.join(labels[:3])}" + (" ..." if len(labels) > 3 else ""))
        if len(self.done) == len(self.costs):
            return ", ".join([*parts, f"{seconds:.0f} s"])
        if self.done:
            parts.append(f"{60 * len(self.done) / max(seconds, 1e-9):.1f} a minute")
        if ready > 0 and seconds > 2:
            parts.append(f"about {clock(max(0.0, seconds * (total - ready) / ready))} left")
        return ", ".join(parts)

    def _write(self, text: str) -> None:
        self.stream.write((f"\r\x1b[K{text}") if self.live else text)
        self.stream.flush()


def clock(seconds: float) -> str:
    """A duration for people: 40 s, 12 min, 3.5 h."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
