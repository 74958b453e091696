"""What the site asks of Sphinx beside its parts: formulas as MathML, columns with names."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml


def setup(app: Any) -> dict[str, bool]:
    """Register it; called by Sphinx."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    app.connect("doctree-resolved", _name_columns)
    app.connect("html-page-context", _headings, priority=900)  # after the theme's own
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _inline(writer: Any, node: nodes.math) -> None:
    writer.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def _block(writer: Any, node: nodes.math_block) -> None:
    writer.body.append(tex2mathml(node.astext(), as_block=True))
    raise nodes.SkipNode


def _name_columns(_app: Any, document: nodes.document, _page: str) -> None:
    """Give each column a name that can be read out, where the head of a table leaves one empty."""
    for head in document.findall(nodes.thead):
        for entry in head.findall(nodes.entry):
            if not entry.astext().strip():
                entry += nodes.inline("", "row", classes=["visually-hidden"])


def _headings(_app: Any, _page: str, _template: str, context: dict[str, Any], _tree: Any) -> None:
    """The captions of the theme's navigation say that they are headings, but not of which level."""
    tree = context.get("furo_navigation_tree")
    if tree:
        level = 'role="heading" aria-level="2"'
        context["furo_navigation_tree"] = tree.replace('role="heading"', level)
