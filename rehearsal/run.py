"""Rehearse: lay out the copies, run each profile on them as `make reproduce` does, check what comes out."""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rehearsal import check, cut, hub
from rehearsal.make import lay_out
from repro import params
from repro.app.named import files
from repro.document import Document, read
from repro.experiments.profile import Profile
from repro.places import ROOT, home

PROFILES = ("paper", "sigir24", "t2ranking", "transfer")
MIRRORED = ("sigir24", "t2ranking")  # read a mirror of the hub; the others the hub library's cache
QUIET = re.compile(
    r" done, (running|about)|^\s*$|^ +\w+ +[\d.]+ s$"
)  # lines that tell no new stage


@dataclass
class Rehearsed:
    """What a profile's rehearsal took and left."""

    profile: str
    stages: list[tuple[float, str]] = field(default_factory=list)  # seconds from its start, a line
    seconds: float = 0.0
    core_seconds: float = 0.0  # of the processor, all processes together
    faults: list[str] = field(default_factory=list)
    notebooks: dict[str, list[str]] = field(default_factory=dict)
    claims: list[dict[str, Any]] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        """Whether nothing was wrong."""
        return not self.faults and not any(self.notebooks.values())


def main(arguments: list[str] | None = None) -> int:
    """Rehearse the profiles; 0 when all is well."""
    parser = argparse.ArgumentParser(prog="rehearsal", description=__doc__)
    parser.add_argument("profiles", nargs="*", default=[], help="default: " + ", ".join(PROFILES))
    parser.add_argument("--folder", type=Path, default=home() / "build" / "rehearsal")
    parser.add_argument("--go-on", action="store_true", help="keep what an earlier rehearsal made")
    args = parser.parse_args(arguments)
    folder = args.folder.absolute()
    began = time.monotonic()
    if not args.go_on:
        shutil.rmtree(folder, ignore_errors=True)
    stage = Stage(folder)
    print(f"{clock(time.monotonic() - began)} copies laid out in {folder}", flush=True)
    done = []
    for name in args.profiles or PROFILES:
        print(f"{clock(time.monotonic() - began)} {name}", flush=True)
        done.append(stage.rehearse(name))
        tell(done[-1])
    print(f"{clock(time.monotonic() - began)} all")
    for each in done:
        print(
            f"  {each.profile:12} {each.seconds:5.0f} s  {'clean' if each.clean else 'NOT CLEAN'}"
        )
    write_report(folder / "report.json", done, time.monotonic() - began)
    return 0 if all(each.clean for each in done) else 1


class Stage:
    """A folder with the copies, the cut files and a home for the runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made = folder / "made"
        if not (self.made / "made.json").is_file():
            lay_out(self.made)
        self.about = json.loads((self.made / "made.json").read_text(encoding="utf-8"))

    def rehearse(self, name: str) -> Rehearsed:
        """Run one profile under its cut, and check what it left."""
        study = self.study(name)
        found = Rehearsed(name)
        began, before = time.monotonic(), processor()
        log = self.folder / f"{name}.log"
        command = [sys.executable, "-m", "repro.app.cli", "reproduce", study]
        with (
            log.open("w", encoding="utf-8", buffering=1) as file,
            subprocess.Popen(
                command, cwd=ROOT, env=self.environment(name), text=True, encoding="utf-8",
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            ) as process,
        ):  # fmt: skip
            assert process.stdout is not None
            try:
                for line in process.stdout:
                    seconds = time.monotonic() - began
                    file.write(f"{seconds:7.1f} {line}")
                    if not QUIET.search(line):
                        found.stages.append((seconds, line.rstrip()))
                    found.faults += [f"{log.name}: {line.strip()}"] if unwanted(line) else []
            except BaseException:  # ended from outside: the study ends with it
                process.terminate()
                raise
        found.seconds, found.core_seconds = time.monotonic() - began, processor() - before
        if process.returncode:
            found.faults.append(f"it ended with {process.returncode}: see {log}")
        self._check(name, found)
        return found

    def study(self, name: str) -> str:
        """The study's name: the profile as it stands, under an overlay that is written here."""
        data, datasets = self.document(name).data, self.folder / "datasets"
        for each in cut.read_by(data):
            counts = self.about[each]["counts"]
            cut.write(datasets / f"{each}.yaml", cut.dataset(each, counts, datasets))
        over = cut.overlay(data, datasets)
        for line in cut.said(data, over):
            print(f"  cut  {line}")
        return f"{name}+{cut.write(self.cut(name), over)}"

    def cut(self, name: str) -> Path:
        """Where the overlay of a profile lies."""
        return self.folder / "overlays" / name / "cut.yaml"

    def document(self, name: str, *more: Path) -> Document:
        """The profile (or profile+overlay) of that name as it stands, under `more` overlays."""
        profile, _, overlays = files(name)
        return read(profile, *overlays, *more)

    def environment(self, name: str) -> dict[str, str]:
        """Where the hub lies, and where results go; no network whatever is set outside."""
        revisions: dict[str, list[str]] = {}
        for file in sorted((self.folder / "datasets").glob("*.yaml")):
            source = read(file).data["source"]
            revisions.setdefault(source["repo"], []).append(source.get("revision") or "main")
        found = {
            **os.environ,
            "REPRO_HOME": str(self.folder / "home"),
            "HF_HUB_OFFLINE": "1",
            "HF_HUB_CACHE": str(hub.cache(self.made / "hub", self.folder / "cache", revisions)),
            "OMP_NUM_THREADS": "1",
            "PYTHONUNBUFFERED": "1",
        }
        found.pop("REPRO_HUB_MIRROR", None)
        if name.partition("+")[0] in MIRRORED:
            found["REPRO_HUB_MIRROR"] = str(self.made / "hub")
            found["HF_HUB_CACHE"] = str(self.folder / "nothing")
        return found

    def _check(self, name: str, found: Rehearsed) -> None:
        document = self.document(name, self.cut(name))
        data = Path(document.data["dataset"]).stem
        build = self.folder / "home" / "build" / f"{name}+cut-{data}"
        if not (build / "report.json").is_file():
            found.faults.append("it left no report.json")
            return
        report = json.loads((build / "report.json").read_text(encoding="utf-8"))
        found.claims = report["claims"]
        found.faults += check.claims(report, params.validate(document, Profile))
        found.notebooks = check.notebooks(build)


def unwanted(line: str) -> bool:
    """Whether a line of the command's output tells of a warning or a traceback."""
    return any(check.UNWANTED[what].search(line) for what in ("a warning", "a traceback"))


def tell(found: Rehearsed) -> None:
    """The time line of a profile, and what is wrong."""
    for seconds, line in found.stages:
        print(f"  {clock(seconds)} {line}")
    for fault in found.faults:
        print(f"  FAULT {fault}")
    for name, faults in found.notebooks.items():
        for fault in faults:
            print(f"  FAULT {name}: {fault}")
    sys.stdout.flush()


def write_report(path: Path, done: list[Rehearsed], seconds: float) -> None:
    """Every notebook's result and every claim's, by profile."""
    profiles = {
        each.profile: {
            "seconds": round(each.seconds, 1),
            "core_seconds": round(each.core_seconds, 1),
            "stages": each.stages,
            "faults": each.faults,
            "notebooks": {
                name: {"result": "faulty" if faults else "clean", "faults": faults}
                for name, faults in each.notebooks.items()
            },
            "claims": each.claims,
        }
        for each in done
    }
    report = {"seconds": round(seconds, 1), "meaningless": True, "profiles": profiles}
    path.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def processor() -> float:
    """Seconds of the processor that finished child processes took, with their own children."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def clock(seconds: float) -> str:
    """Minutes and seconds."""
    return f"{int(seconds) // 60:2d}:{int(seconds) % 60:02d}"
