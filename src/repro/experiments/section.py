"""What the sections of a profile share: refusing models and sizes that its grid could not run either."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from repro.errors import nearest
from repro.train.loop import TrainParams


def check(
    section: str,
    models: Mapping[str, Iterable[str]],
    sizes: Iterable[int],
    rates: Mapping[str, float],
    train: TrainParams,
) -> None:
    """Refuse a model that is not in the profile, and a data size under its batch.

    models: key of the section -> the models it names.  rates: the profile's models, name -> learning
    rate.
    """
    for key, names in models.items():
        for name in set(names) - set(rates):
            raise ValueError(
                f"{section}.{key} names `{name}`, which is not among the models\n"
                f"  remedy: {nearest(name, list(rates))}"
            )
    if train.batch_pairs > min(sizes):
        raise ValueError(
            f"train.batch_pairs {train.batch_pairs} is larger than the smallest size of "
            f"{section}, {min(sizes)}\n  remedy: lower the batch, or drop that size"
        )
