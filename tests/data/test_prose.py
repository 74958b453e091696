"""Pins what is prose in a docstring, and that plain prose comes out whole."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from repro.data.sources.prose import split

NUMPY = """
    Return the sum of it.

    All is added up, see [1]_.
    Nothing is left out.

    Parameters
    ----------
    x : array
        What is added.

    Returns
    -------
    y : float
        The sum.

    Notes
    -----
    It is exact [2]_.

    .. math:: \\sum_i x_i

    .. versionadded:: 1.3

    Examples
    --------
    An easy one:

    >>> total([1, 2])
    3
    """
GOOGLE = """Return the sum of it.

    All is added up.

    Args:
        x (array): What is added.

            With a second paragraph.
    Returns:
        The sum.
    Example::

        total([1, 2])

    Note:
        It is exact.
    """


@pytest.mark.parametrize(
    ("docstring", "query", "passage"),
    [
        (
            NUMPY,
            "Return the sum of it.",
            "All is added up, see. Nothing is left out. It is exact. An easy one:",
        ),
        (GOOGLE, "Return the sum of it.", "All is added up. It is exact."),
        ("One. Two. Three.", "One.", "Two. Three."),
        ("A title\n\nThen text.", "A title", "Then text."),
        ("Heading\n=======\n\nDoes it. Well.", "Does it.", "Well."),
        ("=====\nTitle\n=====\n\nDoes it. Well.", "Does it.", "Well."),
        ("abs(x, /, out=None, *, where=(1, 2))\n\nDoes it. Well.", "Does it.", "Well."),
        ("abs(x, *, out=None) -> Tensor\n\nDoes it. Well.", "Does it.", "Well."),
        ("abs(x)\nabs(x, y) -> Tensor", "abs(x) abs(x, y) -> Tensor", ""),
        ("Uses e.g. Money (i.e. Cash) of Smith et al. (2016). More.",
         "Uses e.g. Money (i.e. Cash) of Smith et al. (2016).", "More."),
        ("Uses :func:`~a.b.c` and ``d`` of `text <http://x.y>`_. More.",
         "Uses a.b.c and d of text.", "More."),
        ("Loads a [`~models.Bert`] from [here](http://x.y). More.",
         "Loads a models.Bert from here.", "More."),
        ("An *iterable* of **bold** things. 2 * 3 * 4 and a**2 and b**3.",
         "An iterable of bold things.", "2 * 3 * 4 and a**2 and b**3."),
        ("Does it.\n\n- one thing - here\n- another\n  thing\n1. last",
         "Does it.", "one thing - here another thing last"),
        ("Does it.\n\n.. note:: It is slow.\n   Really.\n\n.. code-block:: c\n\n   int x;\n\nEnd.",
         "Does it.", "It is slow. Really. End."),
        ("Does it::\n\n    x = 1\n\n    y = 2\n\nEnd.", "Does it:", "End."),
        ("Does it.\n\n```python\nx = 1\n\ny = 2\n```\n\nEnd.", "Does it.", "End."),
        ("Does it.\n\n>>> x\n1\n2\n\nEnd.", "Does it.", "End."),
        ("Does it.\n\n:param x: What.\n    It is.\n:returns: This.\n\nEnd.", "Does it.", "End."),
        ("Does it.\n\nx (`int`, *optional*):\n    What.\n**y** (str): It.\n\nEnd.", "Does it.", "End."),
        ("Does it.\n\n===== =====\nx     y\n===== =====\n1     2\n===== =====\n\nEnd.",
         "Does it.", "End."),
        ("Does it.\n\n+---+\n| x |\n+---+\n\nEnd.", "Does it.", "End."),
        ("Does it.\n\n%(parameters)s\n\n{klass}\n\nEnd in $\\mathbb{Z}$.",
         "Does it.", "End in $\\mathbb{Z}$."),
        ("Does it.\n\n> [!TIP]\n> A tip.\n\nEnd.", "Does it.", "A tip. End."),
        ("Does it.\n\n... and more.\n\n.. [1] A. Author. A book.", "Does it.", "... and more."),
        ("Parameters\n----------\nx : int", "", ""),
        ("Only one.", "Only one.", ""),
        ("\n\n  \n", "", ""),
        ("", "", ""),
    ],
)  # fmt: skip
def test_prose_stays_and_the_rest_goes(docstring: str, query: str, passage: str) -> None:
    assert split(docstring) == (query, passage)


WORD = some.text("abcdefghij", min_size=3, max_size=8)  # "A." is an initial, "al." no end
SENTENCE = some.lists(WORD, min_size=1, max_size=8).map(lambda w: " ".join(w).capitalize() + ".")
PARAGRAPHS = some.lists(some.lists(SENTENCE, min_size=1, max_size=4), min_size=1, max_size=4)
OTHER = some.sampled_from([
    "Parameters\n----------\nx : int\n    Text of it.\n\nNotes\n-----",
    "Args:\n    x: Text of it.\n",
    ">>> x\n1",
    ".. code::\n\n    x = 1",
    "```\nx = 1\n\ny = 2\n```",
    ":param x: Text of it.",
])  # fmt: skip


@given(paragraphs=PARAGRAPHS, indent=some.integers(0, 8))
def test_plain_prose_loses_no_word(paragraphs: list[list[str]], indent: int) -> None:
    lines = "\n\n".join("\n".join(paragraph) for paragraph in paragraphs).split("\n")
    docstring = "\n".join([lines[0], *(" " * indent + line for line in lines[1:])])
    query, passage = split(docstring)
    assert query == paragraphs[0][0]
    assert f"{query} {passage}".split() == " ".join(" ".join(each) for each in paragraphs).split()


@given(paragraphs=PARAGRAPHS, others=some.lists(OTHER, min_size=4, max_size=4))
def test_what_is_no_prose_changes_nothing(paragraphs: list[list[str]], others: list[str]) -> None:
    plain = [" ".join(paragraph) for paragraph in paragraphs]
    mixed = [part for pair in zip(plain, others, strict=False) for part in pair]
    assert split("\n\n".join(mixed)) == split("\n\n".join(plain))


@given(some.text(alphabet="aA.:>`*[]()<>=-+|_%{}#~\\ \n\t0é", max_size=200))
def test_any_text_is_split_into_single_lines(docstring: str) -> None:
    for part in split(docstring):
        assert part == " ".join(part.split())
