"""Workers: the same numbers whatever their number and whatever is killed; failures set aside."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from repro.app.study import Study
from repro.progress import Progress, clock
from repro.work import local
from repro.work.local import ExecuteParams
from repro.work.queue import Task
from tiny import results

SWEEP = "import sys; from pathlib import Path; from repro.app.study import Study\n"
SWEEP += "if __name__ == '__main__':\n    Study(Path(sys.argv[1])).sweep()\n"


@pytest.fixture(scope="module")
def undisturbed(study: Study) -> dict[str, str]:
    assert study.sweep() == {}
    found = results(study.store.root)
    assert len(found) == 4 * 4
    return found


@pytest.mark.slow
def test_two_workers_give_the_numbers_of_one(fresh: Study, undisturbed: dict[str, str]) -> None:
    planned = fresh.planned()
    tasks = [task for run in planned for task in (run.train, run.ranking)]
    assert local.run(fresh.store, tasks, ExecuteParams(workers=2, device="cpu"), title="two") == {}
    assert results(fresh.store.root) == undisturbed


@pytest.mark.slow
def test_killed_three_times_it_ends_with_the_same_numbers(
    fresh: Study, undisturbed: dict[str, str], tmp_path: Path
) -> None:
    script = tmp_path / "sweep.py"
    script.write_text(SWEEP)
    fresh.planned()
    states: set[str] = set()
    for _ in range(3):
        process = subprocess.Popen(
            [sys.executable, str(script), str(fresh.profile_file)],
            start_new_session=True,
            stdout=subprocess.DEVNULL,
        )
        while process.poll() is None:  # until a run that was not yet killed has a resume state
            last = fresh.store.root.glob("train/.work/*/last.*")
            found = {path.parent.name.partition(".")[0] for path in last}
            if found - states:
                break
            time.sleep(0.005)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert found - states, "the sweep ended before it could be killed"
        states |= found
    assert fresh.sweep() == {}
    assert results(fresh.store.root) == undisturbed
    assert not list(fresh.store.root.glob("*/.work/*"))


@pytest.mark.slow
def test_a_killed_worker_is_replaced(
    fresh: Study, undisturbed: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    killed: list[int] = []
    take = local._Pool._take

    def kill_once(pool: local._Pool, index: int, event: str, *rest: object) -> None:
        take(pool, index, event, *rest)
        if event == "share" and not killed:
            killed.append(pool.processes[index].pid)
            os.kill(killed[0], signal.SIGKILL)

    monkeypatch.setattr(local._Pool, "_take", kill_once)
    assert fresh.sweep() == {}
    assert len(killed) == 1
    assert results(fresh.store.root) == undisturbed


@pytest.mark.slow
def test_two_parents_on_one_store_make_each_result_once(
    fresh: Study, undisturbed: dict[str, str], tmp_path: Path
) -> None:
    """Two sweeps of the same study at once: each result is made by one worker of either."""
    script, log = tmp_path / "sweep.py", tmp_path / "made.txt"
    count = "from repro.work.makers import Makers\nmake = Makers.make\ndef counted(self, task, *rest):\n"
    count += f"    open({str(log)!r}, 'a').write(task.label + '\\n')\n    make(self, task, *rest)\n"
    script.write_text(f"{count}Makers.make = counted\n{SWEEP}")
    fresh.planned()
    command = [sys.executable, str(script), str(fresh.profile_file)]
    parents = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(2)]
    assert [parent.wait(timeout=240) for parent in parents] == [0, 0]
    made = log.read_text().splitlines()
    assert len(made) == len(set(made)) == 2 * 4
    assert results(fresh.store.root) == undisturbed
    assert not list(fresh.store.root.glob("*/.work/*"))
    assert not list(fresh.store.root.glob("*/.lease/*"))


@pytest.mark.slow
def test_workers_end_with_their_parent(fresh: Study, tmp_path: Path) -> None:
    psutil = pytest.importorskip("psutil")
    script = tmp_path / "sweep.py"
    script.write_text(SWEEP)
    fresh.planned()
    process = subprocess.Popen([sys.executable, str(script), str(fresh.profile_file)])
    children: list = []
    deadline = time.time() + 60
    while not children and time.time() < deadline:
        time.sleep(0.2)
        children = [
            p
            for p in psutil.Process(process.pid).children()
            if "spawn_main" in " ".join(p.cmdline())
        ]
    assert children
    process.kill()
    process.wait()
    _, alive = psutil.wait_procs(children, timeout=20)
    assert not alive


@pytest.mark.slow
def test_a_run_that_fails_is_set_aside_and_the_others_finish(fresh: Study) -> None:
    run, other = fresh.planned()[:2]
    broken = Task(
        "train", {**run.train.spec, "weights": "no such digest"}, "broken", 1e9, run.train.inputs
    )
    after = Task(
        "measure", {"run": "x"}, "after", 1.0, {}, ("train", fresh.store.key("train", broken.spec))
    )
    failed = local.run(
        fresh.store, [broken, after, other.train], ExecuteParams(workers=1, device="cpu"), title="t"
    )
    assert set(failed) == {"broken", "after"}
    assert "the weights changed" in failed["broken"]
    assert "which failed" in failed["after"]
    assert fresh.store.has("train", fresh.store.key("train", other.train.spec))
    record = next((fresh.store.root / "train" / ".failed").glob("*.json"))
    assert "Traceback" in json.loads(record.read_text())["error"]


@pytest.mark.slow
def test_a_run_that_kills_its_workers_is_set_aside(
    fresh: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    take = local._Pool._take

    def kill_always(pool: local._Pool, index: int, event: str, where: tuple, *rest: object) -> None:
        take(pool, index, event, where, *rest)
        if event == "share" and "D=160" in pool.sweep.tasks[where].label:
            os.kill(pool.processes[index].pid, signal.SIGKILL)

    monkeypatch.setattr(local._Pool, "_take", kill_always)
    tasks = [run.train for run in fresh.planned() if run.model == "small"]
    failed = local.run(fresh.store, tasks, ExecuteParams(workers=1, device="cpu"), title="t")
    assert list(failed) == ["small D=160 seed 1"]
    assert "died 2 times" in failed["small D=160 seed 1"]


def test_progress_weighs_by_cost_and_tells_the_time_left() -> None:
    stream = io.StringIO()
    progress = Progress("grid", {"a": 30.0, "b": 10.0, "c": 60.0}, stream)
    progress.start("a", "run a")
    progress.end("a")
    progress.start("c", "run c")
    progress.share("c", done=0.5, note="step 7")
    line = progress.line(60.0)
    assert line == "grid: 1 of 3 done, running run c step 7, 1.0 a minute, about 40 s left"
    progress.share("c", done=1.0 + 1e-12)
    progress.costs["b"] = -1e-9  # what rounding may leave
    assert "about 0 s left" in progress.line(60.0)
    progress.show()
    assert stream.getvalue() == ""  # not a terminal: nothing before half a minute
    progress.close()
    assert stream.getvalue().count("\n") == 1
    assert [clock(s) for s in (20, 600, 10_000)] == ["20 s", "10 min", "2.8 h"]
