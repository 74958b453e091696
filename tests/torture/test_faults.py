"""One fault at a time, with real processes: what the user is told, and the same numbers afterwards."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import nbformat
import psutil
import pytest

from repro.app import reproduce
from repro.app.study import Study
from repro.places import ROOT
from repro.store import Store
from tiny import environment, results
from torture import faults

pytestmark = pytest.mark.slow
WAIT = 900  # seconds until something hangs: a busy machine is slow


@pytest.fixture(scope="module")
def undisturbed(study: Study) -> dict[str, str]:
    assert study.sweep() == {}
    return results(study.store.root)


def sweep(study: Study, **injected: int) -> subprocess.Popen[str]:
    """A parent with its workers on the store of `study`, under what is injected into them."""
    home = study.store.root.parent
    more = {"REPRO_HOME": str(home), "TORTURE": json.dumps(injected), "PYTHONUNBUFFERED": "1"}
    return subprocess.Popen(
        [sys.executable, "-m", "torture.parent", str(study.profile_file)], cwd=ROOT, text=True,
        env={**environment(), **more}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        preexec_fn=listening,
    )  # fmt: skip


def listening() -> None:
    """What is started in the background ignores Ctrl-C, and so does all that it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def notebook(*cells: str) -> nbformat.NotebookNode:
    """A notebook of Python, its parameters in the first cell."""
    made = nbformat.v4.new_notebook()
    made.metadata["kernelspec"] = {"name": "repro", "display_name": "repro", "language": "python"}
    made.cells = [nbformat.v4.new_code_cell(cell) for cell in ('profile = "x"', *cells)]
    made.cells[0].metadata["tags"] = ["parameters"]
    return made


def until(process: subprocess.Popen[str], true: Callable[[], object]) -> None:
    """Wait for it; the process must be running then."""
    deadline = time.monotonic() + WAIT
    while not true():
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline
        time.sleep(0.01)


def ends(process: subprocess.Popen[str], code: int, *words: str) -> None:
    said = process.communicate(timeout=WAIT)[0]
    assert process.returncode == code, said
    assert "Traceback" not in said
    for each in words:
        assert each in said, said


def given_up(process: subprocess.Popen[str]) -> str:
    """What a parent said that could not finish: in words, without a traceback."""
    said = process.communicate(timeout=WAIT)[0]
    assert process.returncode in (1, 2), said
    assert "Traceback" not in said
    return said


def whole(study: Study, undisturbed: dict[str, str]) -> None:
    """Left alone, the sweep ends with the numbers of the undisturbed one."""
    ends(sweep(study), 0)
    assert results(study.store.root) == undisturbed
    assert not list(study.store.root.glob("*/.work/*"))


def test_memory_that_runs_out_is_told_and_costs_no_number(
    fresh: Study, undisturbed: dict[str, str]
) -> None:
    fresh.planned()
    said = given_up(sweep(fresh, memory_mb=1))
    # whichever lacked memory first: data, a thread, or a worker while it began
    assert "execute.workers" in said or "workers end before they take a task" in said, said
    whole(fresh, undisturbed)


def test_a_limit_of_file_size_is_told_and_leaves_nothing_half(
    fresh: Study, undisturbed: dict[str, str]
) -> None:
    fresh.planned()
    said = given_up(sweep(fresh, file_kb=20))
    assert "raise `ulimit -f`" in said
    assert not list(fresh.store.root.glob("train/*/manifest.json"))
    whole(fresh, undisturbed)


@pytest.fixture
def disk(fresh: Study) -> Iterator[Path]:
    """The home of `fresh` on a small disk of its own."""
    home = fresh.store.root.parent
    if not faults.mount(home):
        pytest.skip("only root may mount a disk: the limit of file size stands in for it")
    yield home
    faults.unmount(home)


def test_a_full_disk_is_told_and_leaves_nothing_half(
    fresh: Study, undisturbed: dict[str, str], disk: Path
) -> None:
    fresh.planned()
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while file.write(bytes(1 << 16)):
                pass
        except OSError:
            file.truncate(file.tell() - (48 << 10))  # so much that leases can be written
    said = given_up(sweep(fresh))
    assert "the disk is full: make room" in said or "No space left on device" in said
    assert not list(fresh.store.root.glob("train/*/manifest.json"))
    ballast.unlink()
    whole(fresh, undisturbed)


def test_a_read_only_store_is_refused_before_anything_runs(fresh: Study, disk: Path) -> None:
    fresh.planned()
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    ends(sweep(fresh), 2, f"{disk}: cannot write there: Read-only file system", "REPRO_HOME")


@pytest.mark.parametrize("stage", ["start", "data", "training"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopped_at_any_stage_it_says_so_and_goes_on(
    fresh: Study, undisturbed: dict[str, str], stage: str, number: int
) -> None:
    begun = {"start": "", "data": "collection/.work/*", "training": "train/.work/*/last.*"}[stage]
    if stage == "training":
        fresh.planned()
    process = sweep(fresh, clock=0)
    if begun:
        until(process, lambda: list(fresh.store.root.glob(begun)))
    else:
        until(
            process, lambda: len(psutil.Process(process.pid).threads()) > 1
        )  # libraries are loaded
    process.send_signal(number)
    said = process.communicate(timeout=WAIT)[0]
    assert process.returncode in ({2: 130, 15: 143}[number], -number), said
    if process.returncode > 0:
        assert "stopped; the same command goes on from here" in said
    if stage == "training":
        whole(fresh, undisturbed)


def test_workers_of_a_killed_parent_leave_no_traceback_and_no_failure(fresh: Study) -> None:
    fresh.planned()
    process = sweep(fresh)
    until(process, lambda: list(fresh.store.root.glob("train/.work/*/last.*")))
    workers = psutil.Process(process.pid).children()
    process.kill()
    said = process.communicate(timeout=WAIT)[0]  # ends when the last of the workers has
    assert "Traceback" not in said
    assert "BrokenPipe" not in said
    assert not psutil.wait_procs(workers, timeout=20)[1]
    assert not list(fresh.store.root.glob("*/.failed/*"))


HARMS = {
    "emptied": lambda data: b"",
    "cut short": lambda data: data[: len(data) // 2],
    "a bit flipped": lambda data: data[:-3] + bytes([data[-3] ^ 1]) + data[-2:],
    "gone": None,
}


@pytest.mark.parametrize("harm", HARMS)
def test_damage_at_every_place_of_a_store_is_found_and_mended(
    study: Study, undisturbed: dict[str, str], study_file: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, harm: str, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """Each file of one result of each kind at once: all but one result of a kind stay as they are."""
    home = tmp_path / "home"
    shutil.copytree(study.store.root, home / "runs")
    store = Store(home / "runs")
    for kind in ("collection", "splits", "tokens", "train", "measure"):
        folder = store.path(kind, store.keys(kind)[0])
        for path in sorted(each for each in folder.rglob("*") if each.is_file()):
            change = HARMS[harm]
            path.write_bytes(change(path.read_bytes())) if change else path.unlink()
    for path in (home / "runs" / ".plans").glob("*.json"):
        path.write_bytes(b"\xff{")
    monkeypatch.setenv("REPRO_HOME", str(home))
    again = Study(study_file)
    assert again.sweep() == {}
    assert results(home / "runs") == undisturbed
    assert "is damaged" in capsys.readouterr().out or harm == "gone"
    kinds = {path.parent.parent.name for path in (home / "runs").glob("*/.aside/*")}
    assert kinds == {"collection", "splits", "tokens", "train", "measure"}


def test_a_kernel_that_is_killed_in_a_cell_is_told(
    study: Study,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "notebooks").mkdir()
    killed = notebook("import os\nos.kill(os.getpid(), 9)")
    nbformat.write(killed, tmp_path / "notebooks" / "01_killed.ipynb")
    monkeypatch.setattr(reproduce, "ROOT", tmp_path)
    monkeypatch.setattr(study, "build", tmp_path / "build")
    monkeypatch.setenv("JUPYTER_PATH", os.environ.get("JUPYTER_PATH", ""))
    (fault,) = reproduce.execute_notebooks(study, "mini").values()
    assert "Kernel died" in fault
    assert "it was killed, or memory ran out (see " in fault
    assert "notebooks: 1 of 1 done" in capsys.readouterr().out
    assert not (tmp_path / "build" / "notebooks" / "01_killed.ipynb").exists()


def test_ctrl_c_while_notebooks_run_ends_them_too(fresh: Study, tmp_path: Path) -> None:
    script = tmp_path / "notebooks.py"
    script.write_text(
        "import sys\nfrom pathlib import Path\nfrom repro.app import cli, reproduce\n"
        "from repro.app.study import Study\n"
        "reproduce.ROOT = Path(sys.argv[1])\n"
        "study = Study(Path(sys.argv[2]))\n"
        "cli.told('t', lambda: len(reproduce.execute_notebooks(study, 'x')))\n"
    )
    (tmp_path / "notebooks").mkdir()
    for name in "123":
        mark = f"open({str(tmp_path / 'begun')!r}, 'a').write('x')"
        long = notebook(f"import time\n{mark}\ntime.sleep(600)")
        nbformat.write(long, tmp_path / "notebooks" / f"0{name}_long.ipynb")
    process = subprocess.Popen(
        [sys.executable, str(script), str(tmp_path), str(fresh.profile_file)], text=True,
        env={**environment(), "REPRO_HOME": str(tmp_path / "home")},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, preexec_fn=listening,
    )  # fmt: skip
    until(process, (tmp_path / "begun").exists)
    kernels = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=WAIT)[0]
    assert "stopped; the same command goes on from here" in said
    assert not psutil.wait_procs(kernels, timeout=20)[1]
