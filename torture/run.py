"""Torture: the sweep once undisturbed, then round after round disturbed, let finish, and compared."""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

from repro.places import ROOT, home
from torture import faults
from torture.scene import PATIENCE, Scene
from torture.sweep import digests, lay_out

PARENTS = 2
PAUSE_SECONDS = 1.2  # between two faults, on average
ROUND_SECONDS = (20.0, 120.0)  # a round is disturbed for so long


def main(arguments: list[str] | None = None) -> int:
    """Disturb for the stated time; 0 when nothing was lost, wrong or made twice."""
    parser = argparse.ArgumentParser(prog="torture", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10, help="how long it is disturbed")
    parser.add_argument("--seed", type=int, default=None, help="of all that is drawn")
    parser.add_argument("--only", action="append", choices=sorted(faults.FAULTS), help="this fault")
    parser.add_argument("--folder", type=Path, default=home() / "build" / "torture")
    args = parser.parse_args(arguments)
    seed = args.seed if args.seed is not None else time.time_ns() % 10**6
    folder = args.folder.absolute()
    if folder.exists():
        for left in folder.glob("round-*/"):
            faults.unmount(left)
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    began = time.monotonic()
    tell(began, f"seed {seed}, {args.minutes:g} minutes, in {folder}")
    profile = lay_out(folder)
    quiet = Scene(profile, folder / "undisturbed", [])
    quiet.home.mkdir()
    done = quiet.once()
    if done.returncode != 0:
        print(done.stdout + done.stderr)
        return 1
    known = digests(quiet.store.root)
    tell(began, f"undisturbed: {len(known)} results")
    ends = time.monotonic() + 60 * args.minutes
    rounds: list[dict[str, Any]] = []
    while time.monotonic() < ends:
        number = len(rounds)
        found = disturbed(profile, folder, quiet, known, Random(f"{seed} {number}"), number, ends,
                          args.only)  # fmt: skip
        rounds.append(found)
        counts = Counter(name for _, name, _ in found["done"])
        tell(began, f"round {number}: " + ", ".join(f"{n} x {name}" for name, n in counts.items()))
        for fault in found["faults"]:
            print(f"  FAULT {fault}", flush=True)
    report = summary(seed, args.minutes, rounds)
    text = json.dumps({**report, "rounds": rounds}, indent=1, ensure_ascii=False)
    (folder / "report.json").write_text(text + "\n", encoding="utf-8")
    tell(began, "all")
    for name, value in report.items():
        print(f"  {name:12} {value}")
    return 1 if report["faults"] else 0


def disturbed(
    profile: Path, folder: Path, quiet: Scene, known: dict[Any, str], random: Random, number: int,
    ends: float, only: list[str] | None,
) -> dict[str, Any]:  # fmt: skip
    """One round: disturb the sweep on a store of its own, let it finish, and compare."""
    scene = Scene(profile, folder / f"round-{number}", list(known))
    scene.home.mkdir()
    scene.own_disk = faults.mount(scene.home)
    lay_in(scene, quiet, random)
    names = only or list(faults.FAULTS)
    weights = [faults.FAULTS[name][1] for name in names]
    until = min(ends, time.monotonic() + random.uniform(*ROUND_SECONDS))
    while time.monotonic() < until:
        scene.tend(random, PARENTS)
        time.sleep(min(random.expovariate(1 / PAUSE_SECONDS), max(0, until - time.monotonic())))
        scene.act(random.choices(names, weights)[0], random)
    scene.end_all()
    for parent in scene.parents:
        if parent.log.exists():
            scene.look(parent)
    finish(scene, known)
    if scene.faults:
        kept = folder / f"kept-{number}"
        shutil.copytree(scene.home, kept, symlinks=True)
        scene.faults.append(f"its store is kept in {kept}")
    if scene.own_disk:
        faults.unmount(scene.home)
    shutil.rmtree(scene.home, ignore_errors=True)
    return {
        "round": number,
        "faults": scene.faults,
        "restarts": scene.restarts,
        "done": [(round(seconds, 2), name, words) for seconds, name, words in scene.done],
    }


def lay_in(scene: Scene, quiet: Scene, random: Random) -> None:
    """Begin with an empty store, with one that has the data, or with a part of the runs as well."""
    share = random.choice([-1.0, 0.0, 0.5])
    for place in sorted(scene.places):
        if share >= 0 and (
            place[0] in ("collection", "splits", "tokens") or random.random() < share
        ):
            shutil.copytree(quiet.store.path(*place), scene.store.path(*place))


def finish(scene: Scene, known: dict[Any, str]) -> None:
    """Let the sweep end undisturbed, and compare: nothing lost, nothing wrong, nothing twice."""
    try:
        done = scene.once()
    except subprocess.TimeoutExpired:
        scene.faults.append(f"it did not end in {PATIENCE:.0f} s")
        return
    said = done.stdout + done.stderr
    if done.returncode != 0 or "Traceback" in said:
        scene.faults.append(f"left alone it ended with {done.returncode}: {said[-1500:]}")
    verified = command(scene, "store", "verify")
    if verified.returncode != 0:
        scene.faults.append(f"store verify: {verified.stdout[-500:]}{verified.stderr[-500:]}")
    found = digests(scene.store.root)
    for place in sorted(known.keys() | found.keys()):
        name = "/".join(place)
        if place not in found:
            scene.faults.append(f"{name} is lost")
        elif place not in known:
            scene.faults.append(f"{name} was never asked for")
        elif found[place] != known[place]:
            scene.faults.append(
                f"{name} is wrong: its numbers are not those of the undisturbed sweep"
            )
    harmed = Counter(scene.harmed)
    made = Counter(scene.made.read_text(encoding="utf-8").split())
    for name, n in made.items():
        if n > 1 + harmed[name]:
            scene.faults.append(f"{name} was made {n} times, and damaged {harmed[name]} times")
    aside = [path for path in scene.store.root.glob("*/.aside/*") if path.is_dir()]
    for path in aside:
        name = f"{path.parts[-3]}/{path.name.partition('.')[0]}"
        if not harmed[name] and made[name]:
            scene.faults.append(f"{name} was set aside, and nobody had damaged it")
    cleaned = command(scene, "store", "gc", "--yes", "--older", "0")
    left = [
        str(path.relative_to(scene.store.root))
        for path in scene.store.root.rglob("*")
        if path.is_file() and any(p.startswith(".") for p in path.relative_to(scene.home).parts)
    ]
    left = [name for name in left if not name.startswith(".plans/") or "/." in name]
    if cleaned.returncode != 0 or left:
        scene.faults.append(f"after gc there is left: {left[:5]} {cleaned.stderr[-300:]}")


def command(scene: Scene, *words: str) -> subprocess.CompletedProcess[str]:
    """What `repro WORDS` does on the store of a round."""
    environment = {k: v for k, v in scene.environment().items() if k != "TORTURE"}
    return subprocess.run(
        [sys.executable, "-m", "repro.app.cli", *words], env=environment, cwd=ROOT, text=True,
        capture_output=True,
    )  # fmt: skip


def summary(seed: int, minutes: float, rounds: list[dict[str, Any]]) -> dict[str, Any]:
    """The counts over all rounds."""
    counts = Counter(name for each in rounds for _, name, _ in each["done"])
    return {
        "seed": seed,
        "minutes": minutes,
        "rounds": len(rounds),
        "kills": sum(counts[name] for name in faults.KILLS),
        "corruptions": sum(counts[name] for name in faults.DAMAGES),
        "restarts": sum(each["restarts"] for each in rounds),
        "by fault": dict(counts.most_common()),
        "faults": sum(len(each["faults"]) for each in rounds),
    }


def tell(began: float, text: str) -> None:
    """A line with the time since the start."""
    seconds = int(time.monotonic() - began)
    print(f"{seconds // 60:2d}:{seconds % 60:02d} {text}", flush=True)
