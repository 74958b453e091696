"""A study: one profile on one dataset; what the command line and the notebooks both talk to."""

from __future__ import annotations

import functools
import json
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from repro import params
from repro.app import describe, planned, refuse
from repro.app.named import files
from repro.data.dataset import (
    Dataset,
    DatasetParams,
    find_dataset_file,
    load_dataset_params,
)
from repro.document import read
from repro.errors import UserError
from repro.experiments import costs, effort, grid, labels, registry
from repro.experiments.budget import Budget, budget, distinct
from repro.experiments.doors import Doors
from repro.experiments.estimate import Estimator
from repro.experiments.profile import Profile
from repro.experiments.replicates import PairLosses
from repro.experiments.runs import Runs, Trained
from repro.files import digest, write_json
from repro.places import ROOT, home
from repro.progress import clock
from repro.provenance import surroundings
from repro.store import Store
from repro.work import execute, pace
from repro.work.queue import Task


class Study:
    """A profile on a dataset, its runs in the store, and what they answer."""

    def __init__(
        self,
        profile_file: Path,
        dataset_file: Path | None = None,
        overlays: Sequence[Path] = (),
        doors: Doors | None = None,
    ) -> None:
        self.profile_file, self.overlays = profile_file, tuple(overlays)
        self.doors = doors or Doors()
        refuse.unwritable(home())
        self.document = read(profile_file, *overlays)
        self.declared = params.validate(self.document, Profile)
        self.dataset_file = dataset_file or find_dataset_file(self.declared.dataset)
        self.dataset_params = load_dataset_params(str(self.dataset_file))
        self.profile_name = "+".join(each.stem for each in (profile_file, *overlays))
        self.name = f"{self.profile_name}-{self.dataset_file.stem}"
        self.store = Store(home() / "runs")
        self.build = home() / "build" / self.name
        self._swept = False

    @classmethod
    def open(cls, name: str) -> Study:
        """The study called `profile[+overlay...][:dataset]` (names or paths); prints what it is."""
        study = cls(*files(name))
        print(study.describe())
        return study

    def changed(
        self,
        suffix: str,
        *,
        profile: Profile | None = None,
        dataset_params: DatasetParams | None = None,
    ) -> Study:
        """This study with another profile or other data, under a name and a build folder of its own."""
        other = Study(self.profile_file, self.dataset_file, self.overlays, self.doors)
        other.profile = profile or self.profile
        other.dataset_params = dataset_params or self.dataset_params
        other.name = f"{self.name}-{suffix}"
        other.build = self.build.with_name(other.name)
        return other

    def describe(self) -> str:
        """The study in a few lines: what it runs, on which data, and where the results lie."""
        return describe.describe(self)

    @functools.cached_property
    def profile(self) -> Profile:
        """The profile; the data sizes that it left open (`grid.sizes: auto`) are what the data support."""
        declared, study = self.declared, self.declared.lr_study
        if not declared.grid.doubled_to and not (study and study.automatic):
            return declared
        try:
            settled = declared.grid.settled(len(self.dataset.splits.train))
        except UserError as error:
            place = self.document.place(("grid", "sizes"))
            raise UserError(error.what, where=place, remedy=error.remedy) from None
        rates = study and study.settled(settled.sizes)
        return declared.model_copy(update={"grid": settled, "lr_study": rates})

    @functools.cached_property
    def dataset(self) -> Dataset:
        """The collection, its splits and its evaluation sets (made on first use)."""
        return self.doors.dataset(self.store, self.dataset_params)

    @functools.cached_property
    def runs(self) -> Runs:
        """The runs that the profile asks for."""
        return Runs(self.profile, self.dataset, self.store, self.estimator(), self.doors)

    def estimator(self) -> Estimator:
        """What estimates rest on: runs in the store, else a record of `repro tune`; the pace."""
        known = effort.finished(self.store) or self._tuned()
        return Estimator(known, pace.load(self.pace_file))

    def _tuned(self) -> list[effort.Finished]:
        """The runs in the record of `repro tune`: of this build, else the published one."""
        for path in (self.build / "tuned.json", ROOT / "params" / "tuned" / f"{self.name}.json"):
            if path.is_file():
                try:
                    return effort.tuned(json.loads(path.read_text(encoding="utf-8")))
                except (ValueError, KeyError, TypeError):
                    raise UserError(
                        "this is no record of `repro tune`",
                        where=str(path),
                        remedy="run repro tune again, or remove the file",
                    ) from None
        return []

    @property
    def pace_file(self) -> Path:
        """Where `repro check --calibrate` keeps how fast this machine is."""
        return pace.place(home() / "build" / "pace", self.profile.execute)

    def calibrate(self) -> None:
        """Measure how fast this machine is on each model of the profile."""
        refuse.elsewhere(self)
        first: dict[str, Trained] = {}
        for run in self.planned():
            first.setdefault(run.train.inputs["weights"], run)
        measured = [(run.train, costs.searched(self.runs)) for run in first.values()]
        pace.calibrate(self.store, measured, self.profile.execute, self.pace_file, pace.SECONDS)
        del self.runs  # made again, with the new pace

    def experiments(self) -> dict[str, list[Trained]]:
        """The runs of each experiment, shared ones in each; those that wait for others are not in it."""
        found: dict[str, list[Trained]] = {}
        for name, runs in registry.RUNS.items():
            try:
                refuse.sizes(self, name)
                found[name] = runs(self.runs)
            except UserError as error:
                place = error.where or self.document.place((name,))
                raise UserError(error.what, where=place, remedy=error.remedy) from None
        return {name: runs for name, runs in found.items() if runs}

    def budget(self, *, later: bool = False) -> Budget:
        """What is still to run and what that costs, by experiment.

        later: with an estimate of the runs that are known only when others are there.
        """
        self.planned()
        follow = registry.later(self.runs) if later else {}
        return budget(self.runs, self.experiments(), execute.at_once(self.profile.execute), follow)

    def planned(self) -> list[Trained]:
        """Every training run of the study, each once; refused where a model or the data lack."""
        refuse.models(self)
        refuse.negatives(self)
        return distinct(self.experiments())

    def missing(self) -> int:
        """How many of the planned runs, and of what they wait for, lack something that was asked for."""
        there = [(self.runs.row(run), self.runs.target_rows(run)) for run in self.planned()]
        unmade = sum(not self.store.has(*place) for place in self._prepared())
        return unmade + sum(row is None or targets is None for row, targets in there)

    def tasks(self) -> dict[tuple[str, str], Task]:
        """Kind and key -> what makes it: all that is known by now, done or not."""
        runs = [task for run in self.planned() for task in run.tasks]
        return self._prepared() | {(t.kind, self.store.key(t.kind, t.spec)): t for t in runs}

    def _prepared(self) -> dict[tuple[str, str], Task]:
        """The tasks that come before the runs of an experiment are known."""
        tasks = [task for each in registry.PREPARED for task in each(self.runs)]
        return {(t.kind, self.store.key(t.kind, t.spec)): t for t in tasks}

    def sweep(self) -> dict[str, str]:
        """Make what is missing; returns label -> reason of the runs that failed.

        Some runs are known only when others are there, so it asks again until nothing is new.
        """
        self._swept = True
        failed: dict[str, str] = {}
        known: set[tuple[str, str]] = set()
        while True:
            tasks = self.tasks()
            new = [task for place, task in tasks.items() if place not in known]
            if not all(self.store.has(*place) for place in tasks.keys() - known):
                planned.write(self)
            if not new:
                return failed
            known |= tasks.keys()
            failed |= self._make(new)

    def _make(self, tasks: list[Task]) -> dict[str, str]:
        expected, began = self.budget(), time.monotonic()
        lacking = [t for t in tasks if not self.store.has(t.kind, self.store.key(t.kind, t.spec))]
        kinds = Counter(task.kind for task in lacking)
        if kinds["train"]:
            print(
                f"{self.name}: {kinds['train']:,} runs to train, {kinds['measure']:,} rankings to "
                f"make; about {clock(expected.wall_seconds)} ({expected.source})",
                flush=True,
            )
        failed = execute.run(self.store, tasks, self.profile.execute, title=self.name)
        if expected.total.flop > 0 and not failed:
            took = time.monotonic() - began
            print(
                f"{self.name}: estimated {clock(expected.wall_seconds)}, took {clock(took)} "
                f"({took / expected.wall_seconds - 1:+.0%}; {expected.source})"
            )
            self.build.mkdir(parents=True, exist_ok=True)
            write_json(self.build / "sweep.json", {**expected.as_dict(), "took_seconds": took})
        return failed

    def grid(self) -> pd.DataFrame:
        """The grid table, one row a finished run; makes the cells that are missing, once."""
        if not self._swept:
            self.sweep()
        return grid.table(self.runs)

    def curves(self) -> pd.DataFrame:
        """The validation curves of the finished runs, one row a reading."""
        return grid.curves(self.runs)

    def pair_losses(self) -> PairLosses:
        """The losses of the validation pairs in each run of the grid, at its minimum, nats."""
        return grid.pair_losses(self.runs)

    @property
    def comparable(self) -> list[str]:
        """Sources and claims whose printed numbers may be held against this study's."""
        own = self.dataset_file == find_dataset_file(self.profile.dataset)
        return self.profile.comparable if own and not self.profile.meaningless else []

    def answers(self) -> dict[str, Any]:
        """What each experiment answers: experiment -> its answers.

        They are kept in build/, under a digest of what they rest on, the code and the public tables.
        """
        from repro.app import stamp

        self.grid()
        path = self.build / "answers.json"
        rows = registry.evidence(self.runs, self.planned())
        made_from = digest({"runs": rows, "code": stamp.code()})
        if path.exists():
            kept = json.loads(path.read_text(encoding="utf-8"))
            if kept["made_from"] == made_from:
                return kept["answers"]
        self.build.mkdir(parents=True, exist_ok=True)
        write_json(path, {"made_from": made_from, "answers": registry.answers(self.runs)})
        return json.loads(path.read_text(encoding="utf-8"))["answers"]

    def report(self) -> dict[str, Any]:
        """The study's report.json; written first where it is missing."""
        from repro.app.report import write_report

        path = self.build / "report.json"
        if not path.exists():
            write_report(self)
        return json.loads(path.read_text(encoding="utf-8"))

    def figure(self, figure: Any, name: str, *, alt: str, data: dict[str, Any]) -> None:
        """Save a figure (SVG, PNG, JSON of its numbers) under build/ and show it in a notebook."""
        from IPython.display import Image, display

        from repro.show import style

        style.save(figure, self.build / "figures", name, alt=alt, data=data)
        png = (self.build / "figures" / f"{name}.png").read_bytes()
        display(Image(png, alt=alt, width=figure.get_figwidth() * 80))

    def depends_on(self) -> list[Path]:
        """The files and folders, apart from the code, that the results depend on."""
        planned = self.planned()
        weights = {self.runs.source(run.train.inputs["weights"]).folder for run in planned}
        asked = self.profile.transfer
        weights |= labels.models(self.profile)
        others = [find_dataset_file(name).resolve() for name in (asked.datasets if asked else [])]
        datasets = {json.dumps(run.train.inputs["dataset"], sort_keys=True) for run in planned}
        sources = [DatasetParams.model_validate_json(text).source for text in sorted(datasets)]
        data = [path for source in sources for paths in source.paths().values() for path in paths]
        own = [path.resolve() for path in (self.profile_file, *self.overlays, self.dataset_file)]
        return [*own, *others, *sorted(weights), *data]

    def digests(self) -> dict[str, str]:
        """The digests of the data that the runs stand on."""
        profile = digest(self.profile.model_dump(mode="json"))
        return {**self.dataset.digests, "profile": profile}

    def provenance(self) -> dict[str, Any]:
        """Code, packages, machine and data digests, for the foot of a page."""
        return {**surroundings(), "digests": self.digests()}
