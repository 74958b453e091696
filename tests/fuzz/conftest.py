"""The fuzz tests' option, the folder in which they write, and the table of what a large run did."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from fuzz.harness import MORE, SMALL, Fuzz

OPTION = "--fuzz-examples"
_done: list[str] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(OPTION, type=int, default=0, help=f"inputs per reader (default: {SMALL})")


@pytest.fixture(params=[SMALL, pytest.param(MORE, marks=pytest.mark.slow)], ids=["few", "more"])
def fuzz(request: pytest.FixtureRequest) -> Iterator[Fuzz]:
    """Runs a check over many inputs, in a folder in memory where there is one."""
    memory = Path("/dev/shm")
    asked = request.config.getoption(OPTION, 0)
    if asked and request.param == MORE:
        pytest.skip(f"{OPTION} says how many: once is enough")
    inputs = asked or request.param
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Fuzz(request.node.name, Path(folder), inputs, _done)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in _done:
        terminalreporter.write_line(line)
