"""Sentences of notebook 02: rates without a minimum, spread with and without them, collapse, likeness.

Each takes what `experiments.lr_invariance.answers` gives, or an empty mapping where the profile has no
such study.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from repro.show.page import cell, estimate

NOT_ASKED = (
    "**This profile does not run this experiment**: it has no section `lr_study`, so that the sections "
    "below stay empty."
)
NOTHING = "No run of this experiment has finished."


def asked(found: Mapping[str, Any]) -> str:
    """What was run, and which rates did not reach a minimum, by name."""
    if not found:
        return NOT_ASKED
    count = found["counts"]
    if not count:
        return NOTHING
    low, high = count["lr"]
    sizes = ", ".join(f"{d:,}" for d in count["sizes"])
    share = f"{100 * count['reached'] / count['runs']:.0f} %"
    text = (
        f"{count['model']} at {count['rates']} rates from {low:.2g} to {high:.2g} (a factor of "
        f"{high / low:.3g}), D = {sizes}. **{count['reached']} of {count['runs']} runs ({share}) reached "
        f"their minimum**, {count['reached_everywhere']} of {count['rates']} rates at every D."
    )
    lacking = [f"{run['lr']:.2g} at D = {run['d']:,} ({run['state']})" for run in count["lacking"]]
    return text + (f" Without a minimum: {'; '.join(lacking)}." if lacking else "")


def spreads(found: Mapping[str, Any]) -> pd.DataFrame:
    """The spread over rates and the range over D: of runs with a minimum, less an end, and of all."""
    titles = {
        "reached": "those that reached their minimum",
        "lower": "of these, without the highest rate",
        "higher": "of these, without the lowest rate",
        "all": "all with a loss",
    }
    rows = []
    for of, title in titles.items():
        own = found.get("spread", {}).get(of)
        if own is None:
            continue
        fewest, most = own["rates"]
        rows.append(
            {
                "runs": title,
                "n": own["n"],
                "rates at a D": f"{fewest}" if fewest == most else f"{fewest} to {most}",
                "sd over rates (nats)": own["sd"],
                "range over D (nats)": own["range"],
                "ratio": cell(own["ratio"]),
                "95 %": cell(own["ci95"]),
            }
        )
    return pd.DataFrame(rows)


def collapse(found: Mapping[str, Any]) -> pd.DataFrame:
    """The spread of the curves before the first minimum over both axes, a row a bundle."""
    titles = {"reached": "rates that reached it", "all": "all rates", "seeds": "seeds of one rate"}
    return pd.DataFrame(
        {
            "D": row["d"],
            "curves": f"{row['curves']}: {titles[row['of']]}",
            "spread over steps (nats)": row["step"],
            "over lr-steps (nats)": row["lr_steps"],
            "ratio": row["ratio"],
        }
        for row in sorted(found.get("collapse", []), key=lambda row: row["d"])
    )


def summary(found: Mapping[str, Any]) -> str:
    """The three answers in three sentences."""
    if not found or not found["counts"]:
        return NOT_ASKED if not found else NOTHING
    low, fast, alike = (found[claim] for claim in ("M1", "M2", "M3"))
    ratio = low["parts"].get("ratio", {})
    return "\n".join([
        f"- **How low?** sd over rates as a share of the range over D: {estimate(ratio)}. {_why(low)}",
        f"- **How fast?** Spread over lr-steps as a share of that over steps: {estimate(fast)}. {_why(fast)}",
        f"- **To the same place?** Debiased CKA between rates: {estimate(alike)}. {_why(alike)}",
    ])  # fmt: skip


def _why(answer: Mapping[str, Any]) -> str:
    text = str(answer["blocked"] or answer["why"])
    return f"{text[:1].upper()}{text[1:]}."


def likeness(rows: Sequence[Mapping[str, Any]]) -> str:
    """How many texts the comparison rests on."""
    known = [row for row in rows if row["debiased"] is not None]
    if not known:
        return "No two checkpoints could be compared."
    texts = {row["text"]: row["n"] for row in known}
    counted = " and ".join(f"{n:,} {text}" for text, n in texts.items())
    return f"On {counted} of the test pairs, which chose no checkpoint."
