"""Cluster jobs: what is asked for, which tasks make a job, and how batches lie on disk."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
from small_tasks import asked, place, task, write

from repro import params
from repro.app.study import Study
from repro.errors import UserError
from repro.experiments.profile import Profile
from repro.store import Store
from repro.work import batches, execute
from repro.work.batches import Seen, Where
from repro.work.jobs import grouped
from repro.work.queue import Sweep


def test_where_runs_are_made_enters_no_key(fresh: Study) -> None:
    local = list(fresh.tasks())
    profile = fresh.profile.model_copy(update={"execute": asked(partition="gpu", gpus_per_run=4)})
    assert list(fresh.changed("slurm", profile=profile).tasks()) == local
    assert execute.at_once(profile.execute) == 100


@pytest.mark.parametrize(
    ("section", "where", "words"),
    [
        ("{workers: 2, partition: x}", 3, "partition"),
        ("{backend: slurm, patition: x}", 3, "did you mean `partition`?"),
        ("{backend: slurm, max_jobs: 0}", 3, "use 1 or more"),
        ("\n  backend: slurm\n  time_minutes: 1", 5, "use 5 or more"),
        ("\n  backend: slurm\n  time_minutes: 5\n  warning_seconds: 200", 3, "under half"),
        ("\n  backend: slurm\n  sizes:\n  - {gpus_per_run: 1}", 6, "add `from_parameters:`"),
        ("{backend: slum}", 3, "'local', 'slurm'"),
    ],
)
def test_a_fault_is_shown_where_it_stands(
    tmp_path: Path, section: str, where: int, words: str
) -> None:
    rest = "models: {m: {weights: w, lr: 1e-3}}\ngrid: {models: [m], sizes: [200]}\nexecute: "
    (tmp_path / "p.yaml").write_text(f"{rest}{section}\ndescription: d\n")
    with pytest.raises(UserError) as caught:
        params.load(tmp_path / "p.yaml", Profile)
    assert caught.value.where.endswith(f"p.yaml:{where}"), caught.value
    assert words in str(caught.value)
    assert "execute.slurm" not in str(caught.value)  # the name of a variant stands in no file


@pytest.mark.parametrize(
    "name", ["a b", "x;rm", "$(id)", "`id`", "x\n#SBATCH --uid=0", "-p", "'", "x\0"]
)
@pytest.mark.parametrize(
    "field", ["partition", "account", "qos", "constraint", "exclude", "gpu_type"]
)
def test_no_shell_comes_from_params(field: str, name: str) -> None:
    with pytest.raises(ValueError, match=field):
        asked(**{field: name})
    with pytest.raises(ValueError, match="modules"):
        asked(modules=[name])
    with pytest.raises(ValueError, match="environment"):
        asked(environment={name: "x"})


def test_modules_and_environment_reach_the_job_as_they_are_written(tmp_path: Path) -> None:
    odd = "a 'b' \"c\" $HOME `id` ; & é"
    lines = asked(modules=["cuda/12.4"], environment={"ODD": odd}).setup()
    script = ['module() { echo module "$@"; }', *lines, 'echo "$ODD $OMP_NUM_THREADS"']
    done = subprocess.run(["bash", "-c", "\n".join(script)], capture_output=True, text=True)
    assert done.stdout.splitlines() == ["module load cuda/12.4", f"{odd} 1"]
    failing = ["module() { return 1; }", *lines, "echo on"]
    assert subprocess.run(["bash", "-c", "\n".join(failing)], capture_output=True).returncode == 1
    assert all(shlex.split(line) for line in lines)
    with pytest.raises(ValueError, match="environment"):
        asked(environment={"X": "a\nb"})


def test_a_larger_model_gets_more_and_what_is_named_holds() -> None:
    plain = asked()
    assert plain.needs(0).memory_gb == 8
    assert plain.needs(110_000_000).memory_gb == 12  # 8 + 32 bytes each, rounded up
    assert plain.in_job(plain.needs(0)) == "cpu"
    sizes = [
        {"from_parameters": 3e8, "memory_gb": 64, "time_minutes": 2000, "gpu_type": "a100"},
        {"from_parameters": 5e7, "gpus_per_run": 1, "memory_gb": 20},
    ]
    by_size = asked(sizes=sizes, gpu_type="v100", account="lab", reservation="r")
    small, middle, large = (by_size.needs(n) for n in (1_000_000, 110_000_000, 335_000_000))
    assert (small.gpus, small.memory_gb, small.time_minutes) == (0, 9, 240)
    assert (middle.gpus, middle.memory_gb, middle.time_minutes) == (1, 20, 240)
    assert (large.gpus, large.memory_gb, large.time_minutes) == (1, 64, 2000)
    assert by_size.in_job(large) == "cuda"  # and no other where that is missing
    options = by_size.options(large)
    assert options["gpus_per_node"] == "a100:1"
    assert by_size.options(middle)["gpus_per_node"] == "v100:1"
    assert options["mem"] == "64G"
    assert options["additional_parameters"] == {"requeue": True, "reservation": "r"}
    assert "partition" not in options
    assert "gpus_per_node" not in by_size.options(small)


def test_a_ranking_goes_with_its_run_and_what_is_not_ready_waits(tmp_path: Path) -> None:
    store = Store(tmp_path)
    labels, run, large = (
        task("l", "labels"),
        task("run", seconds=9.0),
        task("large", parameters=10**8),
    )
    on_labels = task("on labels", after=place(store, labels))
    ranked = [task(f"ranking {i}", "measure", place(store, run)) for i in range(2)]
    later = task("ranking of on labels", "measure", place(store, on_labels))
    sweep = Sweep(store, [labels, run, *ranked, on_labels, later, large], "s")

    def jobs(taken: set[Where], **more: Any) -> list[list[str]]:
        found = grouped(sweep, asked(**more), taken)
        return [[one.label for _, one in job] for jobs in found.values() for job in jobs]

    assert sorted(jobs(set())) == [["l"], ["large"], ["run", "ranking 0", "ranking 1"]]
    both = jobs(set(), runs_per_job=2)
    assert sorted(both) == [["large"], ["run", "ranking 0", "ranking 1", "l"]]  # large: other needs
    assert jobs({place(store, ranked[1]), place(store, large)}) == [["l"]]
    with store.claim(*place(store, large)):
        assert ["large"] not in jobs(set())
    for one in (labels, run):
        store.make(one.kind, one.spec, lambda folder, one=one: write(one, folder))
    left = [["large"], ["on labels", "ranking of on labels"], ["ranking 0", "ranking 1"]]
    assert sorted(jobs(set())) == left


def test_batches_are_read_as_they_were_written(tmp_path: Path) -> None:
    store = Store(tmp_path)
    run = task("run", parameters=5)
    ranked = task("ranking", "measure", place(store, run))
    jobs = [[(place(store, one), one) for one in (run, ranked)], [(("train", "x"), task("other"))]]
    batch = batches.plan(store, "s", jobs)
    found = batches.find(store, batch.name)
    assert found == batch
    assert found.tasks(0) == [run, ranked]
    assert found.told(1)["event"] == ""
    found.tell(1, "runs", ("train", "x"), 0.5, "step 3")
    assert found.told(1) | {"host": "", "job": ""} == {
        "event": "runs", "where": ("train", "x"), "done": 0.5, "note": "step 3", "host": "", "job": "",
    }  # fmt: skip
    for name in ("12_0_0_log.out", "12_1_0_log.out", "12_1_0_log.err"):
        (batch.folder / name).write_text("")
    other = ("train", "x")
    printed = batches.logs(batches.find_all(store), {other})
    assert printed.keys() == {other}
    assert {path.name for path in printed[other]} == {"12_1_0_log.out", "12_1_0_log.err"}
    for damage in ("", "[]", "{}", '{"where": 3}'):
        (batch.folder / "1.now.json").write_text(damage)
        assert found.told(1)["event"] == ""
    for damage in ("", "{", "[]", '{"sweep": "s"}'):
        (batch.folder / "plan.json").write_text(damage)
        assert batches.find(store, batch.name) is None
    with pytest.raises(UserError, match="%"):
        batches.plan(Store(tmp_path / "a%j"), "s", jobs)


def test_the_queue_is_read_whatever_else_is_in_it() -> None:
    lines = {
        "3|12_3|PENDING|Resources|repro-ab": Seen("repro-ab", 3, "12_3", "PENDING", "Resources"),
        "N/A|13|COMPLETED|None|repro-cd": Seen("repro-cd", 0, "13", "COMPLETED", "None"),
        "1|14_1|RUNNING|None|somebody|else": None,
        "1|15_1|PENDING|(a, b)|repro-e|f": Seen("repro-e|f", 1, "15_1", "PENDING", "(a, b)"),
        "": None,
        "rubbish": None,
    }
    assert {line: batches._seen(line) for line in lines} == lines
    assert lines["3|12_3|PENDING|Resources|repro-ab"].active  # type: ignore[union-attr]
    assert not lines["N/A|13|COMPLETED|None|repro-cd"].active  # type: ignore[union-attr]
