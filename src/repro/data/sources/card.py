"""Which files of a hub repository make up a config and split: told by its card, else by their names.

The card is the YAML head of README.md; `configs:` there says it all.  A repository without goes by
the names, in a folder named like the config: `corpus/train-00000-of-00002.parquet` is of the split
train.  A loading script is never run.
"""

from __future__ import annotations

import functools
import re
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from repro.data.sources.rows import suffix_of
from repro.document import scanned
from repro.errors import UserError, nearest
from repro.hub import Repository

MOST_CARD = 2**20  # characters of YAML; the largest seen have a tenth of it


def files_of(repository: Repository, config: str | None, split: str) -> list[str]:
    """The names of the files of a config (None: the only or default one) and split, in their order.

    Raises `UserError` where there is no such config or split, naming those that are there.
    """
    configs = _configs(repository)
    if not configs:
        return _by_name(repository, config, split)
    chosen = _choose(repository, configs, config)
    if "data_files" not in chosen:
        return _by_name(repository, str(chosen.get("data_dir") or config or ""), split)
    splits = _splits(chosen["data_files"])
    if split not in splits:
        raise UserError(
            f"`{repository.name}` has no split `{split}` in the config "
            f"`{chosen['config_name']}` (there are: {', '.join(splits)})",
            remedy=nearest(split, list(splits)),
        )
    return [name for pattern in splits[split] for name in matching(repository, pattern)]


def matching(repository: Repository, pattern: str) -> list[str]:
    """The files that match `pattern`; raises `UserError` where there is none."""
    found = repository.matching(pattern)
    if not found:
        raise UserError(
            f"`{repository.name}` has no file `{pattern}`",
            remedy=nearest(pattern, _shown(repository)),
        )
    return found


def _configs(repository: Repository) -> list[dict[str, Any]]:
    """The entries of `configs:` in the card; [] where there are none."""
    if "README.md" not in repository.files:
        return []
    (path,) = repository.fetch(["README.md"])
    text = path.read_text(encoding="utf-8-sig", errors="replace")
    head = re.match(r"---\s*\n(.*?)\n---\s*(\n|$)", text, re.DOTALL)
    try:
        found = _parsed(head[1]) if head else None
    except (
        YAMLError,
        ArithmeticError,
        AttributeError,
        LookupError,
        TypeError,
        ValueError,
    ) as error:
        raise UserError(
            f"the card of `{repository.name}` is not YAML: {str(error).splitlines()[0]}",
            where=str(path),
            remedy="name the files of the repository (`files:`) in place of config and split",
        ) from None
    configs = found.get("configs") if isinstance(found, dict) else None
    listed = configs if isinstance(configs, list) else []
    named = [each for each in listed if isinstance(each, dict) and "config_name" in each]
    return [each for each in named if _plain(each["config_name"])]


@functools.lru_cache(maxsize=16)
def _parsed(head: str) -> Any:
    """The YAML of a card; several tables ask for it."""
    if len(head) > MOST_CARD:
        raise ValueError(f"it has more than {MOST_CARD:,} characters")
    for _ in scanned(head, ""):
        pass
    return YAML(typ="safe").load(head)


def _choose(
    repository: Repository, configs: list[dict[str, Any]], config: str | None
) -> dict[str, Any]:
    by_name = {str(each["config_name"]): each for each in configs}
    marked = [name for name, each in by_name.items() if each.get("default")]
    name = config
    if name is None:
        default = "default" if "default" in by_name else ""
        name = (marked or [default or (next(iter(by_name)) if len(by_name) == 1 else "")])[0]
    if name not in by_name:
        raise UserError(
            f"`{repository.name}` has no config `{name}` (there are: {', '.join(by_name)})"
            if name
            else f"`{repository.name}` has several configs: {', '.join(by_name)}",
            remedy=nearest(name, list(by_name)),
        )
    return by_name[name]


def _splits(data_files: Any) -> dict[str, list[str]]:
    """split -> patterns.  Without a split it is train, as in the hub's own library."""
    found: dict[str, list[str]] = {}
    for each in data_files if isinstance(data_files, list) else [data_files]:
        of = each if isinstance(each, dict) else {"path": each}
        paths = of.get("path")
        patterns = [
            path for path in (paths if isinstance(paths, list) else [paths]) if _plain(path)
        ]
        split = of.get("split", "train")
        if _plain(split):
            found.setdefault(str(split), []).extend(map(str, patterns))
    return found


def _plain(value: Any) -> bool:
    """Whether it is a name: aliases can make a list that is endless as a text."""
    return isinstance(value, str | int | float)


def _by_name(repository: Repository, folder: str | None, split: str) -> list[str]:
    """The data files in `folder` (where there is one) in whose name or folders the split stands."""
    data = [name for name in repository.files if suffix_of(name)]
    prefix = f"{folder.strip('/')}/" if folder else ""
    inside = [name for name in data if name.startswith(prefix)]
    word = re.compile(rf"(?<![a-zA-Z0-9]){re.escape(split)}(?![a-zA-Z0-9])", re.IGNORECASE)
    found = [name for name in inside if word.search(name.removeprefix(prefix))]
    kinds = {suffix_of(name) for name in found}
    partial = [name for name in found if f"partial-{split}" in name]
    if partial:
        raise UserError(
            f"`{repository.name}` has the split `{split}` in part only: {partial[0]}",
            remedy="the hub converts no more than the first gigabytes; name the files of another revision",
        )
    if len(kinds) == 1:
        return found
    script = f"{repository.name.rpartition('/')[2]}.py"
    if script in repository.files:
        raise UserError(
            f"`{repository.name}` has a loading script ({script}) and no configs in its card; such "
            "scripts are run no more, by the hub's library neither",
            remedy="add `revision: refs/convert/parquet` (the hub's own conversion, where it has one), "
            f"or name its files (`files:`): {', '.join(_shown(repository)[:8])}",
        )
    what = f"files of several kinds ({', '.join(sorted(kinds))})" if kinds else "no file"
    raise UserError(
        f"`{repository.name}` has no configs in its card, and {what} for the split `{split}`"
        + (f" in {prefix}" if folder else ""),
        remedy=f"name them (`files:`); the repository has: {', '.join(_shown(repository)[:8]) or 'none'}",
    )


def _shown(repository: Repository) -> list[str]:
    return [name for name in repository.files if suffix_of(name)]
