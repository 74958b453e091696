"""The readings of a run: its validation curve, and what is concluded from it at the end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from repro.train.curve import minimum

COLUMNS = ("step", "lr_steps", "sum_lr", "loss", "se", "train_loss", "tokens", "flop", "seconds")


class Record:
    """Readings in order, and the loss of each validation pair at the lowest one (`best`)."""

    def __init__(self, zero_shot: float) -> None:
        self.zero_shot, self.seconds = zero_shot, 0.0
        self.rows: list[dict[str, float]] = []
        self.best: NDArray[np.float64] = np.empty(0)

    def add(self, *, pairs: NDArray[np.float64], **values: float) -> bool:
        """Add a reading; returns whether it is the lowest so far.  pairs: float64 [m], nats."""
        loss, before = float(pairs.mean()), [row["loss"] for row in self.rows]
        error = float(pairs.std(ddof=1) / np.sqrt(len(pairs)))
        self.rows.append({**values, "loss": loss, "se": error, "seconds": self.seconds})
        lowest = loss < min(before, default=np.inf)  # never, where the loss is not a number
        if lowest or not before:
            self.best = pairs
        return lowest

    def last(self, column: str) -> float:
        """The last reading of a column."""
        return self.rows[-1][column]

    def arrays(self, *columns: str) -> list[NDArray[np.float64]]:
        """Each column as float64 [r]."""
        return [
            np.array([row[column] for row in self.rows], dtype=np.float64) for column in columns
        ]

    def as_dict(self) -> dict[str, Any]:
        """Everything but `best`, for the resume state."""
        return {"zero_shot": self.zero_shot, "seconds": self.seconds, "rows": self.rows}

    @classmethod
    def from_dict(cls, about: dict[str, Any], best: NDArray[np.float64]) -> Record:
        """The record that `as_dict` described."""
        record = cls(about["zero_shot"])
        record.seconds, record.rows, record.best = about["seconds"], about["rows"], best
        return record

    def write(self, folder: Path, state: str, resolved: dict[str, Any]) -> None:
        """The finished result: curve.parquet, validation.npy and summary.json."""
        frame = pd.DataFrame(self.rows)[list(COLUMNS)].astype({"step": "int64", "tokens": "int64"})
        frame.to_parquet(folder / "curve.parquet", index=False)
        np.save(folder / "validation.npy", self.best, allow_pickle=False)
        summary: dict[str, Any] = {"state": state, "zero_shot": self.zero_shot, **resolved}
        finite = frame[np.isfinite(frame["loss"])]
        if len(finite) > 0:
            mael, lr_steps = minimum(finite["lr_steps"].to_numpy(), finite["loss"].to_numpy())

            def at_minimum(column: str) -> float:
                return float(np.interp(lr_steps, finite["lr_steps"], finite[column]))

            summary |= {
                "mael": mael,
                "mael_se": float(finite["se"].loc[finite["loss"].idxmin()]),
                "lr_steps": lr_steps,
                "steps": at_minimum("step"),
                "sum_lr": at_minimum("sum_lr"),
                "flop": at_minimum("flop"),
                "tokens": at_minimum("tokens"),
                "flop_spent": float(frame["flop"].iloc[-1]),
                "seconds": self.seconds,
            }
        text = json.dumps(summary, indent=1, allow_nan=False) + "\n"
        (folder / "summary.json").write_text(text, encoding="utf-8")
