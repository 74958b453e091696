"""Where tasks are made: on this machine, or on a cluster."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from repro.store import Store
from repro.work import local
from repro.work.cluster import SlurmParams
from repro.work.local import ExecuteParams
from repro.work.queue import Task


def _named(value: Any) -> Any:
    """Local is the default, and need not be named."""
    return {"backend": "local", **value} if isinstance(value, dict) else value


# None of it changes a result, and none of it enters a key.
Execute = Annotated[
    Annotated[ExecuteParams | SlurmParams, Field(discriminator="backend")], BeforeValidator(_named)
]


def run(
    store: Store, tasks: list[Task], params: ExecuteParams | SlurmParams, *, title: str
) -> dict[str, str]:
    """Make all tasks that are not in the store; returns label -> reason of those that failed."""
    if isinstance(params, SlurmParams):
        from repro.work import slurm

        return slurm.run(store, tasks, params, title=title)
    return local.run(store, tasks, params, title=title)


def at_once(params: ExecuteParams | SlurmParams) -> int:
    """How many runs are made at once, at the most."""
    return params.max_jobs if isinstance(params, SlurmParams) else local.workers(params)
