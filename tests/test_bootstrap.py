"""Two calls on a fresh checkout make one .venv; a call that was killed is made good by the next."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from repro.places import ROOT

# A stand-in for `python -m venv` and pip: slow, and it tells each time it is called.
VENV = r"""
import pathlib, sys, time
target = pathlib.Path(sys.argv[-1])
(target / "bin").mkdir(parents=True)
time.sleep(1.0)
pip = "#!/bin/sh\nsleep 0.5\necho $3 $7 $8 >> " + str(target.parent / "calls") + "\n"
(target / "bin" / "python").write_text(pip)
(target / "bin" / "python").chmod(0o755)
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with nothing but the script, whose `venv` is a stand-in."""
    folder = tmp_path / "checkout"
    (folder / "stand-in").mkdir(parents=True)
    for name in ("bootstrap.py", "requirements.lock", "requirements-site.lock", "pyproject.toml"):
        shutil.copy(ROOT / name, folder / name)
    (folder / "stand-in" / "venv.py").write_text(VENV)
    return folder


def call(checkout: Path, *more: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(checkout / "stand-in")}
    return subprocess.Popen(
        [sys.executable, "bootstrap.py", *more], cwd=checkout, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def test_two_calls_at_once_make_one_environment(checkout: Path) -> None:
    ended = [each.communicate(timeout=120) for each in [call(checkout), call(checkout)]]
    assert [out.strip() for out, _ in ended] == [str(checkout / ".venv" / "bin" / "python")] * 2
    said = sorted(err.splitlines()[0] for _, err in ended)
    assert said[0] == "another call sets up .venv: waiting for it"
    assert said[1].startswith("setting up .venv")
    calls = (checkout / "calls").read_text().split()
    assert calls.count("install") == 2  # the packages, and the project


def test_one_that_was_killed_half_way_is_made_good(checkout: Path) -> None:
    process = call(checkout)
    while not (checkout / ".venv").exists():
        assert process.poll() is None
    process.kill()
    process.communicate()
    out, err = call(checkout).communicate(timeout=120)
    assert out.strip() == str(checkout / ".venv" / "bin" / "python"), err
    assert (checkout / ".venv" / "repro-stamp").exists()


def test_a_further_lock_is_brought_once_and_again_when_it_changes(checkout: Path) -> None:
    lock = checkout / "requirements-site.lock"
    for expected in (1, 1, 2):
        out, err = call(checkout, "site").communicate(timeout=120)
        assert out.strip() == str(checkout / ".venv" / "bin" / "python"), err
        assert (checkout / "calls").read_text().count("requirements-site.lock") == expected
        if "bringing" not in err:
            lock.write_text(lock.read_text() + "# changed\n")


def test_a_lock_that_there_is_not_is_refused(checkout: Path) -> None:
    process = call(checkout, "sites")
    _, err = process.communicate(timeout=120)
    assert process.returncode == 2
    assert err == "setup: there is no lock sites\n  remedy: name some of: site browser lab\n"
    assert not (checkout / ".venv").exists()
