"""Find or make the Python environment of this checkout; print its interpreter.  Standard library only.

    python bootstrap.py [site] [browser] [lab]      each brings the packages of requirements-NAME.lock too

The active interpreter is used where it already has the project with all that training needs; nothing
is ever installed into it.  Else a .venv is made beside this file from requirements.lock, once.
TORCH=cpu asks for the CPU build of PyTorch where the default one is built for CUDA.
"""

import contextlib
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

ROOT = pathlib.Path(__file__).resolve().parent
VENV = ROOT / ".venv"
STAMP = VENV / "repro-stamp"
MAKING = ROOT / ".venv.made-here"  # there while a .venv of ours has no stamp yet
CPU_WHEELS = "https://download.pytorch.org/whl/cpu"
MORE = {
    "site": ("sphinx", "myst_nb", "furo"),
    "browser": ("playwright", "axe_playwright_python"),
    "lab": ("jupyterlab",),
}  # what the further locks bring
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
    asked = sys.argv[1:]
    if set(asked) - set(MORE):
        fail("there is no lock " + " ".join(asked), "name some of: " + " ".join(MORE))
    if has_project(sys.executable):
        for name in asked:
            require(sys.executable, name)
        print(sys.executable)
        return
    if not finished(python):
        with alone():  # another call may have made it when we come in
            if VENV.exists() and not STAMP.exists() and not MAKING.exists():  # not made here
                if not (python.exists() and has_project(python)):
                    fail(
                        ".venv was not made by this script, and lacks the project or its packages",
                        "activate and complete it, or move it away",
                    )
            elif not finished(python):
                make(python)
    for name in asked:
        if not STAMP.exists():
            require(python, name)
        else:
            with alone():
                bring(python, name)
    print(python)


def finished(python):
    """Whether .venv is there, whole, and made from the files as they are now."""
    return python.exists() and STAMP.exists() and STAMP.read_text() == stamp()


@contextlib.contextmanager
def alone():
    """Hold the lock on making .venv; whoever comes meanwhile waits.  It ends with its process."""
    with open(str(VENV) + ".lock", "a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another call sets up .venv: waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        except (OSError, AttributeError):  # a file system, or a system, without such locks
            pass
        yield


def has_project(python):
    """Whether an interpreter imports this very checkout and what it needs."""
    found = subprocess.run([str(python), "-c", PROBE], capture_output=True, text=True, cwd="/")
    place = found.stdout.strip()
    return bool(place) and pathlib.Path(place).is_relative_to(ROOT)


def require(python, name):
    """Refuse an environment that is not ours to install into and lacks the packages of a lock."""
    code = (
        "from importlib.util import find_spec; print(all(map(find_spec, " + repr(MORE[name]) + ")))"
    )
    found = subprocess.run([str(python), "-c", code], capture_output=True, text=True, cwd="/")
    if found.stdout.strip() != "True":
        fail(
            str(python) + " has the project, but lacks some of " + " ".join(MORE[name]),
            "pip install -r requirements-" + name + ".lock",
        )


def bring(python, name):
    """Install the packages of requirements-NAME.lock into .venv, once."""
    lock = ROOT / ("requirements-" + name + ".lock")
    kept, now = STAMP.with_name("repro-stamp-" + name), lock.read_text() + stamp()
    if not kept.exists() or kept.read_text() != now:
        say("bringing the packages of " + lock.name + " (once)")
        install(pip_of(python), "--no-deps", "-r", str(lock))
        kept.write_text(now)


def make(python):
    """Make or renew .venv: the pinned packages, and the project in place."""
    say("setting up .venv (once; a few minutes, mostly downloads)")
    if not STAMP.exists() or STAMP.read_text().split()[-1] != sys.version.split()[0]:
        shutil.rmtree(VENV, ignore_errors=True)
        MAKING.touch()
        made = subprocess.run([sys.executable, "-m", "venv", str(VENV)], capture_output=True)
        if made.returncode != 0:  # Debian without python3-venv: no ensurepip, but perhaps a pip
            shutil.rmtree(VENV, ignore_errors=True)
            bare = subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(VENV)])
            if bare.returncode != 0:
                fail("cannot make a virtual environment", "install the venv module (python3-venv)")
    STAMP.write_text("unfinished " + sys.version.split()[0])
    extra = ["--extra-index-url", CPU_WHEELS] if os.environ.get("TORCH") == "cpu" else []
    pip = pip_of(python)
    install(pip, *extra, "-r", str(ROOT / "requirements.lock"))
    install(pip, "--no-deps", "--no-build-isolation", "-e", str(ROOT))
    STAMP.write_text(stamp())
    MAKING.unlink(missing_ok=True)


def pip_of(python):
    """The command that is pip for .venv: its own, or (made without ensurepip) this interpreter's."""
    own = subprocess.run([str(python), "-m", "pip", "--version"], capture_output=True)
    there = [] if own.returncode == 0 else ["--python", str(python)]
    return [str(sys.executable if there else python), "-m", "pip", *there]


def install(pip, *arguments):
    command = [*pip, "install", "-qq", "--disable-pip-version-check", *arguments]
    if subprocess.run(command, stdout=sys.stderr).returncode != 0:
        fail("pip could not install the packages (its words are above)", "mend that, run again")


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
