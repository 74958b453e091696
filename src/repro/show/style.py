"""One style for every figure, and saving that gives the same bytes for the same picture."""

from __future__ import annotations

import functools
import html
import json
import math
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, ParamSpec, TypedDict

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.font_manager import fontManager
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

P = ParamSpec("P")

# Okabe and Ito's colour-blind safe set, without the yellow that vanishes on white.
CATEGORIES = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#4D4D4D",
    "#8C510A",
)
INK, FAINT = "#1A1A1A", "#6E6E6E"
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<")
_STEPS = (
    (1.0, 3.0),
    (1.0, 2.0, 5.0),
    (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0),
    tuple(np.arange(1, 10, 0.5).round(1)),
    tuple(np.arange(1, 10, 0.25)),
    tuple(np.arange(1, 10, 0.1).round(1)),
)  # of logarithmic ticks, coarse to fine
WIDTH = 7.4  # inches: a notebook's column

# Fonts with Chinese, Japanese and Korean characters; whichever are installed draw what DejaVu lacks.
CJK = (
    "Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans SC", "Noto Sans JP", "Source Han Sans SC",
    "WenQuanYi Micro Hei", "WenQuanYi Zen Hei", "Droid Sans Fallback", "Microsoft YaHei", "SimHei",
    "PingFang SC", "Hiragino Sans GB", "Heiti SC", "Yu Gothic", "Malgun Gothic", "Arial Unicode MS",
)  # fmt: skip


def _families(there: Collection[str]) -> list[str]:
    """DejaVu ships with matplotlib: the same glyphs everywhere; then what is `there` for CJK."""
    return ["DejaVu Sans", *(name for name in CJK if name in there)]


_RC: Any = {
    "axes.axisbelow": True,
    "axes.edgecolor": FAINT,
    "axes.facecolor": "white",
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.labelsize": 10,
    "axes.prop_cycle": cycler(color=CATEGORIES),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "figure.dpi": 100,
    "figure.facecolor": "white",
    "figure.constrained_layout.use": True,
    "font.family": _families(set(fontManager.get_font_names())),
    "font.size": 9.5,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.7,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "lines.markersize": 5.5,
    "savefig.facecolor": "white",
    "savefig.transparent": False,
    "svg.fonttype": "path",
    "svg.hashsalt": "repro",  # without it the ids inside an SVG change from run to run
    "text.color": INK,
    "xtick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.color": FAINT,
    "ytick.labelcolor": INK,
}


class Drawing(TypedDict):
    """A figure, its file name, its alternative text and the numbers it shows (JSON-able)."""

    figure: Figure
    name: str
    alt: str
    data: dict[Any, Any]


def use() -> None:
    """Make the style matplotlib's current one."""
    plt.rcdefaults()
    plt.rcParams.update(_RC)


def drawn(function: Callable[P, Drawing]) -> Callable[P, Drawing]:
    """Decorate a function that makes a `Drawing`: the style holds while it draws, and only then."""

    @functools.wraps(function)
    def inner(*args: P.args, **kwargs: P.kwargs) -> Drawing:
        with _drawing():
            return function(*args, **kwargs)

    return inner


@contextmanager
def _drawing() -> Iterator[None]:
    """The style; a character that no font here has is a box, without a warning at each of them."""
    with mpl.rc_context(_RC), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from font")
        yield


def panels(
    rows: int = 1, columns: int = 1, *, height: float = 4.2, **more: Any
) -> tuple[Figure, Any]:
    """A figure in the style and its array of axes [rows, columns], or its one axis.

    `height` in inches; `more` goes to `Figure.subplots`.  The figure belongs to no window.
    """
    figure = Figure(figsize=(WIDTH, height))
    return figure, figure.subplots(rows, columns, **more)


def ordered(count: int, palette: str = "viridis") -> list[str]:
    """`count` colours, dark to light, for things that have an order (model sizes, data sizes)."""
    colours = sns.color_palette(palette, as_cmap=True)(np.linspace(0.05, 0.75, count))
    return [mpl.colors.to_hex(colour) for colour in colours]


def log_axis(axis: Axis, values: Sequence[float], label: str) -> None:
    """A logarithmic axis with one labelled tick at each of `values`, thinned where they would touch."""
    axis._set_axes_scale("log")  # type: ignore[attr-defined]  # set_xscale or set_yscale, whichever it is
    kept = _apart(sorted(set(map(float, values))), 0.055)
    axis.set_major_locator(FixedLocator(kept))
    axis.set_major_formatter(FixedFormatter([count(v) for v in kept]))
    axis.set_minor_locator(NullLocator())
    axis.set_label_text(label)


def log_ticks(axis: Axis, low: float, high: float, label: str) -> None:
    """A logarithmic axis over continuous values, with ticks at 1, 2, 5 or finer round numbers."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in _STEPS:
        every = [step * 10.0**k for k in decades for step in steps]
        ticks = [tick for tick in every if 0.999 * low <= tick <= 1.001 * high]
        if len(ticks) >= 3:
            break
    axis._set_axes_scale("log")  # type: ignore[attr-defined]
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_major_formatter(FixedFormatter([f"{t:.6g}" for t in ticks]))
    axis.set_minor_locator(NullLocator())
    axis.set_label_text(label)


def count(value: float) -> str:
    """A count to read: 640, 10,240, 396.5k, 85.05M."""
    for limit, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e5, "k")):
        if abs(value) >= limit:
            return f"{value / (1e3 if unit == 'k' else limit):.4g}{unit}"
    return f"{value:,.0f}" if value >= 10 else f"{value:.3g}"


def darker(colour: str) -> str:
    """`colour`, dark enough for small text on white."""
    red, green, blue = mpl.colors.to_rgb(colour)
    scale = min(1.0, 0.42 / max(0.2126 * red + 0.7152 * green + 0.0722 * blue, 1e-6))
    return mpl.colors.to_hex((red * scale, green * scale, blue * scale))


def label_ends(
    axes: Axes, labels: Sequence[tuple[float, float, str, str]], gap: float = 0.055
) -> None:
    """Write labels (x, y, text, colour) right of line ends, pushed apart so that none overlap.

    `gap` is the least distance between two, as a share of the axes' height.
    """
    if not labels:
        return
    to_axes = axes.transData + axes.transAxes.inverted()
    placed = sorted(
        (float(to_axes.transform((x, y))[1]), x, y, text, colour) for x, y, text, colour in labels
    )
    heights = [p[0] for p in placed]
    for i in range(1, len(heights)):
        heights[i] = max(heights[i], heights[i - 1] + gap)
    shift = (sum(p[0] for p in placed) - sum(heights)) / len(heights)
    right = max(float(to_axes.transform((x, y))[0]) for x, y, _, _ in labels)
    for height, (_, _, _, text, colour) in zip(heights, placed, strict=True):
        axes.text(
            right + 0.02,
            height + shift,
            text,
            color=darker(colour),
            va="center",
            transform=axes.transAxes,
            fontsize=9,
        )


def save(figure: Figure, folder: Path, name: str, *, alt: str, data: dict[str, Any]) -> None:
    """Write `folder/name.svg`, `.png` (200 dpi) and `.json` ({alt, data}); the same input, the same bytes.

    `alt` stands in the SVG (title and desc), in the PNG's Description and in the JSON: there is what
    a figure says also where no font has its characters.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with _drawing():
        picture = BytesIO()
        figure.savefig(picture, format="svg", metadata={"Date": None, "Creator": None})
        (folder / f"{name}.svg").write_text(
            _described(picture.getvalue().decode(), name, alt), encoding="utf-8"
        )
        figure.savefig(
            folder / f"{name}.png", dpi=200, metadata={"Software": None, "Description": alt}
        )
    text = json.dumps({"alt": alt, "data": plain(data)}, indent=1, sort_keys=True, allow_nan=False)
    (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def plain(value: Any) -> Any:
    """`value` as JSON-able data: arrays as lists, numpy numbers as numbers, NaN and infinity as null."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _described(svg: str, name: str, alt: str) -> str:
    """The SVG with the accessible name and description that screen readers look for."""
    head, opening, rest = svg.partition("<svg ")
    tag, close, body = rest.partition(">")
    title = f"<title id='{name}-title'>{html.escape(alt.split('. ')[0])}</title>"
    desc = f"<desc id='{name}-desc'>{html.escape(alt)}</desc>"
    role = f" role='img' aria-labelledby='{name}-title' aria-describedby='{name}-desc'"
    return f"{head}{opening}{tag}{role}{close}\n {title}\n {desc}{body}"


def _apart(values: list[float], share: float) -> list[float]:
    """`values` without those closer than `share` of the whole (in logarithms) to the one before."""
    if len(values) < 2:
        return values
    whole = math.log(values[-1] / values[0])
    kept = values[:1]
    for value in values[1:]:
        if math.log(value / kept[-1]) >= share * whole:
            kept.append(value)
    return kept
