"""A study: one profile on one dataset; what the command line and the notebooks both talk to."""

from __future__ import annotations

import functools
import json
import os
import time
from pathlib import Path
from typing import Any

import pandas as pd
from numpy.typing import NDArray

from repro import params
from repro.data.dataset import Dataset, find_dataset_file, load_dataset_params, prepare
from repro.experiments import effort, grid, transfer, transfer_answers, weight_decay
from repro.experiments.budget import Budget, budget, distinct
from repro.experiments.estimate import Estimator
from repro.experiments.profile import MEANINGLESS, Profile
from repro.experiments.runs import Runs, Trained
from repro.experiments.transfer_budget import PRICES
from repro.params import UserError
from repro.places import ROOT, home
from repro.provenance import surroundings
from repro.store import Store, digest, write_json
from repro.work import local, pace
from repro.work.progress import clock
from repro.work.queue import Task


class Study:
    """A profile on a dataset, its runs in the store, and what they answer."""

    def __init__(self, profile_file: Path, dataset_file: Path | None = None) -> None:
        self.profile_file = profile_file
        _check_writable(home())
        self.profile = params.load(profile_file, Profile)
        self.dataset_file = dataset_file or find_dataset_file(self.profile.dataset)
        self.dataset_params = load_dataset_params(str(self.dataset_file))
        self.name = f"{profile_file.stem}-{self.dataset_file.stem}"
        self.store = Store(home() / "runs")
        self.build = home() / "build" / self.name
        self._swept = False

    @classmethod
    def open(cls, name: str) -> Study:
        """The study called `profile`, `profile:dataset` (names or paths); prints what it is."""
        study = cls(*files(name))
        print(study.describe())
        return study

    def describe(self) -> str:
        """The study in a few lines: what it runs, on which data, and where the results lie."""
        profile, grid_ = self.profile, self.profile.grid
        lines = [
            f"study {self.name}: {profile.description}",
            f"  models {', '.join(grid_.models)}; D {', '.join(f'{d:,}' for d in grid_.sizes)} pairs; "
            f"{grid_.seeding()} (root {profile.seed})",
            f"  batches of {profile.train.batch_pairs} pairs, "
            f"{profile.train.negatives.count} negatives, {profile.texts.query_tokens}/"
            f"{profile.texts.passage_tokens} tokens, {profile.encoder.scoring} score",
        ]  # fmt: skip
        departures = self.dataset_params.source.departures()
        if departures:
            lines.append(
                f"  NOTE: {self.dataset_params.name} is read from {', '.join(departures)}:"
            )
            lines.append(
                "  its digest is recorded, not checked; its numbers compare with no other's"
            )
        return "\n".join([*lines, f"  {MEANINGLESS}"] if profile.meaningless else lines)

    @functools.cached_property
    def dataset(self) -> Dataset:
        """The collection, its splits and its evaluation sets (made on first use)."""
        return prepare(self.store, self.dataset_params)

    @functools.cached_property
    def runs(self) -> Runs:
        """The runs that the profile asks for."""
        return Runs(self.profile, self.dataset, self.store, self.estimator())

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
        first: dict[str, Trained] = {}
        for run in self.planned():
            first.setdefault(run.train.inputs["weights"], run)
        measured = [(run.train, self.runs.searched()) for run in first.values()]
        pace.calibrate(self.store, measured, self.profile.execute, self.pace_file, pace.SECONDS)
        del self.runs  # made again, with the new pace
        self.__dict__.pop("transfer_plans", None)

    def experiments(self) -> dict[str, list[Trained]]:
        """The runs of each experiment, shared ones in each."""
        found = {
            "grid": grid.runs(self.runs),
            "weight_decay": weight_decay.runs(self.runs),
            "transfer": self._transfer(),
        }
        return {name: runs for name, runs in found.items() if runs}

    @functools.cached_property
    def transfer_plans(self) -> list[Runs]:
        """The runs on each target of transfer: the study's own dataset first, then the others."""
        asked = self.profile.transfer
        found = {self.dataset_params.name: self.runs}
        for name in asked.datasets if asked else []:
            declared = load_dataset_params(name)
            if declared.name not in found:
                dataset = prepare(self.store, declared)
                runs = Runs(self.profile, dataset, self.store, self.runs.estimator)
                found[declared.name] = runs
        return list(found.values())

    def _transfer(self) -> list[Trained]:
        try:
            return transfer.runs(self.transfer_plans)
        except UserError as error:
            place = error.where or params.read(self.profile_file).place(("transfer",))
            raise UserError(error.what, where=place, remedy=error.remedy) from None

    def budget(self) -> Budget:
        """What is still to run and what that costs, by experiment."""
        self.planned()
        return budget(self.runs, self.experiments(), local.workers(self.profile.execute))

    def planned(self) -> list[Trained]:
        """Every training run of the study, each once; refused where a model or the data lack."""
        runs = self.runs
        for name, model in self.profile.models.items():
            try:
                most = runs.source(model.weights).max_tokens
            except UserError as error:
                place = params.read(self.profile_file).place(("models", name, "weights"))
                raise UserError(error.what, where=place, remedy=error.remedy) from None
            for key in ("query_tokens", "passage_tokens"):
                asked = getattr(self.profile.texts, key)
                if most is not None and asked > most:
                    raise UserError(
                        f"texts.{key} is {asked:,}, but {name} reads {most:,} tokens at the most",
                        where=params.read(self.profile_file).place(("texts", key)),
                        remedy=f"use {most:,} or less",
                    )
        largest, available = max(self.profile.grid.sizes), len(self.dataset.splits.train)
        if largest > available:
            raise UserError(
                f"grid.sizes asks for {largest:,} pairs, but {self.dataset_params.name} has "
                f"{available:,} to train on",
                where=params.read(self.profile_file).place(("grid", "sizes")),
                remedy=f"keep sizes at or below {available:,}, or name a larger dataset",
            )
        pool, negatives = len(self.dataset.splits.pool), self.profile.train.negatives.count
        if negatives > pool:
            raise UserError(
                f"train.negatives.count asks for {negatives:,} negatives, but there are {pool:,} "
                f"passages in the pool of {self.dataset_params.name}",
                where=params.read(self.profile_file).place(("train", "negatives", "count")),
                remedy=f"use {pool:,} or less",
            )
        return distinct(self.experiments())

    def missing(self) -> int:
        """How many of the planned runs lack something that was asked for."""
        there = [(self.runs.row(run), self.runs.target_rows(run)) for run in self.planned()]
        return sum(row is None or targets is None for row, targets in there)

    def sweep(self) -> dict[str, str]:
        """Make what is missing; returns label -> reason of the runs that failed.

        Some runs are known only when others are there, so it asks again until nothing is new.
        """
        self._swept = True
        failed: dict[str, str] = {}
        known: set[tuple[str, str]] = set()
        while True:
            tasks = [task for run in self.planned() for task in run.tasks]
            places = {(task.kind, self.store.key(task.kind, task.spec)) for task in tasks}
            if places <= known:
                return failed
            known |= places
            failed |= self._make(tasks)

    def _make(self, tasks: list[Task]) -> dict[str, str]:
        expected, began = self.budget(), time.monotonic()
        failed = local.run(self.store, tasks, self.profile.execute, title=self.name)
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

    def pair_losses(self) -> dict[tuple[str, int, int], NDArray[Any]]:
        """(model, D, seed) of the grid -> loss of each validation pair at the minimum, float64 [m], nats."""
        found = {
            (run.model, run.pairs, run.seed): self.runs.pair_losses(run)
            for run in grid.runs(self.runs)  # other experiments have runs of the same name
        }
        return {where: losses for where, losses in found.items() if losses is not None}

    @property
    def comparable(self) -> bool:
        """Whether the papers' own numbers may be held against this study's."""
        own = self.dataset_file == find_dataset_file(self.profile.dataset)
        return self.profile.comparable and own

    def answers(self) -> dict[str, Any]:
        """What each experiment answers: experiment -> its answers.

        They are kept in build/, under a digest of the grid table, the code and the public tables.
        """
        from repro.app import report, stamp
        from repro.experiments import classical, law_choice, metric_link

        table, path = self.grid(), self.build / "answers.json"
        decays, targets = None, pd.DataFrame()
        if self.profile.weight_decay:
            decays, targets = weight_decay.table(self.runs), weight_decay.targets(self.runs)
        asked = self.profile.transfer
        transferred = transfer.table(self.transfer_plans) if asked else None
        made_from = digest(
            {
                "grid": report.records(table),
                "decays": None
                if decays is None
                else [report.records(decays), report.records(targets)],
                "transfer": None if transferred is None else report.records(transferred),
                "prices": asked.prices if asked else None,
                "code": stamp.code(),
            }
        )
        if path.exists():
            kept = json.loads(path.read_text(encoding="utf-8"))
            if kept["made_from"] == made_from:
                return kept["answers"]
        answers = {
            "law_choice": law_choice.answers(table, self.pair_losses()),
            "metric_link": metric_link.answers(table),
            "classical": classical.answers(table),
            "transfer": transfer_answers.answers(transferred, asked.prices if asked else PRICES),
        }
        if decays is not None:
            losses = weight_decay.pair_losses(self.runs)
            answers["weight_decay"] = weight_decay.answers(decays, targets, losses)
        self.build.mkdir(parents=True, exist_ok=True)
        write_json(path, {"made_from": made_from, "answers": answers})
        return answers

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

    def inputs(self) -> list[Path]:
        """The files and folders, apart from the code, that the results depend on."""
        asked = self.profile.transfer
        names = [model.weights for model in self.profile.models.values()]
        names += list(asked.checkpoints) if asked else []
        weights = {self.runs.source(name).folder for name in names}
        others = [find_dataset_file(name).resolve() for name in (asked.datasets if asked else [])]
        files = [
            self.profile_file.resolve(),
            self.dataset_file.resolve(),
            *others,
            *sorted(weights),
        ]
        sources = [plan.dataset.params.source for plan in self.transfer_plans]
        data = [getattr(source, "folder", None) for source in sources]
        return [*files, *(folder for folder in data if folder)]

    def digests(self) -> dict[str, str]:
        """The digests of the data that the runs stand on."""
        profile = digest(self.profile.model_dump(mode="json"))
        return {**self.dataset.digests, "profile": profile}

    def provenance(self) -> dict[str, Any]:
        """Code, packages, machine and data digests, for the foot of a page."""
        return {**surroundings(), "digests": self.digests()}


def files(name: str) -> tuple[Path, Path | None]:
    """The profile file and the dataset file (None: the profile's own) that a study's name means."""
    profile, _, dataset = name.partition(":")
    named = Path(profile).absolute()
    if named.suffix not in (".yaml", ".yml") and not named.is_file():
        named = ROOT / "params" / f"{profile}.yaml"
        if not named.exists():
            known = sorted(
                p.stem for p in (ROOT / "params").glob("*.yaml") if "grid:" in p.read_text()
            )
            raise UserError(
                f"there is no profile `{profile}`", remedy=params.nearest(profile, known)
            )
    return named, find_dataset_file(dataset) if dataset else None


def _check_writable(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".probe-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise UserError(
            f"cannot write there: {error.strerror}",
            where=str(folder),
            remedy="name another folder in REPRO_HOME: runs/ and build/ go there",
        ) from None
