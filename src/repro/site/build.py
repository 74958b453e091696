"""Assemble the sources of the site and have Sphinx write its pages; no network, nothing is run again."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from repro.errors import UserError
from repro.places import ROOT
from repro.site import books, explore, reference, start
from repro.site.material import Material

STATIC = Path(__file__).parent / "static"
HOW_TO = {
    "own-data": "Your own data",
    "laws": "Your own table of losses",
    "profiles": "Profiles and GPUs",
    "cluster": "On a Slurm cluster",
    "hub": "Models and data of the hub",
    "experiments": "Experiments of a profile",
    "figures": "Reading the figures",
    "adding-a-law": "Adding a law",
    "adding-a-source": "Adding a source",
    "store": "The run store",
}
RECORDS = {"performance": "Performance", "DECISIONS": "Decisions", "LOG": "Log"}
SETTINGS: dict[str, Any] = {
    "project": "repro",
    "html_title": "Scaling laws of dense retrieval",
    "extensions": ["myst_nb", "repro.site.extension"],
    "root_doc": "index",
    "nb_execution_mode": "off",
    "nb_render_markdown_format": "myst",
    "nb_merge_streams": True,
    "myst_update_mathjax": False,
    "myst_heading_anchors": 3,
    "html_theme": "furo",
    "html_theme_options": {"navigation_with_keys": False, "top_of_page_buttons": []},
    "html_static_path": [str(STATIC)],
    "html_css_files": ["site.css"],
    "html_js_files": [("site.js", {"defer": "defer"})],
    "html_favicon": str(STATIC / "icon.svg"),
    "html_math_renderer": "mathml",
    "html_copy_source": False,
    "html_domain_indices": False,
    "html_use_index": False,
    "pygments_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "show_warning_types": True,
}
CONFIGURATION = "from repro.site.build import SETTINGS\n\nglobals().update(SETTINGS)\n"


def build(material: Material, work: Path, pages: Path) -> list[str]:
    """Write the site of a study into `pages`, by way of sources in `work`; both are made anew.

    Returns what Sphinx warned of, a line each.  Refuses to write over a folder that holds anything else.
    """
    if pages.is_dir() and any(pages.iterdir()) and not (pages / "_static" / "site.css").is_file():
        raise UserError(
            "this folder holds something else than a site",
            where=str(pages),
            remedy="name an empty folder, or one that is not there yet",
        )
    for folder in (work, pages):
        shutil.rmtree(folder, ignore_errors=True)
    assemble(material, work)
    return _sphinx(work, pages)


def assemble(material: Material, folder: Path) -> None:
    """Write the sources of every page into `folder`."""
    shutil.copytree(ROOT / "docs", folder / "docs")
    shutil.copy2(ROOT / "CHANGELOG.md", folder / "docs" / "CHANGELOG.md")
    shutil.copytree(material.figures, folder / "figures", ignore=shutil.ignore_patterns("*.json"))
    notebooks = books.copy(material.notebooks, folder / "notebooks")
    modules = reference.write(folder / "api")
    (folder / "laws.md").write_text(reference.forms(), encoding="utf-8")
    (folder / "explore.md").write_text(explore.page(material), encoding="utf-8")
    listed = [
        _list("Read", [f"notebooks/{name}" for name in notebooks] + ["explore"]),
        _list("Do", [f"{title} <docs/{name}>" for name, title in HOW_TO.items()]),
        _list("Look up", ["laws", "api/index"]),
        _list(
            "Behind it",
            [f"{title} <docs/{name}>" for name, title in RECORDS.items()] + ["docs/CHANGELOG"],
        ),
    ]
    index = "\n".join([start.page(material), *listed])
    (folder / "index.md").write_text(index, encoding="utf-8")
    api = "\n".join(["# The package\n", reference.PREFACE, _list("", modules, hidden=False)])
    (folder / "api" / "index.md").write_text(api, encoding="utf-8")


def _list(caption: str, pages: list[str], *, hidden: bool = True) -> str:
    options = [":hidden:"] * hidden + [":maxdepth: 1"] + [f":caption: {caption}"] * bool(caption)
    return "\n".join(["```{toctree}", *options, "", *pages, "```", ""])


def _sphinx(source: Path, pages: Path) -> list[str]:
    from io import StringIO

    try:
        from sphinx.application import Sphinx
    except ImportError:
        raise UserError(
            "Sphinx is not installed here", remedy="pip install -r requirements-site.lock"
        ) from None
    warned = StringIO()
    doctrees = source.with_name(f"{source.name}-doctrees")
    shutil.rmtree(doctrees, ignore_errors=True)
    (source / "conf.py").write_text(CONFIGURATION, encoding="utf-8")
    app = Sphinx(source, source, pages, doctrees, "html", status=None, warning=warned)
    app.build()
    shutil.rmtree(doctrees)
    (pages / ".buildinfo").unlink(missing_ok=True)
    return [line for line in warned.getvalue().splitlines() if line.strip()]
