"""A profile: the scale of a study, composed of the parameters that each room declares for itself."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from repro.errors import nearest
from repro.experiments.allocation import AllocationParams
from repro.experiments.grid import GridParams
from repro.experiments.labels import LabelsParams
from repro.experiments.lr_invariance import LrStudyParams
from repro.experiments.transfer import TransferParams
from repro.experiments.variance import VarianceParams
from repro.experiments.weight_decay import DecayParams
from repro.measure.ranking import RankingParams
from repro.model.encoder import EncoderParams
from repro.model.texts import TextParams
from repro.params import Params, switch
from repro.train.curve import CurveParams
from repro.train.loop import MOST_LR, TrainParams
from repro.work.execute import Execute
from repro.work.local import ExecuteParams

MEANINGLESS = "NOTE: this profile tests the plumbing; its numbers and verdicts mean nothing."


class ModelParams(Params):
    """One model of the family."""

    weights: str  # micro/2x64, a folder, or a hub id (optionally id@revision)
    lr: Annotated[float, Field(gt=0, le=MOST_LR)]


class Profile(Params):
    """What `make reproduce PROFILE=...` runs."""

    description: str
    dataset: str = "apidocs"  # the name of a file in params/datasets/, or a path
    meaningless: bool = (
        False  # a test of the plumbing: every page says that its numbers mean nothing
    )
    # Whose printed numbers its runs may be held against (their models and data): sources or single
    # claims of params/claims.yaml.
    comparable: list[
        Annotated[str, Field(pattern="^(mael|sigir24|transfer|classical|[MSTC][0-9]+)$")]
    ] = []
    # The count of N in the laws (repro.model.encoder.Size); drscale_mebi: as SIGIR'24's code prints it.
    n: Literal["encoder", "encoder_pooler", "drscale", "drscale_mebi", "total"] = switch("encoder")
    seed: Annotated[int, Field(ge=0, le=2**31)] = 1  # the run seed
    lr_reference: Annotated[float, Field(gt=0, le=MOST_LR)] = 2e-5  # of lr-steps; FACTS B
    models: dict[str, ModelParams]
    encoder: EncoderParams = EncoderParams()
    texts: TextParams = TextParams()
    train: TrainParams = TrainParams()
    curve: CurveParams = CurveParams()
    ranking: RankingParams = RankingParams()
    grid: GridParams
    # Experiments beside the grid; one without its section is not run.
    lr_study: LrStudyParams | None = None  # notebook 02
    variance: VarianceParams | None = None  # notebook 03
    labels: LabelsParams | None = None  # notebook 05
    allocation: AllocationParams | None = None  # notebook 06: its control, runs after the grid's
    weight_decay: DecayParams | None = None  # notebook 07
    transfer: TransferParams | None = None  # notebook 08
    execute: Execute = ExecuteParams()

    @model_validator(mode="after")
    def _consistent(self) -> Profile:
        for name in self.grid.models:
            if name not in self.models:
                raise ValueError(
                    f"grid.models names `{name}`, which is not among the models\n"
                    f"  remedy: {nearest(name, list(self.models))}"
                )
        rates = {name: model.lr for name, model in self.models.items()}
        for section in (
            self.lr_study,
            self.variance,
            self.labels,
            self.weight_decay,
            self.transfer,
        ):
            if section is not None:
                section.check(rates, self.train)
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
