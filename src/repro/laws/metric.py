"""From loss to a ranking metric: the straight line through a grid's (loss, metric), with its band."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import t as student

from repro.errors import UserError
from repro.laws.shapes import Array


@dataclass(frozen=True)
class MetricLine:
    """metric = intercept + slope x loss; sd of the runs about it, df, and where it was seen.

    centre, spread: mean of the losses and their sum of squares about it.  It is a description of
    the runs it was fitted to, nothing more: outside [low, high] it is a guess.
    """

    name: str
    intercept: float
    slope: float
    sd: float
    df: int
    centre: float
    spread: float
    low: float
    high: float
    pearson: float

    def metric(self, loss: ArrayLike) -> Array:
        """The metric at a loss (nats)."""
        return self.intercept + self.slope * np.asarray(loss, dtype=float)

    def band(self, loss: ArrayLike, level: float = 0.95) -> tuple[Array, Array]:
        """Where a new run's metric lies, with this probability."""
        x = np.asarray(loss, dtype=float)
        error = self.sd * np.sqrt(1 + 1 / (self.df + 2) + (x - self.centre) ** 2 / self.spread)
        half = student.ppf((1 + level) / 2, self.df) * error
        return self.metric(x) - half, self.metric(x) + half

    def loss(self, metric: float, level: float = 0.95) -> tuple[float, float, float]:
        """The loss at which the metric is reached, and its limits: (low, loss, high)."""
        if self.slope >= 0:
            raise UserError(
                f"{self.name} does not fall with the loss in this table, so no loss can be given for it",
                remedy="use --target-loss",
            )
        loss = (metric - self.intercept) / self.slope
        half = student.ppf((1 + level) / 2, self.df) * self.sd / abs(self.slope)
        return loss - half, loss, loss + half

    def to_dict(self) -> dict[str, float | int | str]:
        """Its numbers, ready for JSON; `MetricLine(**...)` is the way back."""
        return asdict(self)


def metric_line(name: str, loss: Array, metric: Array) -> MetricLine:
    """Least squares of the metric on the loss; raises `UserError` with fewer than three runs."""
    good = np.isfinite(metric)
    if np.count_nonzero(good) < 3 or np.ptp(loss[good]) == 0:
        raise UserError(f"column {name!r} has fewer than three usable runs", remedy="drop --metric")
    x, y = loss[good], metric[good]
    centre, spread = float(x.mean()), float(np.sum((x - x.mean()) ** 2))
    slope = float((x - centre) @ y / spread)
    rest = y - y.mean() - slope * (x - centre)
    df = len(x) - 2
    sd = float(np.sqrt(rest @ rest / df))
    pearson = float(np.corrcoef(x, y)[0, 1]) if np.ptp(y) > 0 else 0.0
    intercept = float(y.mean()) - slope * centre
    return MetricLine(
        name, intercept, slope, sd, df, centre, spread, float(x.min()), float(x.max()), pearson
    )
