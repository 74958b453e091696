"""A dataset: a file that names a source, and all that is made from it, stage by stage."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field, model_validator
from tokenizers import Tokenizer

from repro import params as parameters
from repro.data import arrays, automatic, duplicates, evaluation, splits, tokens
from repro.data.collection import Collection, assemble
from repro.data.duplicates import DuplicatesParams
from repro.data.evaluation import EvaluationParams, EvaluationSet, SplitName
from repro.data.expected import Declared, Expected
from repro.data.negatives import Judgements, own_negatives
from repro.data.sources.registry import Source
from repro.data.splits import Splits, SplitSizes
from repro.data.tokens import TokenTable
from repro.document import read
from repro.errors import UserError, nearest
from repro.files import write_json
from repro.params import Params, switch
from repro.store import Store


class TargetParams(Params):
    """An evaluation set out of domain: the set of a dataset, its own or another's."""

    dataset: str  # the name of a file in params/datasets/, or a path (relative to this file)
    set: SplitName


class DatasetParams(Params):
    """A dataset file."""

    name: str = Field(pattern="^[a-z0-9][a-z0-9_-]{0,40}$")
    language: str = Field(min_length=2, max_length=40)
    source: Source
    # What its judgements are called beside labels of other kinds.
    labels: str = Field(default="judged", pattern="^[a-z0-9][a-z0-9_-]{0,40}$")
    seed: int = Field(ge=0, lt=2**63)  # fixes splits and evaluation sets
    duplicates: DuplicatesParams = DuplicatesParams()
    splits: SplitSizes = SplitSizes()
    automatic: bool = False  # `splits: auto`: sizes by the rule of `repro.data.automatic`
    evaluation: EvaluationParams = EvaluationParams()
    expected: Expected = Expected()
    declared: Declared | None = switch(None)
    targets: dict[str, TargetParams] = {}  # out of domain, by name (`repro.data.targets`)

    def in_words(self) -> str:
        """Sizes of the splits, and K, in one line."""
        sizes = ", ".join(f"{name} {size:,}" for name, size in self.splits.sizes.items() if size)
        k = self.evaluation.negatives
        fewer = " (256 are not eligible)" if k < 256 else ""
        return f"{sizes} pairs; {k} negatives in evaluation{fewer}"

    @model_validator(mode="before")
    @classmethod
    def _auto(cls, values: Any) -> Any:
        if isinstance(values, dict) and values.get("splits") == "auto":
            rest = {name: value for name, value in values.items() if name != "splits"}
            return {**rest, "automatic": True}
        return values

    @model_validator(mode="after")
    def _sets_fit_splits(self) -> DatasetParams:
        if self.automatic:
            if "sets" in self.evaluation.model_fields_set:
                raise ValueError(
                    "`splits: auto` chooses the evaluation sets as well\n"
                    "  remedy: leave evaluation.sets out, or state the splits"
                )
            return self
        for name, size in self.evaluation.sets.items():
            split = getattr(self.splits, name)
            if size.pairs > split:
                raise ValueError(
                    f"evaluation.sets.{name} is to have {size.pairs} pairs; splits.{name} is {split}\n"
                    f"  remedy: raise splits.{name}, lower the pairs, or leave the set out"
                )
        return self

    @model_validator(mode="after")
    def _official_splits_are_whole(self) -> DatasetParams:
        official, parts = self.splits.official, self.source.parts()
        for name in (*official.train, *official.test) if official else ():
            if name not in parts:
                raise ValueError(
                    f"splits.official: the source has no part {name!r} of judgements\n"
                    f"  remedy: {nearest(name, parts) if parts else 'leave splits.official out'}"
                )
        if official and self.duplicates.drop:
            raise ValueError(
                "official splits stay whole: near-duplicates are reported, not dropped\n"
                "  remedy: duplicates.drop: false"
            )
        return self


@dataclass(frozen=True)
class Dataset:
    """A prepared dataset.

    `component_of_passage` int32 [n_passages]: near-duplicate passages have the same number.
    `digests` names the content of collection, components, splits and evaluation sets.
    `view` is "" or "tuning": the latter trains and evaluates inside the tuning split
    (`repro.data.tuning`).
    """

    params: DatasetParams
    collection: Collection
    component_of_passage: np.ndarray
    splits: Splits
    evaluations: dict[SplitName, EvaluationSet]
    digests: dict[str, str]
    view: Literal["", "tuning"] = ""

    @property
    def is_here(self) -> bool:
        """Whether its texts are there; else it is only declared (`repro.data.declared`)."""
        return True

    @cached_property
    def judgements(self) -> Judgements:
        """The judged positives of each query."""
        return Judgements.of(self.collection)

    @cached_property
    def own_negatives(self) -> Judgements:
        """The hard negatives of each query that training may use."""
        return own_negatives(self.collection, self.splits.pool)

    @property
    def own_digest(self) -> str:
        """The digest of these hard negatives."""
        own = self.own_negatives
        return arrays.digest({"offsets": own.offsets, "passages": own.passages})

    def evaluation(self, name: SplitName) -> EvaluationSet:
        """The evaluation set of a split; raises `UserError` where the file declares none."""
        if name not in self.evaluations:
            raise UserError(
                f"the dataset {self.params.name} has no evaluation set `{name}`",
                remedy=nearest(name, list(self.evaluations)),
            )
        return self.evaluations[name]

    def tokens(
        self, store: Store, tokenizer: Tokenizer | None, tokenizer_digest: str
    ) -> TokenTable:
        """The token table of the collection; the digest stands for the tokenizer in its key.

        tokenizer: None where it is not on this machine; the table then has lengths alone, for a plan.
        """
        if tokenizer is None:
            return self._by_words
        spec = {
            "collection": self.collection.digest,
            "tokenizer": tokenizer_digest,
            "max_ids": tokens.MAX_IDS,
            "rules": tokens.RULES,
        }
        folder = store.get_or_make(
            "tokens", spec, lambda work: tokens.write_table(work, self.collection, tokenizer)
        )
        return TokenTable.load(folder)

    @cached_property
    def _by_words(self) -> TokenTable:
        return tokens.by_words(self.collection)


def load_dataset_params(name: str) -> DatasetParams:
    """The parameters in the dataset file `name`; a relative path starts from where it stands."""
    path = find_dataset_file(name)
    document = read(path)
    found = parameters.validate(document, DatasetParams)
    return found.model_copy(
        update={
            "source": found.source.placed(path.parent),
            "targets": _placed(found.targets, document),
        }
    )


def find_dataset_file(name: str) -> Path:
    """The file of a dataset: `name` is the path of a .yaml file, or stands for a declared dataset.

    That is params/datasets/<name>.yaml in the source checkout of this package, or in the working
    folder or one above it.
    Raises `UserError` where there is none.
    """
    path = Path(name).expanduser().absolute()
    if _is_path(name) and not _is_data(path):
        return path
    roots = [Path(__file__).resolve().parents[3], Path.cwd(), *Path.cwd().parents]
    folders = [root / "params" / "datasets" for root in roots]
    for folder in folders:
        if (folder / f"{name}.yaml").is_file():
            return folder / f"{name}.yaml"
    if _is_data(path):
        raise UserError(
            "this is data, and not the file that says how to read it",
            where=str(path),
            remedy="copy params/datasets/template.yaml beside it, name it there under source: files:, "
            "and give that copy (docs/own-data.md)",
        )
    there = sorted({path.stem for folder in folders for path in folder.glob("*.yaml")})
    raise UserError(
        f"there is no dataset {name!r}",
        where=str(folders[0]),
        remedy=nearest(name, there) if there else "name the path of a dataset file",
    )


def _is_data(path: Path) -> bool:
    """Whether a path is a folder, or a file of a table or of texts."""
    return path.is_dir() or bool({".csv", ".tsv", ".jsonl", ".parquet"} & set(path.suffixes))


def _placed(
    targets: dict[str, TargetParams], document: parameters.Document
) -> dict[str, TargetParams]:
    """`targets`, a relative path among them made absolute; refused where there is no such file."""
    placed = {}
    for name, target in targets.items():
        file = target.dataset
        if _is_path(file):
            file = str(document.path.parent / Path(file).expanduser())
        try:
            if not find_dataset_file(file).is_file():
                raise UserError(f"there is no file {file}", remedy="check the path")
        except UserError as error:
            where = document.place(("targets", name, "dataset"))
            raise UserError(error.what, where=where, remedy=error.remedy) from None
        placed[name] = target.model_copy(update={"dataset": file})
    return placed


def _is_path(name: str) -> bool:
    return name.endswith((".yaml", ".yml")) or "/" in name


def prepare(store: Store, params: DatasetParams) -> Dataset:
    """The dataset that `params` describe: each stage is found in the store, or made.

    The sizes of `splits: auto` are chosen here: the dataset's own `params` state them.
    Raises `UserError` where the source cannot be read, is not what is expected, or is too small.
    """
    collection, component, key = collect(store, params)
    if params.automatic:
        sizes, sets = automatic.choose(collection, component, params.evaluation, params.seed)
        params = params.model_copy(update={"splits": sizes, "evaluation": sets, "automatic": False})
    folder = store.get_or_make(
        "splits", _splits_spec(params, key), _splits_maker(params, collection, component)
    )
    drawn = Splits.load(folder)
    found = {name: EvaluationSet.load(folder / name) for name in params.evaluation.sets}
    digests = {
        "collection": collection.digest,
        "components": arrays.digest({"component": component}),
        "splits": drawn.digest,
        **{f"evaluation.{name}": each.digest for name, each in found.items()},
    }
    return Dataset(params, collection, component, drawn, found, digests)


def collect(store: Store, params: DatasetParams) -> tuple[Collection, np.ndarray, str]:
    """The collection without its duplicates, the component of each passage, and their key."""
    folder = store.get_or_make("collection", _collection_spec(params), _collection_maker(params))
    collection = Collection.load(folder)
    if not params.source.departures():  # else the digest is recorded with the results
        params.expected.check(collection)
    return collection, arrays.load(folder, "component"), folder.name


def _collection_spec(params: DatasetParams) -> dict[str, Any]:
    # Collections stored before parts were kept have none: official splits do not take those.
    parts = {"parts": params.source.parts()} if params.splits.official else {}
    return {
        "name": params.name,
        "language": params.language,
        "source": params.source.model_dump(mode="json", exclude=set(params.source.paths())),
        "fingerprint": params.source.fingerprint(),
        "duplicates": params.duplicates.spec(),
        **parts,
    }


def _collection_maker(params: DatasetParams) -> Any:
    def make(folder: Path) -> None:
        read = assemble(params.name, params.language, params.source.read(), folder)
        unique = duplicates.remove_duplicates(read, params.duplicates)
        unique.collection.save(folder)
        arrays.save(folder, {"component": unique.component})
        if params.source.origin():
            write_json(folder / "origin.json", params.source.origin())

    return make


def _splits_spec(params: DatasetParams, collection_key: str) -> dict[str, Any]:
    return {
        "collection": collection_key,
        "seed": params.seed,
        "splits": params.splits.model_dump(mode="json", exclude_none=True)
        | {"rules": splits.RULES},
        "evaluation": params.evaluation.model_dump(mode="json") | {"rules": evaluation.RULES},
    }


def _splits_maker(params: DatasetParams, collection: Collection, component: np.ndarray) -> Any:
    def make(folder: Path) -> None:
        drawn = splits.draw_splits(collection, component, params.splits, params.seed)
        drawn.save(folder)
        for name in params.evaluation.sets:
            each = evaluation.draw_evaluation(
                collection, component, drawn, name, params.evaluation, params.seed
            )
            each.save(folder / name)

    return make
