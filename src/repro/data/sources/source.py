"""What every source offers: its parameters, a fingerprint of what it reads, and the records."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

from repro.data.collection import Records
from repro.params import Params


class SourceParams(Params):
    """Base of all sources: a subclass is the parameters of one kind of source, and its reader."""

    kind: str

    def paths(self) -> dict[str, list[Path]]:
        """The files and folders that are read, by field: their place does not determine the records."""
        found = {name: value if isinstance(value, list) else [value] for name, value in self}
        return {
            name: values
            for name, values in found.items()
            if values and all(isinstance(value, Path) for value in values)
        }

    def placed(self, folder: Path) -> Self:
        """The same source, its relative paths starting from `folder`."""
        update = {
            name: [folder / path.expanduser() for path in paths]
            for name, paths in self.paths().items()
        }
        return self.model_copy(
            update={
                name: paths if isinstance(getattr(self, name), list) else paths[0]
                for name, paths in update.items()
            }
        )

    def fingerprint(self) -> dict[str, Any]:
        """All that determines the records besides the parameters: versions, digests of files.

        Raises `UserError` where the source is not there or is not the one that is meant.
        """
        raise NotImplementedError

    def here(self) -> bool:
        """Whether it can be read without a network."""
        return True

    def parts(self) -> list[str]:
        """The parts of the judgements (train, dev, ...), where the source keeps them apart."""
        return []

    def departures(self) -> list[str]:
        """What of the source is, allowedly, other than the text that `expected` was stated for."""
        return []

    def origin(self) -> dict[str, str]:
        """Where the text came from, to be recorded beside it: name -> commit or version."""
        return {}

    def read(self) -> Records:
        """The records, in a fixed order; raises `UserError` where they cannot be read."""
        raise NotImplementedError


def titled(title: str, text: str) -> str:
    """The text of a passage: its title, where it has one, on a line of its own before it."""
    return f"{title.strip()}\n{text}" if title.strip() else text
