"""Pins what the pages are made from, without Sphinx: reports, notebooks, docstrings, laws."""

from __future__ import annotations

import html.parser
import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from repro.errors import UserError
from repro.laws.forms import FORMS
from repro.show.overview import COLUMNS, overview
from repro.site import books, explore, material, reference, start
from repro.site.build import HOW_TO, RECORDS, build

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def mini() -> material.Material:
    return material.find("mini-apidocs", published=True)


def test_a_build_is_taken_before_what_is_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mini
) -> None:
    monkeypatch.setenv("REPRO_HOME", str(tmp_path))
    assert material.find("mini-apidocs").origin == "what is published"
    build = tmp_path / "build" / "mini-apidocs"
    (build / "notebooks").mkdir(parents=True)
    (build / "notebooks" / "10_report.ipynb").write_text("{}")
    (build / "report.json").write_text(json.dumps(dict(mini.report) | {"missing": 3}))
    assert material.find("mini-apidocs").origin == "what is published", "the build is not finished"
    (build / "report.json").write_text(json.dumps(mini.report))
    assert material.find("mini-apidocs").notebooks == build / "notebooks"
    assert material.find("mini-apidocs", published=True).origin == "what is published"
    with pytest.raises(UserError, match="neither a finished build of gone-x"):
        material.find("gone-x")


def test_the_start_page_draws_on_the_report_alone(mini) -> None:
    changed = json.loads(json.dumps(mini.report))
    changed["in_short"] = "**Which law?** One.\n\n**How sure?** By 0.4321."
    for row in changed["claims"]:
        row["verdict"] = "not run"
    page = start.page(material.Material("a-b", "", mini.notebooks, mini.figures, changed))
    assert "0.432" in page
    assert f"{len(changed['claims'])} not run" in page
    assert "inconclusive**" not in page
    bare = start.page(
        material.Material("a-b", "", mini.notebooks, Path("gone"), changed | {"laws": {}})
    )
    assert "exponents" not in bare.split("## Where")[0]
    assert "{image}" not in bare


def test_each_verdict_stands_once_in_the_overview(mini) -> None:
    rows = mini.report["claims"]
    table = overview(rows)
    for row in rows:
        silent = row["kind"] == "qual" or row["verdict"] == "not comparable"
        assert row["id"] + ("" if silent else f" ({row['kind']})") in table
    body = table.splitlines()[2:]
    assert sum(line.count("·") for line in body) + 24 - sum(
        line.count("–") for line in body
    ) == len(rows)
    assert {v for verdicts in COLUMNS.values() for v in verdicts} >= {
        row["verdict"] for row in rows
    }


def test_each_picture_of_a_notebook_is_described_in_its_own_cell() -> None:
    def picture(alt: str) -> dict:
        return {
            "output_type": "display_data",
            "data": {"image/png": ""},
            "metadata": {"image/png": {"alt": alt}},
        }

    words = {"output_type": "stream", "name": "stdout", "text": "read"}
    both = [words, picture("one"), picture("two")]
    injected = {"tags": ["injected-parameters"]}
    cells = [
        {"id": "a", "cell_type": "code", "metadata": {}, "source": "x", "outputs": both},
        {"id": "b", "cell_type": "code", "metadata": injected, "source": "y", "outputs": []},
    ]
    first, second = books.ready({"cells": cells})["cells"]
    assert first["outputs"] == [words, picture("one")]
    assert first["metadata"]["mystnb"]["image"]["alt"] == "one"
    assert second["outputs"] == [picture("two")]
    assert second["metadata"]["mystnb"]["image"]["alt"] == "two"
    assert second["source"] == ""


def test_texts_of_a_dataset_stay_texts() -> None:
    hostile = "<script>x()</script> a<br>b {download}`/etc/passwd` ![p](https://x.invalid/y) 1 < 2 <!-- c -->"
    output = {"output_type": "display_data", "data": {"text/markdown": [hostile]}, "metadata": {}}
    cell = {"id": "a", "cell_type": "code", "metadata": {}, "source": "", "outputs": [output]}
    (ready,) = books.ready({"cells": [cell]})["cells"]
    text = ready["outputs"][0]["data"]["text/markdown"]
    page = html.parser.HTMLParser()
    seen: list[str] = []
    page.handle_starttag = lambda tag, _: seen.append(tag)  # type: ignore[method-assign]
    page.feed(text)
    assert seen == ["br"]
    assert "}`" not in text
    assert "![" not in text
    assert text.replace("\u200b", "") == hostile


def test_the_reference_has_every_module_and_public_name(tmp_path: Path) -> None:
    rooms = reference.write(tmp_path)
    text = "\n".join((tmp_path / f"{room}.md").read_text() for room in rooms)
    for path in reference.SOURCE.rglob("*.py"):
        if path.stem != "__init__":
            assert (
                f"## {'.'.join(path.relative_to(reference.SOURCE).with_suffix('').parts)}\n" in text
            )
    assert "### intervals\n" in text
    assert "def fit(\n    form: Form | str," in text
    assert "\n### \\_" not in text


def test_a_docstring_is_text_but_for_its_code() -> None:
    assert (
        reference.prose("c N^-alpha * `a*b_c` [x] <y> d_e")
        == r"c N^-alpha \* `a*b_c` \[x\] \<y\> d\_e"
    )
    assert reference.prose(None) == ""


def test_the_page_of_laws_has_each_formula() -> None:
    page = reference.forms()
    assert page.count("```{math}") == len(FORMS)
    assert all(f"`--form {name}`" in page for name in FORMS)


def test_every_page_of_docs_has_its_place() -> None:
    assert {path.stem for path in (ROOT / "docs").glob("*.md")} == HOW_TO.keys() | RECORDS.keys()


@pytest.mark.parametrize("law", [None, {"params": None, "note": "4 points cannot determine it"}])
def test_without_a_fitted_law_there_is_nothing_to_move(mini, law) -> None:
    report = {**mini.report, "laws": {"product": law, "product_d0": law}}
    assert explore.numbers(report) is None
    assert explore.page(replace(mini, report=report)) == explore.NOTHING


def test_what_can_be_moved_starts_at_the_fit(mini) -> None:
    data = explore.numbers(mini.report)
    assert data is not None
    assert data["laws"]["product"] == mini.report["laws"]["product"]["params"]
    assert len(data["cells"]) == 30
    page = explore.page(mini)
    assert 'id="alpha"' in page
    assert "</script>" not in page.split('id="explore-data">')[1].split("</script>")[0]
    assert explore.page(material.Material("a", "", Path(), Path(), {"laws": {}})) == explore.NOTHING


def test_the_compute_of_a_run_is_recovered() -> None:
    grid = [
        {"n_encoder": n, "d": d, "flop": 6 * n**0.9 * d**1.1}
        for n in (1e4, 1e5)
        for d in (100, 1000, 1e4)
    ]
    found = explore.compute(grid)
    assert math.exp(found["u"]) == pytest.approx(6)
    assert (found["p"], found["q"]) == (pytest.approx(0.9), pytest.approx(1.1))
    assert found["scatter"] < 1e-6


def test_no_other_folder_is_written_over(tmp_path: Path, mini) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(UserError, match="something else than a site"):
        build(mini, tmp_path / "work", tmp_path)
    assert (tmp_path / "thesis.tex").read_text() == "mine"
