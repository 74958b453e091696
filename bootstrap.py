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
PROBE = "import repro, torch, transformers, papermill, pytest; print(repro.__file__)"


def main():
    """Print the path of the interpreter; every other word goes to standard error."""
    if sys.version_info < (3, 11):
        fail("Python 3.11 or newer is needed, this is " + sys.version.split()[0],
             "name one: make PYTHON=python3.12 ...")
    if active_has_project():
        print(sys.executable)
        return
    python = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not (STAMP.exists() and STAMP.read_text() == stamp() and python.exists()):
        make(python)
    print(python)


def active_has_project():
    """Whether the running interpreter imports this very checkout and what it needs."""
    found = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, cwd="/")
    return found.returncode == 0 and pathlib.Path(found.stdout.strip()).is_relative_to(ROOT)


def make(python):
    """Make .venv and install the pinned packages and the project into it."""
    say("setting up .venv (once; a few minutes, mostly downloads)")
    if VENV.exists():
        shutil.rmtree(VENV)
    made = subprocess.run([sys.executable, "-m", "venv", str(VENV)], capture_output=True, text=True)
    pip = [str(python), "-m", "pip"]
    if made.returncode != 0:  # Debian without python3-venv: no ensurepip, but perhaps a pip
        shutil.rmtree(VENV, ignore_errors=True)
        bare = subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(VENV)], text=True)
        if bare.returncode != 0:
            fail("cannot make a virtual environment", "install the venv module (python3-venv)")
        pip = [sys.executable, "-m", "pip", "--python", str(python)]
    install = [*pip, "install", "--quiet", "--disable-pip-version-check"]
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
    parts += [sys.version.encode(), os.environ.get("TORCH", "").encode()]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def say(text):
    print(text, file=sys.stderr, flush=True)


def fail(what, remedy):
    say("setup: " + what + "\n  remedy: " + remedy)
    sys.exit(2)


if __name__ == "__main__":
    main()
