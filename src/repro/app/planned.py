"""The plan of a study: written into the store, read from there while the study's files are the same."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from repro.places import ROOT, absolute
from repro.store import Store
from repro.work import plans
from repro.work.plans import Asked, Place, Plan

if TYPE_CHECKING:
    from repro.app.study import Study


def write(study: Study) -> Plan:
    """Work out what the study asks for by now, and keep it in the store."""
    from repro.data.dataset import find_dataset_file
    from repro.experiments import registry
    from repro.work import local

    wanted: dict[Place, list[str]] = {}
    tasks = [("labels", task) for each in registry.PREPARED for task in each(study.runs)]
    for name, runs in study.experiments().items():
        tasks += [(name, task) for run in runs for task in run.tasks]
    found = {}
    for name, task in tasks:
        place = (task.kind, study.store.key(task.kind, task.spec))
        wanted.setdefault(place, []).append(name)
        found[place] = task
    asked = {
        place: Asked(task.label, task.seconds, tuple(dict.fromkeys(wanted[place])), task.after)
        for place, task in found.items()
    }
    later = [
        task.seconds
        for runs in registry.later(study.runs).values()
        for run in runs
        for task in run.tasks
        if (task.kind, study.store.key(task.kind, task.spec)) not in asked
    ]
    reads = tuple(sorted(study.store.read() - asked.keys()))
    from_files = (study.profile_file, study.dataset_file, *study.overlays)
    plan = Plan(
        study.name,
        from_files,
        own=study.dataset_file == find_dataset_file(study.profile.dataset),
        made_from=plans.made_from(from_files),
        workers=local.workers(study.profile.execute),
        asked=asked,
        reads=reads,
        later_seconds=tuple(later),
    )
    plans.write(study.store, plan)
    return plan


def load(name: str, store: Store) -> Plan:
    """The plan of the study `name`; worked out anew where none is kept, or its files have changed."""
    for plan in plans.load_all(store):
        if (plan.study == name or _means(name, plan)) and plan.made_from == plans.made_from(
            plan.files
        ):
            return plan
    return write(open_study(name))


def open_study(name: str) -> Study:
    """The study called `profile`, `profile:dataset` (names or paths)."""
    from repro.app import study

    return study.Study(*study.files(name))


def _means(name: str, plan: Plan) -> bool:
    """Whether a study's name is that of the plan's study: by its files alone."""
    profile, _, dataset = name.partition(":")
    known = absolute(profile)
    path = Path(known) if known != profile or "/" in known else ROOT / "params" / f"{profile}.yaml"
    if plan.files[0] != path or plan.study != "-".join(file.stem for file in plan.files[:2]):
        return False
    return (
        plan.own
        if not dataset
        else str(plan.files[1]) == absolute(dataset) or (plan.files[1].stem == dataset)
    )
