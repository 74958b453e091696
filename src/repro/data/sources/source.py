"""What every source offers: its parameters, a fingerprint of what it reads, and the records."""

from __future__ import annotations

from typing import Any

from repro.data.collection import Records
from repro.params import Params


class SourceParams(Params):
    """Base of all sources: a subclass is the parameters of one kind of source, and its reader."""

    kind: str

    def fingerprint(self) -> dict[str, Any]:
        """All that determines the records besides the parameters: versions, digests of files.

        Raises `UserError` where the source is not there or is not the one that is meant.
        """
        raise NotImplementedError

    def departures(self) -> list[str]:
        """What of the source is, allowedly, other than the text that `expected` was stated for."""
        return []

    def read(self) -> Records:
        """The records, in a fixed order; raises `UserError` where they cannot be read."""
        raise NotImplementedError
