"""What is asked of a Slurm cluster: where the jobs go, and what each of them gets."""

from __future__ import annotations

import math
import re
import shlex
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, field_validator, model_validator

from repro.params import Params
from repro.work.local import WorkersParams

# Names as Slurm and the modules system use them.  They end up in a script that a shell reads.
Name = Annotated[
    str, StringConstraints(pattern=r"^([A-Za-z0-9][A-Za-z0-9_.,&|*\[\]:@+/-]*)?$", max_length=200)
]
Module = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.+/-]*$", max_length=200)
]
Variable = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=200)]
Value = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]*$", max_length=4096)]

SECRET = re.compile("(TOKEN|KEY|SECRET|PASSWORD|PASSWD|CREDENTIALS)$")
Minutes = Annotated[int, Field(ge=5, le=60 * 24 * 365)]
Gpus = Annotated[int, Field(ge=0, le=64)]
Cpus = Annotated[int, Field(ge=1, le=1024)]
Gigabytes = Annotated[float, Field(gt=0, le=100_000)]

BASE_GB = 8.0  # interpreter, PyTorch, the libraries of CUDA, the texts of some million passages
BYTES_PER_PARAMETER = (
    32  # weights, gradient, two moments, and a copy of each while they are written
)


class Needs(Params):
    """What one job gets."""

    time_minutes: int
    gpus: int
    gpu_type: str
    cpus: int
    memory_gb: int


class SizeParams(Params):
    """Other needs of the models from so many parameters on; what is not named stays."""

    from_parameters: Annotated[float, Field(ge=0, le=1e13)]
    time_minutes: Minutes | None = None
    gpus_per_run: Gpus | None = None
    gpu_type: Name | None = None
    cpus_per_run: Cpus | None = None
    memory_gb: Gigabytes | None = None


class SlurmParams(WorkersParams):
    """Runs as jobs of a Slurm cluster; `workers` is of the machine that waits: its notebooks."""

    backend: Literal["slurm"]
    partition: Name = ""  # empty, here and below: the cluster's default
    account: Name = ""
    qos: Name = ""
    constraint: Name = ""
    reservation: Name = ""
    exclude: Name = ""  # nodes
    time_minutes: Minutes = 240  # of a job; a run that takes longer goes on in the next one
    gpus_per_run: Gpus = 0
    gpu_type: Name = ""
    cpus_per_run: Cpus = 1
    memory_gb: Gigabytes | Literal["auto"] = "auto"
    sizes: list[SizeParams] = []
    max_jobs: Annotated[int, Field(ge=1, le=100_000)] = 100  # in the queue at once
    runs_per_job: Annotated[int, Field(ge=1, le=10_000)] = 1
    warning_seconds: Annotated[int, Field(ge=30, le=3600)] = 120  # before the time limit
    modules: list[Module] = []  # loaded before a job begins
    environment: dict[Variable, Value] = {}  # set in each job; no secrets: they stand in its script

    @field_validator("environment")
    @classmethod
    def _no_secrets(cls, environment: dict[str, str]) -> dict[str, str]:
        for name in environment:
            if SECRET.search(name.upper()):
                raise ValueError(
                    f"{name} is the name of a secret, and would stand in each job's script\n  remedy: set "
                    "it in the shell that starts the sweep: Slurm carries it to the jobs"
                )
        return environment

    @model_validator(mode="after")
    def _warned_in_time(self) -> SlurmParams:
        times = [size.time_minutes for size in self.sizes if size.time_minutes]
        shortest = min([self.time_minutes, *times])
        if 2 * self.warning_seconds > 60 * shortest:
            raise ValueError(
                f"a job of {shortest} minutes is warned {self.warning_seconds} seconds ahead\n"
                "  remedy: keep warning_seconds under half of time_minutes"
            )
        return self

    def needs(self, parameters: int) -> Needs:
        """What a job gets that holds a model of so many parameters (0: none, or not known).

        Memory, where it is left to us: 8 GB and 32 bytes a parameter.
        """
        found: dict[str, float | str] = {
            "time_minutes": self.time_minutes,
            "gpus_per_run": self.gpus_per_run,
            "gpu_type": self.gpu_type,
            "cpus_per_run": self.cpus_per_run,
            "memory_gb": self.memory_gb,
        }
        for size in sorted(self.sizes, key=lambda size: size.from_parameters):
            if parameters >= size.from_parameters:
                found |= size.model_dump(exclude={"from_parameters"}, exclude_none=True)
        memory = found["memory_gb"]
        if memory == "auto":
            memory = BASE_GB + BYTES_PER_PARAMETER * parameters / 1e9
        return Needs(
            time_minutes=int(found["time_minutes"]),
            gpus=int(found["gpus_per_run"]),
            gpu_type=str(found["gpu_type"]),
            cpus=int(found["cpus_per_run"]),
            memory_gb=math.ceil(float(memory)),
        )

    def in_job(self, needs: Needs) -> str:
        """The device of a job: a GPU that was asked for is used, or the job fails."""
        return self.device if self.device != "auto" else ("cuda" if needs.gpus else "cpu")

    def setup(self) -> list[str]:
        """The lines of a job's script before its command; nothing in them is read as shell."""
        variables = {"OMP_NUM_THREADS": "1", **self.environment}
        return [
            *(f"module load {shlex.quote(name)} || exit 1" for name in self.modules),
            *(f"export {name}={shlex.quote(value)}" for name, value in variables.items()),
        ]

    def options(self, needs: Needs) -> dict[str, object]:
        """Options of sbatch, by the names that submitit gives them."""
        named = {
            name: getattr(self, name)
            for name in ("partition", "account", "qos", "constraint", "exclude")
        }
        gpus = f"{needs.gpu_type}:{needs.gpus}" if needs.gpu_type else needs.gpus
        more = {"reservation": self.reservation} if self.reservation else {}
        return {
            **{name: value for name, value in named.items() if value},
            **({"gpus_per_node": gpus} if needs.gpus else {}),
            "time": needs.time_minutes,
            "cpus_per_task": needs.cpus,
            "mem": f"{needs.memory_gb}G",
            "signal_delay_s": self.warning_seconds,
            "setup": self.setup(),
            "additional_parameters": {"requeue": True, **more},
        }
