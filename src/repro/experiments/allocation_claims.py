"""What the readings of a step and the lines of equal compute say to the MAEL paper's claims."""

from __future__ import annotations

from typing import Any

import pandas as pd

from repro.experiments.answer import Answer, answer
from repro.experiments.regime import Regime
from repro.experiments.steps_law import bounds

_KINDS = {
    "censored": "censored (lower bounds)",
    "at_first": "lowest at their first reading (upper bounds)",
    "diverged": "diverged (left out)",
}


def steps(raw: dict[str, Any], table: pd.DataFrame) -> Answer:
    """M10."""
    if raw["a"]["value"] is None:
        return answer(None, raw["note"], n=len(table), blocked=raw["note"])
    counts = {kind: len(found) for kind, found in bounds(table).items() if found}
    said = "; ".join(f"{count} runs {_KINDS[kind]}" for kind, count in counts.items())
    why = "S = k N^-a D^b in raw steps, each model at its own rate, a cell the mean of its seeds"
    why += f"; scatter of a cell {100 * raw['residual']:.0f} %" + (f"; {said}" if said else "")
    note = f"; {raw['note']}" if raw["note"] else ""
    return answer(None, why + note, n=raw["n"], parts={name: raw[name] for name in ("a", "b")})


def compute(raw: dict[str, Any], flop: dict[str, Any]) -> Answer:
    """M11."""
    if raw["a"]["value"] is None:
        return answer(None, raw["note"], n=0, blocked=raw["note"])
    parts = {"n": raw["cost_n"], "d": raw["b"], "n_flop": flop["cost_n"], "d_flop": flop["b"]}
    why = "C ~ N S with raw steps"
    if flop["a"]["value"] is not None:
        why += (
            f"; the FLOPs really spent go as N^{flop['cost_n']['value']:.3f} "
            f"D^{flop['b']['value']:.3f}"
        )
    return answer(None, why, n=raw["n"], parts=parts)


def ratio(raw: dict[str, Any], regime: Regime) -> Answer:
    """M12."""
    parts = {name: raw[name] for name in ("model", "data", "ratio")}
    if parts["ratio"]["value"] is None:
        why = raw["note"] or "too few models or sizes for both laws"
        return answer(None, why, n=raw["n"], blocked=why)
    why = (
        f"alpha / (1 - a) over beta / b in raw steps; intervals from draws of both laws, {raw['models']} "
        "models and the sizes counted as the facts"
    )
    blocked = "" if regime else regime.brief
    return answer(
        parts["ratio"]["value"], why, n=raw["n"], ci95=parts["ratio"]["ci95"], parts=parts,
        blocked=blocked,
    )  # fmt: skip


def turns(raw: dict[str, Any], lr: dict[str, Any], regime: Regime) -> Answer:
    """M21: 1 outside both intervals, and on different sides: the headline turns with the reading."""
    found = [(row, row["ratio"]["value"], row["ratio"]["ci95"]) for row in (raw, lr)]
    if any(value is None for _, value, _ in found):
        why = "the ratio is not determined under both readings"
        return answer(None, why, n=raw["n"], blocked=why)
    said, sides = [], []
    for row, value, ends in found:
        span = f" [{ends[0]:.2f}, {ends[1]:.2f}]" if ends else ""
        said.append(f"{row['title']} {value:.2f}{span}")
        sides.append(0 if ends is None else 1 if ends[0] > 1 else -1 if ends[1] < 1 else 0)
    holds = None if 0 in sides else sides[0] != sides[1]
    why = f"ratio under {' and '.join(said)}"
    if 0 in sides:
        why += "; an interval covers 1, so the side is open"
    parts = {"ratio_raw": raw["ratio"], "ratio_lr_steps": lr["ratio"]}
    blocked = "" if regime else f"{why}; {regime.brief}"
    return answer(None, why, n=raw["n"], parts=parts, holds=holds, blocked=blocked)


def no_middle(flop: dict[str, Any], iso: dict[str, Any], regime: Regime) -> Answer:
    """M14: on the law the ratio of the efficiencies (in measured FLOP) above 1; on cells every pair.

    It holds if all fall, each by its own 95 % interval; it fails if the law rises, or one pair does
    (p < .025 divided by the number of pairs, since one of several may rise by luck).
    """
    pairs = [row for row in iso["pairs"] if row["p_rises"] is not None]
    if not pairs:
        why = "no two models were measured at equal compute"
        return answer(None, why, n=0, blocked=why)
    ends = flop["ratio"]["ci95"] if regime else None
    falls = [row["difference"]["ci95"][1] < 0 for row in pairs]
    rises = [row for row in pairs if row["p_rises"] < 0.025 / len(pairs)]
    law_says = "falls" if ends and ends[0] > 1 else "rises" if ends and ends[1] < 1 else "is open"
    holds = None
    if rises or law_says == "rises":
        holds = False
    elif all(falls) and law_says == "falls":
        holds = True
    said = "; ".join(
        f"{row['small']} to {row['large']} {_percent(row['difference'])}" for row in pairs
    )
    why = f"at equal measured FLOP, log MAEL of the larger model less that of the smaller: {said}; "
    why += f"on the law the loss {law_says}" + ("" if regime else f" ({regime.brief})")
    parts = {f"{row['small']} to {row['large']}": row["difference"] for row in pairs}
    parts["ratio"] = flop["ratio"]
    return answer(None, why, n=len(pairs), parts=parts, holds=holds)


def _percent(found: Answer) -> str:
    ends = found["ci95"]
    span = f" [{100 * ends[0]:+.1f}, {100 * ends[1]:+.1f}]" if ends else ""
    return f"{100 * found['value']:+.1f} %{span}"
