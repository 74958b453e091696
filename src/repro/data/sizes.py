"""How large the splits are to be, and which parts of the judgements they come from."""

from __future__ import annotations

from pydantic import Field, model_validator

from repro.params import Params, distinct


class Official(Params):
    """The parts of the judgements (train, dev, ...) that train, and those that test.

    Test pairs come from the latter alone, all other splits from the former.  Nothing is dropped between
    the two: what they share is counted and reported.
    """

    train: list[str]  # []: the dataset is evaluated only
    test: list[str] = Field(min_length=1)

    @model_validator(mode="after")
    def _apart(self) -> Official:
        distinct([*self.train, *self.test])
        return self


class SplitSizes(Params):
    """Pairs in each split; what is left trains, and must be `train` at least."""

    validation: int = Field(default=600, ge=0, le=10**6)
    test: int = Field(default=1000, ge=1, le=10**6)
    tuning: int = Field(default=3000, ge=0, le=10**6)
    generator: int = Field(default=2000, ge=0, le=10**6)  # kept for training a query generator
    held_out: int = Field(default=1700, ge=0, le=10**6)  # about: whole groups, for out of domain
    train: int = Field(default=10240, ge=0, le=10**9)
    official: Official | None = None

    @property
    def sizes(self) -> dict[str, int]:
        """The pairs of each split, by name."""
        return self.model_dump(exclude={"official"})

    @model_validator(mode="after")
    def _trains_or_not(self) -> SplitSizes:
        trains = self.official is None or bool(self.official.train)
        for name in ("validation", "tuning", "train"):
            if trains and not getattr(self, name):
                raise ValueError(f"{name} has no pairs\n  remedy: {name}: 1 or more")
        for name in ("validation", "tuning", "generator", "held_out", "train"):
            if not trains and getattr(self, name):
                raise ValueError(
                    f"no part of the judgements trains, so {name} can have none\n  remedy: {name}: 0, "
                    "or name the parts that train under official.train"
                )
        return self
