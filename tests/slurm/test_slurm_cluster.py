"""Through a real Slurm: the numbers of one machine, whatever is killed, queued again or restarted.

The cluster is of the test's own (see `cluster.py`).  Where the Debian packages or root are missing the
tests are skipped, in CI (REPRO_STRICT=1) they fail.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster import Cluster, missing, until

import tiny
from repro.app.study import Study
from repro.errors import UserError
from repro.store import Store
from repro.work import batches, slurm
from repro.work.batches import Seen
from repro.work.cluster import SlurmParams
from repro.work.queue import Task

pytestmark = pytest.mark.slow
EXECUTE = {"backend": "slurm", "partition": "main", "memory_gb": 1, "time_minutes": 10}
PATIENCE = 300.0  # seconds; on an idle machine everything here takes one tenth of it

SWEEP = "import sys; from pathlib import Path; from repro.app.study import Study\n"
SWEEP += "if __name__ == '__main__':\n    sys.exit(len(Study(Path(sys.argv[1])).sweep()))\n"

# In every job: a step takes a third of a second, so that it can be met in the middle of a run, and
# leaves a line: which run, which step.
SLOW = """
import os
if "SLURM_JOB_ID" in os.environ:
    import hashlib, time
    from repro.train import loop
    step = loop.Trainer.step
    def slow(trainer):
        time.sleep(0.3)
        run = hashlib.sha256(trainer.spec.model_dump_json().encode()).hexdigest()[:8]
        with open(os.environ["STEPS"], "a") as file:
            file.write(f"{run} {trainer.done}\\n")
        return step(trainer)
    loop.Trainer.step = slow
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    if reason := missing():
        tiny.absent(reason)
    running = Cluster(tmp_path_factory.mktemp("slurm") / "cluster")
    try:
        running.start()
        yield running
    finally:
        running.stop()
    assert not running.daemons
    assert not running.steps()


def with_slurm(study_file: Path, target: Path, **execute: object) -> Path:
    """The profile of `study_file` with its runs on the cluster."""
    profile = json.loads(study_file.read_text())
    profile["execute"] = {**EXECUTE, **execute}
    target.write_text(json.dumps(profile))
    return target


def test_killed_requeued_and_waited_for_again_it_ends_with_the_numbers_of_one_machine(
    cluster: Cluster,
    study: Study,
    study_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    for name, value in cluster.environment.items():
        monkeypatch.setenv(name, value)
    assert study.sweep() == {}
    expected = tiny.results(study.store.root)
    (tmp_path / "sweep.py").write_text(SWEEP)
    (tmp_path / "sitecustomize.py").write_text(SLOW)
    profile, out = with_slurm(study_file, tmp_path / "tiny-slurm.yaml"), tmp_path / "out.txt"
    steps = tmp_path / "steps.txt"
    home = tmp_path / "home"
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    store = Store(home / "runs")

    parents: list[subprocess.Popen[bytes]] = []
    request.addfinalizer(lambda: [each.kill() for each in parents])

    def parent() -> subprocess.Popen[bytes]:
        more = {"PYTHONPATH": path, "REPRO_HOME": str(home), "STEPS": str(steps)}
        with out.open("ab") as file:
            started = subprocess.Popen(
                [sys.executable, "-u", str(tmp_path / "sweep.py"), str(profile)],
                env={**os.environ, **more},
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        parents.append(started)
        return started

    def queue() -> list[Seen]:
        seen = batches.look()
        return seen if isinstance(seen, list) else []

    def in_training(but: str = "") -> Seen | None:
        """A job that has taken steps, and has some before it."""
        for each in queue():
            batch = batches.find(store, each.name)
            told = batch.told(each.index) if batch else {"where": None}
            busy = each.state == "RUNNING" and told["where"] and told["where"][0] == "train"
            if busy and told["note"].startswith("step") and each.number != but:
                return each
        return None

    def of(number: str) -> Seen | None:
        return next((each for each in queue() if each.number == number), None)

    def state(number: str) -> str:
        seen = of(number)
        return seen.state if seen else ""

    first = parent()
    until(lambda: in_training() or first.poll() is not None, PATIENCE, "a job trains")
    again = in_training()
    assert again is not None, out.read_text()
    # What a time limit sends ahead.  The client tries again for minutes, as the job is gone by then.
    warning = subprocess.Popen(
        ["scancel", "--signal=USR2", again.number], stderr=subprocess.DEVNULL
    )
    try:
        about = ("scontrol", "show", "job", again.number)
        until(lambda: "Restarts=1" in cluster.run(*about), PATIENCE, "it is queued again")
    finally:
        warning.kill()
        warning.wait()

    until(lambda: in_training(but=again.number), PATIENCE, "another job trains")
    killed = in_training(but=again.number)
    assert killed is not None
    cluster.run("scancel", killed.number)
    until(lambda: state(killed.number) == "CANCELLED", 60, "it is cancelled")
    until(lambda: "submitted again" in out.read_text(), PATIENCE, "its end is seen")

    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    cluster.stop_controller()
    second = parent()
    until(lambda: "does not answer" in out.read_text(), PATIENCE, "it waits for the controller")
    cluster.start_controller()
    cluster.run("scontrol", "update", f"JobId={again.number}", "StartTime=now")
    assert second.wait(PATIENCE) == 0, out.read_text()
    assert "in the queue already" in out.read_text()

    assert tiny.results(store.root) == expected
    assert not list(store.root.glob("*/.work/*"))
    assert not list(store.root.glob("*/.lease/*"))
    assert not list(store.root.glob("*/.failed/*"))
    taken = Counter(steps.read_text().splitlines())
    runs = {line.split()[0] for line in taken}
    twice = {line.split()[0] for line, n in taken.items() if n > 1}
    assert len(runs) == 4
    assert len(twice) <= 1, "a run that was not killed took a step twice"
    assert sum(n - 1 for n in taken.values()) <= 2, "the killed run kept its state when it was told"


def test_failures_are_the_records_that_one_machine_writes(
    cluster: Cluster,
    fresh: Study,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, value in cluster.environment.items():
        monkeypatch.setenv(name, value)
    run, other = fresh.planned()[:2]
    inputs = run.train.inputs
    broken = Task("train", {**run.train.spec, "weights": "no such digest"}, "broken", 1e9, inputs)
    place = ("train", fresh.store.key("train", broken.spec))
    after = Task("measure", {"run": "x"}, "after", 1.0, {}, place)
    tasks = [broken, after, other.train]
    nowhere = SlurmParams.model_validate({**EXECUTE, "partition": "nowhere"})
    with pytest.raises(UserError, match=r"refuses the jobs: .*partition"):
        slurm.run(fresh.store, tasks, nowhere, title="t")
    assert not list((fresh.store.root / ".slurm").iterdir())

    together = SlurmParams.model_validate({**EXECUTE, "runs_per_job": 2})
    failed = slurm.run(fresh.store, tasks, together, title="t")
    assert set(failed) == {"broken", "after"}
    assert "the weights changed" in failed["broken"]
    assert "which failed" in failed["after"]
    assert fresh.store.has("train", fresh.store.key("train", other.train.spec))
    record = next((fresh.store.root / "train" / ".failed").glob("*.json"))
    assert "Traceback" in json.loads(record.read_text())["error"]
    printed = capsys.readouterr().out
    assert "1 jobs submitted" in printed  # both runs in one
    assert "failed: broken: " in printed
    logs = batches.logs(batches.find_all(fresh.store), {place})[place]
    assert any("Job completed successfully" in log.read_text() for log in logs)
