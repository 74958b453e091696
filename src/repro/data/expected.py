"""What a collection must turn out to be, and what is known of it before it is read."""

from __future__ import annotations

from pydantic import Field

from repro.data.collection import Collection
from repro.errors import UserError
from repro.params import Params


class Expected(Params):
    """Of what is read and left after duplicates; what is not stated is not checked."""

    digest: str | None = Field(default=None, pattern="^[0-9a-f]{64}$")
    queries: int | None = Field(default=None, ge=1)
    passages: int | None = Field(default=None, ge=1)
    pairs: int | None = Field(default=None, ge=1)
    within: float = Field(default=0, ge=0, le=0.5)  # the share by which a count may be another

    def check(self, collection: Collection) -> None:
        """Raise `UserError` where `collection` is another one."""
        if self.digest is not None and collection.digest != self.digest:
            raise _another(collection, "digest", collection.digest, self.digest)
        for what, found in collection.counts.items():
            expected: int | None = getattr(self, what)
            if expected is not None and abs(found - expected) > self.within * expected:
                raise _another(collection, what, found, expected)


class Declared(Params):
    """What `repro check` plans with where the data is not here."""

    train_pairs: int = Field(ge=0)  # judged pairs that the splits leave for training are drawn from
    query_tokens: float = Field(gt=2, le=32_768)  # mean, the two special ones included
    passage_tokens: float = Field(gt=2, le=32_768)
    bytes: int = Field(ge=0)  # downloaded


def _another(collection: Collection, what: str, found: object, expected: object) -> UserError:
    return UserError(
        f"the collection {collection.name} is not the expected one: "
        f"its {what} is {found}, {expected} was expected",
        remedy="check the source; where the change is meant, put it under `expected:`",
    )
