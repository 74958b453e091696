"""Pins the pages as they are written: whole, described, linked, and free of what a run leaves behind."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

pytestmark = pytest.mark.slow

# What no page may show: bars and widgets of progress, warnings, faults, places of one machine.
GARBAGE = {
    "a progress bar": r"\d+%\|[█▏▎▍▌▋▊▉ #]|it/s\]|\d+/\d+ \[\d\d:\d\d",
    "a widget": r"application/vnd\.jupyter|<IPython\.core|HBox\(|IntProgress\(",
    "a figure's name in memory": r"&lt;Figure size|<Figure size|object at 0x[0-9a-f]+",
    "a warning": r"\w*Warning:|WARNING:",
    "a traceback": r"Traceback \(most recent call last\)",
    "an error": r"\n\w*(Error|Exception): ",
    "an absolute path": r"(?<![\w.:/-])/(work|tmp|root|home|Users|usr/lib)/\w",
    "a control code": r"\x1b\[",
}


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, object]:
    """Path in the site -> the parsed page."""
    from bs4 import BeautifulSoup

    return {
        path.relative_to(site).as_posix(): BeautifulSoup(path.read_text("utf-8"), "html.parser")
        for path in sorted(site.rglob("*.html"))
    }


def shown(page) -> str:
    """The text of a page's article."""
    return page.find(id="furo-main-content").get_text()


def test_no_page_shows_garbage(pages: dict) -> None:
    """Own words on garbage (the log's, of warnings met) are let through by name, in code alone."""
    found = {}
    for path, page in pages.items():
        for code in page.select("code.literal") if path.startswith("docs/") else ():
            code.string = ""
        for what, pattern in GARBAGE.items():
            if hit := re.search(pattern, shown(page)):
                found[path, what] = shown(page)[max(hit.start() - 40, 0) : hit.end() + 40]
    assert not found


def test_every_kind_of_garbage_would_be_found() -> None:
    examples = {
        "a progress bar": "42%|████▏   | 3/7 [00:01",
        "a widget": "<IPython.core.display.Image object>",
        "a figure's name in memory": "<matplotlib.axes.Axes object at 0x7f1>",
        "a warning": "UserWarning: glyph missing",
        "a traceback": "Traceback (most recent call last):",
        "an error": "\nValueError: no",
        "an absolute path": "read /home/me/x.csv",
        "a control code": "\x1b[31m",
    }
    assert all(re.search(GARBAGE[what], text) for what, text in examples.items())
    assert examples.keys() == GARBAGE.keys()


def test_every_picture_is_described(pages: dict, site: Path) -> None:
    pictures = {path: page.find_all("img") for path, page in pages.items()}
    assert len(pictures["notebooks/04_laws.html"]) == 7
    assert not [
        (path, img)
        for path, found in pictures.items()
        for img in found
        if len(img.get("alt", "")) < 20
    ]


def test_every_internal_link_is_alive(pages: dict, site: Path) -> None:
    ids = {path: {each["id"] for each in page.find_all(id=True)} for path, page in pages.items()}
    dead, counted = [], 0
    for path, page in pages.items():
        for tag, name in (("a", "href"), ("img", "src"), ("script", "src"), ("link", "href")):
            for element in page.find_all(tag):
                target = urlsplit(element.get(name) or "")
                if target.scheme or target.netloc or not element.get(name):
                    continue
                counted += 1
                place = (site / path).parent / unquote(target.path) if target.path else site / path
                if not place.resolve().is_file():
                    dead.append((path, element[name]))
                elif target.fragment and place.suffix == ".html":
                    other = place.resolve().relative_to(site.resolve()).as_posix()
                    if unquote(target.fragment) not in ids[other]:
                        dead.append((path, element[name]))
    assert counted > 1000
    assert not dead


def test_nothing_is_loaded_from_elsewhere(pages: dict) -> None:
    for path, page in pages.items():
        loaded = [
            each.get("src") or each.get("href") for each in page.find_all(["script", "link", "img"])
        ]
        assert not [place for place in loaded if place and re.match(r"(https?:)?//", place)], path


def test_pages_have_landmarks_and_one_title(pages: dict) -> None:
    for path, page in pages.items():
        assert len(page.find_all("h1")) == 1 or path == "search.html", path  # Sphinx has none there
        assert page.find("a", class_="skip-to-content")["href"] == "#furo-main-content"
        assert page.find(attrs={"role": "main"}), path
        assert page.html["lang"] == "en"
        for table in page.find_all("table"):
            assert all(head.get_text().strip() for head in table.find_all("th")), path


def test_the_start_page_names_what_was_found(pages: dict) -> None:
    text = shown(pages["index.html"])
    assert "0.0678 [0.0223, 0.113] in N" in text  # as 04 says in short, in report.json
    assert "M12" in text
    assert "inconclusive" in text
