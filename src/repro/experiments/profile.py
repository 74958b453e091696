"""A profile: the scale of a study, composed of the parameters that each room declares for itself."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from repro.experiments.grid import GridParams
from repro.experiments.transfer import TransferParams
from repro.experiments.weight_decay import DecayParams
from repro.measure.ranking import RankingParams
from repro.model.encoder import EncoderParams
from repro.model.texts import TextParams
from repro.params import Params, nearest
from repro.train.curve import CurveParams
from repro.train.loop import TrainParams
from repro.work.local import ExecuteParams

MEANINGLESS = "NOTE: this profile tests the plumbing; its numbers and verdicts mean nothing."


class ModelParams(Params):
    """One model of the family."""

    weights: str  # micro/2x64, a folder, or a hub id (optionally id@revision)
    lr: Annotated[float, Field(gt=0, le=10)]


class Profile(Params):
    """What `make reproduce PROFILE=...` runs."""

    description: str
    dataset: str = "apidocs"  # the name of a file in params/datasets/, or a path
    meaningless: bool = (
        False  # a test of the plumbing: every page says that its numbers mean nothing
    )
    comparable: bool = False  # with the papers' numbers: only for their models and data
    seed: Annotated[int, Field(ge=0, le=2**31)] = 1  # the run seed
    lr_reference: Annotated[float, Field(gt=0, le=10)] = 2e-5  # of lr-steps; FACTS B
    models: dict[str, ModelParams]
    encoder: EncoderParams = EncoderParams()
    texts: TextParams = TextParams()
    train: TrainParams = TrainParams()
    curve: CurveParams = CurveParams()
    ranking: RankingParams = RankingParams()
    grid: GridParams
    weight_decay: DecayParams | None = None  # notebook 07; without: not run
    transfer: TransferParams | None = None  # notebook 08; without: not run
    execute: ExecuteParams = ExecuteParams()

    @model_validator(mode="after")
    def _consistent(self) -> Profile:
        for name in self.grid.models:
            if name not in self.models:
                raise ValueError(
                    f"grid.models names `{name}`, which is not among the models\n"
                    f"  remedy: {nearest(name, list(self.models))}"
                )
        if self.weight_decay is not None:
            self._check_decays(self.weight_decay)
        if self.transfer is not None:
            self._check_transfer(self.transfer)
        for name, model in self.models.items():
            if model.lr * self.train.weight_decay >= 1:
                raise ValueError(
                    f"lr x weight decay of {name} is 1 or more\n  remedy: keep the product under 1"
                )
        smallest = min(self.grid.sizes)
        if self.train.batch_pairs > smallest:
            raise ValueError(
                f"train.batch_pairs {self.train.batch_pairs} is larger than the smallest data size "
                f"{smallest}\n  remedy: lower the batch, or drop that size"
            )
        return self

    def _check_decays(self, asked: DecayParams) -> None:
        for name in (asked.model, *asked.law_models):
            if name not in self.models:
                raise ValueError(
                    f"weight_decay names `{name}`, which is not among the models\n"
                    f"  remedy: {nearest(name, list(self.models))}"
                )
        largest = max(asked.decays)
        if self.models[asked.model].lr * largest >= 1:
            raise ValueError(
                f"weight_decay.decays: lr x {largest:g} of {asked.model} is 1 or more\n"
                "  remedy: keep the product under 1"
            )
        if min([*asked.sizes, *asked.law_sizes]) < self.train.batch_pairs:
            raise ValueError(
                f"weight_decay: a data size is under the batch of {self.train.batch_pairs} pairs\n"
                "  remedy: raise it"
            )

    def _check_transfer(self, asked: TransferParams) -> None:
        if asked.model not in self.models:
            raise ValueError(
                f"transfer.model names `{asked.model}`, which is not among the models\n"
                f"  remedy: {nearest(asked.model, list(self.models))}"
            )
        if min(asked.sizes) < self.train.batch_pairs:
            raise ValueError(
                f"transfer: a data size is under the batch of {self.train.batch_pairs} pairs\n"
                "  remedy: raise it"
            )
