"""Pins: the same figure gives the same bytes; alternative text and numbers go with it."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

from repro.show import style


@style.drawn
def line() -> style.Drawing:
    figure, axes = style.panels(height=2)
    axes.plot([1, 2, 4], [3, 2, 1])
    style.log_axis(axes.xaxis, [1, 2, 4], "pairs")
    style.label_ends(axes, [(4, 1, "a", "#0072B2"), (4, 1.01, "b", "#D55E00")])
    data = {"x": np.array([1, 2, np.nan]), "n": np.int64(3)}
    return style.Drawing(
        figure=figure, name="line", alt="A line. It falls from 3 to 1 & ends.", data=data
    )


def save(folder: Path) -> dict[str, bytes]:
    drawing = line()
    style.save(drawing["figure"], folder, drawing["name"], alt=drawing["alt"], data=drawing["data"])
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_same_figure_same_bytes(tmp_path: Path) -> None:
    first, second = save(tmp_path / "a"), save(tmp_path / "b")
    assert set(first) == {"line.svg", "line.png", "line.json"}
    assert first == second
    assert b"<dc:date>" not in first["line.svg"]


def test_alternative_text_is_everywhere(tmp_path: Path) -> None:
    files = save(tmp_path)
    svg = files["line.svg"].decode()
    assert "<title id='line-title'>A line</title>" in svg
    assert "It falls from 3 to 1 &amp; ends." in svg
    assert "role='img'" in svg
    assert b"It falls from 3 to 1" in files["line.png"]
    sidecar = json.loads(files["line.json"])
    assert sidecar["alt"].startswith("A line.")
    assert sidecar["data"] == {"x": [1.0, 2.0, None], "n": 3}


def test_background_is_opaque(tmp_path: Path) -> None:
    save(tmp_path)
    image = plt.imread(tmp_path / "line.png")
    assert image.shape[2] == 3 or (image[..., 3] == 1).all()
    np.testing.assert_allclose(image[0, 0, :3], 1)


def test_style_does_not_leak() -> None:
    before = dict(plt.rcParams)
    line()
    assert dict(plt.rcParams) == before


@pytest.mark.parametrize(
    ("value", "text"),
    [(640, "640"), (10240, "10,240"), (396544, "396.5k"), (85054464, "85.05M"), (2.0, "2")],
)
def test_counts_read_well(value: float, text: str) -> None:
    assert style.count(value) == text


def test_labels_do_not_overlap() -> None:
    texts = [text for text in line()["figure"].axes[0].texts if text.get_text() in "ab"]
    low, high = sorted(text.get_position()[1] for text in texts)
    assert high - low > 0.05


def test_colours_of_text_are_dark() -> None:
    for colour in (*style.ordered(6), *style.ordered(6, "plasma"), *style.CATEGORIES):
        r, g, b = (int(style.darker(colour)[k : k + 2], 16) / 255 for k in (1, 3, 5))
        assert 0.2126 * r + 0.7152 * g + 0.0722 * b <= 0.43


@style.drawn
def chinese() -> style.Drawing:
    figure, axes = style.panels(height=2)
    axes.plot([1, 2], [3, 2], label="小模型")
    axes.set_title("模型与数据")
    axes.legend()
    style.label_ends(axes, [(2, 2, "大模型", "#0072B2")])
    return style.Drawing(figure=figure, name="zh", alt="小模型 falls.", data={"小模型": [3, 2]})


def test_labels_in_chinese_are_drawn_without_a_warning(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drawing = chinese()
        style.save(drawing["figure"], tmp_path, "zh", alt=drawing["alt"], data=drawing["data"])
    assert json.loads((tmp_path / "zh.json").read_text("utf-8"))["data"] == {"小模型": [3, 2]}
    assert "小模型 falls" in (tmp_path / "zh.svg").read_text("utf-8")
    assert (plt.imread(tmp_path / "zh.png")[..., :3] < 0.5).any()


def test_a_font_that_has_the_characters_is_used_after_the_first_one() -> None:
    assert style._families({"Noto Sans CJK SC", "Comic Sans MS"}) == [
        "DejaVu Sans",
        "Noto Sans CJK SC",
    ]
    assert style._families(()) == ["DejaVu Sans"]
