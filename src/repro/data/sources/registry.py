"""The sources there are: one line each."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from repro.data.sources.apidocs import ApidocsParams
from repro.data.sources.beir import BeirParams
from repro.data.sources.pydocs import PydocsParams

Source = Annotated[ApidocsParams | PydocsParams | BeirParams, Field(discriminator="kind")]
