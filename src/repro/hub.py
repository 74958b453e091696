"""The door to the model hub: the files of a repository, from a local mirror, the cache or the network.

REPRO_HUB_MIRROR names a folder that stands for the hub: `<folder>/<org>/<name>/` holds the files of
a repository, `<folder>/<org>/<name>@<revision>/` those of one revision of it, which goes first.
`hf download org/name --repo-type dataset --local-dir <folder>/org/name` lays it out.  Where it is set
nothing else is asked.  Else huggingface_hub answers, from its cache where HF_HUB_OFFLINE is set or
the network is down.  Tokens are its own business (HF_TOKEN): they are never read or shown here.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from repro.errors import UserError, nearest
from repro.files import read_json

MIRROR = "REPRO_HUB_MIRROR"
Kind = Literal["model", "dataset"]
_NAME = re.compile(r"(?!\.+$)[\w.-]{1,96}", re.ASCII)
_REVISION = re.compile(r"[\w.-]{1,96}(/[\w.-]{1,96}){0,3}", re.ASCII)
_PARTS = re.compile(r"(\*\*/|\*\*|\*|\?)")


@dataclass(frozen=True)
class Repository:
    """One revision of a repository and the names of its files.

    `folder` holds them where it is on this machine whole (a mirror, or a folder of one's own).
    `commit` is the revision that the hub resolved, "" where it was not asked.
    """

    name: str
    files: tuple[str, ...]
    kind: Kind
    folder: Path | None
    commit: str = ""

    def matching(self, pattern: str) -> list[str]:
        """The files that match, sorted: `*` stays inside a folder, `**` does not."""
        parts = [part for part in _PARTS.split(pattern.removeprefix("./")) if part]
        return [name for name in self.files if _matches(name, parts)]

    def fetch(self, files: Iterable[str]) -> list[Path]:
        """Where those files lie on this machine, downloaded if they must be; raises `UserError`."""
        wanted = list(files)
        folder = self.folder or _snapshot(self.name, self.commit, self.kind, wanted)
        return [folder / name for name in wanted]


def open_repository(name: str, revision: str | None, kind: Kind) -> Repository:
    """The repository `name` (org/name) at a commit, branch or tag; nothing large is downloaded.

    Raises `UserError` where there is no such repository or revision, no leave to read it, or neither
    network nor cache has it.
    """
    folder = mirrored(name, revision)
    if folder is not None:
        return open_folder(folder, name, kind)
    card = _snapshot(name, revision, kind, ["README.md"])  # .../snapshots/<commit>
    return Repository(name, _listed(name, card, kind), kind, None, card.name)


def open_folder(folder: Path, name: str = "", kind: Kind = "dataset") -> Repository:
    """A folder on this machine in the layout of a repository."""
    if not folder.is_dir():
        raise UserError(
            "there is no such folder",
            where=str(folder),
            remedy="name the folder that holds the files of a repository",
        )
    return Repository(name or str(folder), _files(folder), kind, folder)


def _matches(name: str, parts: list[str]) -> bool:
    """Whether `name` is of the pattern with these parts; in time of the one times the other."""
    ends = {0}  # how much of the name the parts so far can stand for
    for part in parts:
        if part == "**/":
            ends |= {at + 1 for at in range(min(ends), len(name)) if name[at] == "/"}
        elif part == "**":
            ends = set(range(min(ends), len(name) + 1))
        elif part == "*":
            reach: set[int] = set()
            for at in sorted(ends):
                if at not in reach:
                    end = name.find("/", at)
                    reach |= set(range(at, (len(name) if end < 0 else end) + 1))
            ends = reach
        elif part == "?":
            ends = {at + 1 for at in ends if name[at : at + 1] not in ("", "/")}
        else:
            ends = {at + len(part) for at in ends if name.startswith(part, at)}
        if not ends:
            return False
    return len(name) in ends


def file_sha256(path: Path) -> str:
    """sha256 of a file; the cache of the hub names large ones by it, so those are not read again."""
    blob = path.resolve()
    if blob.parent.name == "blobs" and re.fullmatch("[0-9a-f]{64}", blob.name):
        return blob.name
    stat = blob.stat()
    return _sha256(blob, stat.st_size, stat.st_mtime_ns)


@functools.lru_cache(maxsize=1024)
def _sha256(path: Path, size: int, modified: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def local(name: str, revision: str | None, kind: Kind) -> Path | None:
    """The folder of a repository on this machine, mirrored or cached; None where there is none.

    The network is not asked, so that a cached one may lack files.
    """
    try:
        folder = mirrored(name, revision)
    except UserError:
        return None
    if folder is not None:
        return folder
    from huggingface_hub import errors, snapshot_download

    try:
        found = snapshot_download(
            name, repo_type=kind, revision=revision or None, local_files_only=True
        )
    except errors.IncompleteSnapshotError as error:  # the rule: nobody needs all files
        return Path(error.snapshot_path)
    except (OSError, ValueError, errors.HFValidationError):
        return None
    return Path(found)


def open_local(name: str, revision: str | None, kind: Kind) -> Repository | None:
    """The repository as far as it is on this machine: `files` names all of them, `folder` has some.

    None where it is not here, or not even its card or the list of its files.
    """
    folder = local(name, revision, kind)
    if folder is None:
        return None
    if mirrored(name, revision) is not None:
        return open_folder(folder, name, kind)
    files = _kept_list(folder)
    if files is None or ("README.md" in files and not (folder / "README.md").is_file()):
        return None
    return Repository(name, files, kind, folder, folder.name)


def mirrored(name: str, revision: str | None = None) -> Path | None:
    """The folder of a repository in the local mirror; None where REPRO_HUB_MIRROR is not set.

    Raises `UserError` where the mirror does not have it.
    """
    if not os.environ.get(MIRROR):
        return None
    root = Path(os.environ[MIRROR]).expanduser().absolute()
    _check_name(name, revision or "main")
    exact = [root / f"{name}@{revision}"] if revision else []
    for folder in (*exact, root / name):
        if folder.is_dir() and ".." not in folder.parts:
            return folder
    there = sorted(f"{path.parent.name}/{path.name}" for path in root.glob("*/*") if path.is_dir())
    near = nearest(name, there) if there else "the folder is empty"
    raise UserError(
        f"the mirror of the hub has no `{name}`",
        where=f"{MIRROR}={root}",
        remedy=f"put its files into {root / name}/, or unset {MIRROR} ({near})",
    )


def _check_name(name: str, revision: str) -> None:
    """Refuse what the hub has no names for: they become names of folders."""
    parts = name.split("/")
    if len(parts) != 2 or not all(map(_NAME.fullmatch, parts)):
        raise UserError(f"`{name[:120]}` is no name of a repository", remedy="write org/name")
    if not _REVISION.fullmatch(revision):
        raise UserError(
            f"`{revision[:120]}` is no revision of a repository",
            remedy="name a branch, a tag or a commit",
        )


def _files(folder: Path) -> tuple[str, ...]:
    """The files under `folder` by name, those in hidden folders (.cache, .git) left out."""
    names = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return tuple(sorted(name.as_posix() for name in names if not name.parts[0].startswith(".")))


def _listed(name: str, snapshot: Path, kind: Kind) -> tuple[str, ...]:
    """All files of the commit, of which the snapshot may hold a few."""
    from huggingface_hub import HfApi, errors

    kept = _kept_list(snapshot)
    if kept is not None:
        return kept
    try:
        return tuple(sorted(HfApi().list_repo_files(name, revision=snapshot.name, repo_type=kind)))
    except (errors.OfflineModeIsEnabled, errors.HTTPError) as error:
        raise UserError(
            f"the cache does not say which files `{name}` has: {_first_line(error)}",
            remedy=f"run once with a network, or put a copy into a mirror ({MIRROR})",
        ) from None


def _kept_list(snapshot: Path) -> tuple[str, ...] | None:
    """The files of the commit by the list that the client keeps beside its cache; None without one.

    That is `trees/<commit>.json`, format 1 of huggingface_hub 2.4; a commit does not change, so nobody
    need be asked again.
    """
    tree = snapshot.parent.parent / "trees" / f"{snapshot.name}.json"
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        kept = read_json(tree)
        if kept["format_version"] == 1:
            return tuple(sorted(kept["files"]))
    return None


def _snapshot(name: str, revision: str | None, kind: Kind, files: list[str]) -> Path:
    """The cache's folder of a commit, with these of its files in it."""
    from huggingface_hub import errors, snapshot_download, utils

    _check_name(name, revision or "main")
    if not sys.stderr.isatty():
        utils.disable_progress_bars()  # in a notebook or a log a bar is a fault to be looked into
    try:
        return Path(
            snapshot_download(name, repo_type=kind, revision=revision or None, allow_patterns=files)
        )
    except errors.GatedRepoError:
        what = f"`{name}` is gated, and no leave to read it was given"
        remedy = (
            f"accept its terms on https://huggingface.co/{_page(name, kind)}, then set HF_TOKEN"
        )
    except errors.RepositoryNotFoundError:
        what = f"there is no {kind} `{name}` on the hub, or it is private"
        remedy = "check the name; for a private one set HF_TOKEN"
    except errors.RevisionNotFoundError:
        what = f"`{name}` has no revision `{revision}`"
        remedy = f"see https://huggingface.co/{_page(name, kind)}/commits/main"
    except (OSError, errors.HTTPError, errors.HFValidationError) as error:
        what = f"cannot get `{name}` from the hub: {_first_line(error)}"
        remedy = f"where it can be reached run `{_command(name, revision, kind)}`, and set {MIRROR}=mirror"
    raise UserError(what, remedy=remedy)


def _command(name: str, revision: str | None, kind: Kind) -> str:
    of_kind = " --repo-type dataset" if kind == "dataset" else ""
    at = f" --revision {revision}" if revision else ""
    return f"hf download {name}{of_kind}{at} --local-dir mirror/{name}"


def _page(name: str, kind: Kind) -> str:
    return f"datasets/{name}" if kind == "dataset" else name


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:160]
