"""Pins the site as a reader has it: in a browser, on a phone, by keyboard, without a network.

Needs Debian's chromium and requirements-browser.lock; elsewhere these tests are skipped, in CI
(REPRO_STRICT=1) they fail.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import DESK, PHONE, Visit, browser, missing, served

import tiny

pytestmark = pytest.mark.slow

ALIKE = ("api/index.html", "api/measure.html")  # what axe reads of the reference


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    if reason := missing():
        tiny.absent(reason)
    with browser() as found:
        yield found


@pytest.fixture(scope="module")
def root(site: Path) -> Iterator[str]:
    with served(site) as address:
        yield address


@pytest.fixture(scope="module")
def paths(site: Path) -> list[str]:
    """Every page, by its path in the site."""
    found = sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html"))
    assert {"index.html", "explore.html", "notebooks/04_laws.html", "api/laws.html"} <= set(found)
    return found


@pytest.fixture(params=["light", "dark"])
def scheme(request: pytest.FixtureRequest) -> str:
    return request.param


def test_pages_load_whole_and_from_here_alone(chromium: Any, root: str, paths: list[str]) -> None:
    visit = Visit(chromium, root)
    faults = [fault for path in paths for fault in visit.open(path)]
    visit.close()
    assert not faults


def test_a_fault_would_be_seen(chromium: Any, tmp_path: Path) -> None:
    """The premise of the test above, and of those of width and of axe."""
    (tmp_path / "bad.html").write_text(
        "<!doctype html><title>x</title><img src='gone.png'><script>throw 1</script>"
        "<img src='https://example.invalid/x.png'><p style='width:900px'>wide</p>"
    )
    with served(tmp_path) as address:
        visit = Visit(chromium, address, size=PHONE)
        found = "\n".join(visit.open("bad.html"))
        wide = _overflow(visit.page)
        said = _violations(visit.page)
        visit.close()
    assert all(word in found for word in ("404", "error: 1", "outside: https://example.invalid"))
    assert wide > 0
    assert "image-alt" in said


def test_nothing_scrolls_sideways_on_a_phone(chromium: Any, root: str, paths: list[str]) -> None:
    visit = Visit(chromium, root, size=PHONE)
    wide = {}
    for path in paths:
        visit.open(path)
        if over := _overflow(visit.page):
            wide[path] = over
    visit.close()
    assert not wide


def test_formulas_are_drawn(chromium: Any, root: str) -> None:
    visit = Visit(chromium, root)
    visit.open("laws.html")
    boxes = visit.page.evaluate(
        "[...document.querySelectorAll('article math')].map(m => {"
        "const b = m.getBoundingClientRect(); return [b.width, b.height, m.textContent]})"
    )
    visit.close()
    assert len(boxes) > 15
    assert all(width > 20 and height > 8 for width, height, _ in boxes)
    assert not any("\\" in text or "merror" in text for *_, text in boxes)


def test_axe_finds_nothing_serious(chromium: Any, root: str, paths: list[str], scheme: str) -> None:
    """In light on a desk, in dark on a phone; of the rooms of the reference, all alike and long, one."""
    asked = [path for path in paths if not path.startswith("api/") or path in ALIKE]
    assert len(asked) > 25
    visit = Visit(chromium, root, scheme=scheme, size=DESK if scheme == "light" else PHONE)
    faults = {}
    for path in asked:
        visit.open(path)
        if said := _violations(visit.page):
            faults[path] = said
    visit.close()
    assert not faults


def test_the_page_to_play_with_responds(chromium: Any, site: Path) -> None:
    """From a file, by keyboard and by button: the lines move, and the words say what they show."""
    visit = Visit(chromium, site.as_uri())
    assert not visit.open("explore.html")
    page = visit.page

    def state() -> tuple[str, str, str, str]:
        line = page.locator("#law-plot polyline").first.get_attribute("points")
        best = page.locator("#plan-plot .best").get_attribute("cx")
        return line, page.inner_text("#law-said"), best, page.inner_text("#plan-said")

    first = state()
    assert "Mean error on 30 cells: 3.3 %" in first[1]
    page.focus("#beta")
    for _ in range(20):
        page.keyboard.press("ArrowRight")
    second = state()
    assert page.inner_text("#beta-shown") == "0.093"
    assert all(a != b for a, b in zip(first[:2], second[:2], strict=True))
    page.focus("#budget")
    page.keyboard.press("Home")
    third = state()
    assert third[1] == second[1]
    assert third[3] != second[3]
    page.click("[data-law=product]")
    assert state()[:2] == first[:2]
    assert page.locator("#law-plot").get_attribute("aria-label").endswith(first[1])
    visit.close()


def test_it_works_from_a_file(chromium: Any, site: Path) -> None:
    visit = Visit(chromium, site.as_uri())
    faults = [
        fault for path in ("index.html", "explore.html", "laws.html") for fault in visit.open(path)
    ]
    visit.close()
    assert not faults


def _overflow(page: Any) -> int:
    """By how many pixels the page is wider than its window."""
    return page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )


def _violations(page: Any) -> str:
    """What axe holds for serious or critical, a line a rule with the first element that breaks it."""
    from axe_playwright_python.sync_playwright import Axe

    found = (
        Axe()
        .run(page, options={"preload": False, "resultTypes": ["violations"]})
        .response["violations"]
    )
    return "\n".join(
        f"{each['id']} ({len(each['nodes'])}): {each['nodes'][0]['html'][:160]}"
        for each in found
        if each["impact"] in ("serious", "critical")
    )
