"""One round: a home with a store, two parents with their workers on it, and what was done to them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import IO, Any

import psutil

from repro.places import ROOT
from repro.store import Store
from repro.work.plans import Place
from torture import faults

PATIENCE = 1800.0  # seconds that an undisturbed parent may take before it counts as hung
END_SECONDS = 25.0  # that workers have to follow their parent


@dataclass
class Parent:
    """A process that sweeps, and why it is expected to end badly."""

    process: subprocess.Popen[bytes]
    log: Path
    injected: dict[str, int]
    ended_by: int = 0


@dataclass
class Scene:
    """A store and the processes on it."""

    profile: Path
    home: Path
    places: list[Place]  # of the results of the whole sweep
    own_disk: bool = False
    parents: list[Parent] = field(default_factory=list)
    harmed: list[str] = field(default_factory=list)  # kind/key, once for each damage
    done: list[tuple[float, str, str]] = field(default_factory=list)  # seconds, fault, in words
    faults: list[str] = field(default_factory=list)
    restarts: int = 0
    began: float = field(default_factory=time.monotonic)

    @property
    def store(self) -> Store:
        """The store, of which nothing is remembered."""
        return Store(self.home / "runs")

    def environment(self, injected: dict[str, int] | None = None) -> dict[str, str]:
        """Where results go, and what is injected."""
        told = {"hasty": True, "made": str(self.made), **(injected or {})}
        paths = os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")])
        more = {"REPRO_HOME": str(self.home), "TORTURE": json.dumps(told), "PYTHONPATH": paths}
        return {**os.environ, **more, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}

    @property
    def made(self) -> Path:
        """The file that names each result that was published; beside the store, on another disk."""
        return self.home.with_suffix(".made")

    def start(self, injected: dict[str, int]) -> None:
        """One more parent."""
        log = self.home.with_suffix(f".{len(self.parents)}.log")
        with log.open("wb") as file:
            self.parents.append(Parent(self._parent(file, injected), log, injected))

    def once(self) -> subprocess.CompletedProcess[str]:
        """A parent of its own, waited for."""
        return subprocess.run(
            self._command, env=self.environment(), cwd=ROOT, text=True, capture_output=True,
            timeout=PATIENCE,
        )  # fmt: skip

    def workers(self) -> list[psutil.Process]:
        """The worker processes of all parents."""
        found: list[psutil.Process] = []
        for parent in self.parents:
            try:
                for child in psutil.Process(parent.process.pid).children():
                    found += [child] if "spawn_main" in " ".join(child.cmdline()) else []
            except psutil.Error:
                continue
        return found

    def act(self, name: str, random: Random) -> None:
        """Do one thing to it, and note it."""
        if words := faults.FAULTS[name][0](self, random):
            self.done.append((time.monotonic() - self.began, name, words))

    def tend(self, random: Random, n: int) -> None:
        """See how parents ended, and start others until there are `n` again."""
        for parent in list(self.parents):
            if parent.process.poll() is not None and parent.log.exists():
                self.look(parent)
        running = sum(parent.process.poll() is None for parent in self.parents)
        for _ in range(n - running):
            injected = faults.injections(random)
            self.restarts += len(self.parents) >= n
            self.start(injected)
            if injected:
                name = f"inject {next(iter(injected))}"
                self.done.append((time.monotonic() - self.began, name, str(injected)))

    def look(self, parent: Parent) -> None:
        """Whether an ended parent said what was wrong, in words."""
        code, said = parent.process.returncode, parent.log.read_text("utf-8", "replace")
        parent.log.unlink()
        # Of a map whose file is cut short the system ends a process by SIGBUS (7), without a word.
        expected = {0, 1, 2, -7, {2: 130, 15: 143}.get(parent.ended_by, -parent.ended_by)}
        expected |= {-parent.ended_by}  # before it had set its handlers
        if "memory_mb" in parent.injected:  # a library in Rust that gets no memory aborts (6)
            expected |= {-6} if "memory allocation of " in said else set()
        lines = said.strip().splitlines()
        if "Traceback (most recent call last)" in said and code not in (-2, -15):
            self.faults.append(
                f"a parent under {parent.injected} shows a traceback: {said[-1500:]}"
            )
        elif code not in expected:
            self.faults.append(f"a parent ended with {code}: {said[-500:]}")
        elif code in (1, 2) and not any(w in said for w in ("missing: ", "remedy: ", "sweep: ")):
            self.faults.append(f"a parent ended with {code} and said not why: {lines[-3:]}")

    def end_all(self) -> None:
        """Kill the parents; their workers are to follow by themselves."""
        workers = self.workers()
        for parent in self.parents:
            if parent.process.poll() is None:
                parent.ended_by = 9
                parent.process.kill()
                parent.process.wait()
        _, alive = psutil.wait_procs(workers, timeout=END_SECONDS)
        for each in alive:
            self.faults.append(f"worker {each.pid} outlived its parent by {END_SECONDS:.0f} s")
            each.kill()

    @property
    def _command(self) -> list[str]:
        return [sys.executable, "-m", "torture.parent", str(self.profile)]

    def _parent(self, log: IO[Any], injected: dict[str, int]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self._command, env=self.environment(injected), cwd=ROOT, stdout=log, stderr=log,
            start_new_session=True,
        )  # fmt: skip
