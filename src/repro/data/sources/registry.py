"""The sources there are: one line each."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from repro.data.sources.apidocs import ApidocsParams
from repro.data.sources.beir import BeirParams
from repro.data.sources.hub import HubParams
from repro.data.sources.ir_datasets import IrDatasetsParams
from repro.data.sources.pairs import PairsParams
from repro.data.sources.pydocs import PydocsParams
from repro.data.sources.tsv import TsvParams

Source = Annotated[
    ApidocsParams
    | PydocsParams
    | BeirParams  # a folder or a zip
    | PairsParams  # CSV, TSV, JSONL, Parquet: one row a pair
    | TsvParams  # tables of ids
    | HubParams  # repositories of the hub, or a copy of one
    | IrDatasetsParams,  # ids of that library
    Field(discriminator="kind"),
]
