"""A study's name: `profile[+overlay...][:dataset]`, each a name or a path; or as it is printed."""

from __future__ import annotations

import contextlib
from pathlib import Path

from repro.data.dataset import find_dataset_file
from repro.errors import UserError, nearest
from repro.places import ROOT, home
from repro.store import Store
from repro.work import plans


def files(name: str) -> tuple[Path, Path | None, list[Path]]:
    """What a study's name means: profile file, dataset file (None: the profile's own), overlays."""
    known = (ROOT / "params").glob("*.yaml")
    profiles = sorted(path.stem for path in known if "\ngrid:" in path.read_text(encoding="utf-8"))
    name = _printed(name, profiles)
    profile, _, dataset = name.partition(":")
    parts = [profile] if Path(profile).is_file() else profile.split("+")
    first = _file(parts[0], ROOT / "params", "profile", profiles)
    folder = ROOT / "params" / "overlays"
    there = sorted(path.stem for path in folder.glob("*.yaml"))
    overlays = [_file(part, folder, "overlay", there) for part in parts[1:]]
    return first, find_dataset_file(dataset) if dataset else None, overlays


def _printed(name: str, profiles: list[str]) -> str:
    """`first-mine`, as a study is called where it is printed, as `first:mine`; else `name` as it is."""
    if ":" in name or "/" in name or name in profiles or Path(name).is_file():
        return name
    for plan in plans.load_all(Store(home() / "runs")):
        if plan.study == name:
            profile, dataset, *overlays = map(str, plan.files)
            return f"{'+'.join((profile, *overlays))}:{dataset}"
    for at in (at for at, letter in enumerate(name) if letter == "-"):
        if name[:at].split("+")[0] in profiles:
            with contextlib.suppress(UserError):
                find_dataset_file(name[at + 1 :])
                return f"{name[:at]}:{name[at + 1 :]}"
    return name


def _file(name: str, folder: Path, what: str, known: list[str]) -> Path:
    """The parameter file that is meant by a name (in `folder`) or by a path."""
    named = Path(name).expanduser().absolute()
    if named.suffix in (".yaml", ".yml") or named.is_file():
        return named
    if not (folder / f"{name}.yaml").exists():
        raise UserError(f"there is no {what} `{name}`", remedy=nearest(name, known))
    return folder / f"{name}.yaml"
