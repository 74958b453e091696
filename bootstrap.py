"""Find or make the Python environment of this checkout; print its interpreter.  Standard library only.

The active interpreter is used where it already has the project with all that training needs; nothing
is ever installed into it.  Else a .venv is made beside this file from requirements.lock, once.
TORCH=cpu asks for the CPU build of PyTorch where the default one is built for CUDA.
"""

import hashlib
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent
VENV = ROOT / ".venv"
STAMP = VENV / "repro-stamp"
CPU_WHEELS = "https://download.pytorch.org/whl/cpu"
PROBE = """
from importlib.util import find_spec
import repro
if all(map(find_spec, ("torch", "transformers", "papermill", "pytest"))):
    print(repro.__file__)
"""


def main():
    """Print the path of the interpreter; every other word goes to standard error."""
    if sys.version_info < (3, 11):  # noqa: UP036 (this runs before any requirement is checked)
        fail(
            "Python 3.11 or newer is needed, this is " + sys.version.split()[0],
            "name one: make PYTHON=python3.12 ...",
        )
    python = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if has_project(sys.executable):
        print(sys.executable)
        return
    if VENV.exists() and not STAMP.exists():  # not made here
        if not (python.exists() and has_project(python)):
            fail(
                ".venv was not made by this script, and lacks the project or its packages",
                "activate and complete it, or move it away",
            )
    elif not (python.exists() and STAMP.exists() and STAMP.read_text() == stamp()):
        make(python)
    print(python)


def has_project(python):
    """Whether an interpreter imports this very checkout and what it needs."""
    found = subprocess.run([str(python), "-c", PROBE], capture_output=True, text=True, cwd="/")
    place = found.stdout.strip()
    return bool(place) and pathlib.Path(place).is_relative_to(ROOT)


def make(python):
    """Make or renew .venv: the pinned packages, and the project in place."""
    say("setting up .venv (once; a few minutes, mostly downloads)")
    pip = [str(python), "-m", "pip"]
    if not STAMP.exists() or STAMP.read_text().split()[-1] != sys.version.split()[0]:
        shutil.rmtree(VENV, ignore_errors=True)
        made = subprocess.run([sys.executable, "-m", "venv", str(VENV)], capture_output=True)
        if made.returncode != 0:  # Debian without python3-venv: no ensurepip, but perhaps a pip
            shutil.rmtree(VENV, ignore_errors=True)
            bare = subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(VENV)])
            if bare.returncode != 0:
                fail("cannot make a virtual environment", "install the venv module (python3-venv)")
            pip = [sys.executable, "-m", "pip", "--python", str(python)]
    STAMP.write_text("unfinished " + sys.version.split()[0])
    install = [*pip, "install", "-qq", "--disable-pip-version-check"]
    extra = ["--extra-index-url", CPU_WHEELS] if os.environ.get("TORCH") == "cpu" else []
    for arguments in (
        [*extra, "-r", str(ROOT / "requirements.lock")],
        ["--no-deps", "--no-build-isolation", "-e", str(ROOT)],
    ):
        done = subprocess.run([*install, *arguments], stdout=sys.stderr)
        if done.returncode != 0:
            fail("pip could not install the packages (its words are above)", "mend that, run again")
    STAMP.write_text(stamp())


def stamp():
    """What the environment is made from: the lock, the project's metadata, the Python version."""
    parts = [(ROOT / name).read_bytes() for name in ("requirements.lock", "pyproject.toml")]
    parts.append(os.environ.get("TORCH", "").encode())
    return hashlib.sha256(b"\0".join(parts)).hexdigest() + " " + sys.version.split()[0]


def say(text):
    print(text, file=sys.stderr, flush=True)


def fail(what, remedy):
    say("setup: " + what + "\n  remedy: " + remedy)
    sys.exit(2)


if __name__ == "__main__":
    main()
