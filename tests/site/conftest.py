"""The site of the published mini, built once."""

from __future__ import annotations

from pathlib import Path

import pytest

import tiny
from repro.site import material
from repro.site.build import build


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of its pages."""
    try:
        import furo  # noqa: F401
        import myst_nb  # noqa: F401
        import sphinx  # noqa: F401
    except ImportError as error:
        tiny.absent(f"{error.name} is not installed (requirements-site.lock)")
    folder = tmp_path_factory.mktemp("site")
    found = material.find("mini-apidocs", published=True)
    assert build(found, folder / "sources", folder / "pages") == []
    return folder / "pages"
