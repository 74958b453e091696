"""Sentences and tables of notebook 08, from the answers of `experiments.transfer_answers`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from repro.show.page import cell

NOT_RUN = "This profile has no section `transfer`, so nothing of this page was run."
Target = Mapping[str, Any]


def points(targets: Sequence[Target]) -> str:
    """How many points each target has, how its runs ended, and what its points do not determine."""
    if not targets:
        return "No run of transfer has finished."
    said = []
    for one in targets:
        states = ", ".join(f"{n} {state}" for state, n in one["states"].items()) or "no run"
        line = f"**{one['target']}**: {one['n']} points (runs: {states}; the others are starts)"
        if one["problem"]:
            line += f"; not determined: {one['problem']}"
        elif one["unspared"]:
            line += f"; nothing can be left out: {one['unspared']}"
        said.append(line)
    return ". ".join(said) + "."


def laws(targets: Sequence[Target]) -> pd.DataFrame:
    """The transfer law and the simpler forms: errors on what the fit did not see, a row each."""
    return pd.DataFrame(
        {
            "target": one["target"],
            "form": row["title"],
            "formula": row["formula"],
            "parameters": row["k"],
            "residual, %": _percent(row["residual"]),
            "checkpoint out, %": _percent(row["loo_p"]),
            "size out, %": _percent(row["loo_f"]),
        }
        for one in targets
        for row in one["laws"]
    )


def parameters(targets: Sequence[Target]) -> pd.DataFrame:
    """The transfer law's parameters with 95 % intervals, a row a target."""
    rows = []
    for one in targets:
        if not one["laws"] or not one["laws"][0]["params"]:
            continue
        law = one["laws"][0]
        row = {"target": one["target"], "points": law["n"]}
        for name, value in law["params"].items():
            ends = law["ci95"].get(name)
            row[name] = cell(value) + (f" {cell(ends)}" if ends else "")
        rows.append({**row, "weak": law["note"] or "–"})
    return pd.DataFrame(rows)


def splits(targets: Sequence[Target]) -> pd.DataFrame:
    """The best split under each fitted law, a row a target and price."""
    return pd.DataFrame(
        {
            "target": one["target"],
            "a pair costs, steps": row["price"],
            "budget, steps": row["budget"],
            "p": row["p"],
            "f": row["f"],
            "for pre-training, %": _percent(row["share"]),
            "by formula, %": _percent(row["formula"]),
            "95 %": [100 * end for end in row["ci95"]] if row["ci95"] else None,
            "outside the runs by": row["outside"],
        }
        for one in targets
        for row in one["splits"]
        if row["gap"] is None
    )


def statics(targets: Sequence[Target]) -> str:
    """What a larger gap and cheaper labels do to the best split, from our fits."""
    said = []
    for one in targets:
        fitted = [row for row in one["splits"] if row["gap"] is None]
        if not fitted:
            continue
        cheap, dear = fitted[0], fitted[-1]
        falls = ", ".join(
            f"{100 * row['change']:+.0f} points at {row['price']:g} steps a pair"
            for row in one["falls"]
        )
        left = one["gap_left"]
        said.append(
            f"**{one['target']}**: at {left['p']:,} steps G is {_percent(left['value'])} % of the gap "
            f"{cell([100 * end for end in left['ci95']]) if left['ci95'] else ''}; from no gap to four times "
            f"what pre-training closes its share changes by {falls}; with labels at {cheap['price']:g} "
            f"instead of {dear['price']:g} steps and the same budget it goes from {_percent(dear['share'])} "
            f"to {_percent(cheap['share'])} % and {cell(dear['f'])} pairs become {cell(cheap['f'])}"
        )
    return ". ".join(said) + "." if said else "No target determines the law, so no split is given."


def widths(targets: Sequence[Target]) -> pd.DataFrame:
    """Half of the 95 % interval over the value, by number of points; last: the paper's 150."""
    rows = []
    for one in targets:
        rows += [{"target": one["target"], **row} for row in one["widths"]]
        if one["at_150"]:
            more = {"target": one["target"], "points": "150 (computed)", "subsets": None}
            rows.append({**more, **one["at_150"]})
    return pd.DataFrame(rows)


def worth(targets: Sequence[Target]) -> pd.DataFrame:
    """D0 by checkpoint, on one curve and on curves of their own."""
    return pd.DataFrame(
        {
            "target": one["target"],
            "p": row["p"],
            "zero-shot, nats": row["zero_shot"],
            "D0, one curve": row["shared"],
            "95 %": row["shared_ci95"],
            "from labels alone": row["paid"],
            "D0, own curve": row["d0"],
            "95 % ": row["ci95"],
            "beta, own": row["beta"],
            "note": row["note"] or "–",
        }
        for one in targets
        if one["worth"]
        for row in one["worth"]["rows"]
    )


def growth(targets: Sequence[Target]) -> str:
    """Whether D0 grows with pre-training, and whether one curve describes all checkpoints."""
    said = []
    for one in targets:
        found = one["worth"]
        if not found:
            continue
        parts = [
            f"D0 ~ p^{cell(slope['value'])} {cell(slope['ci95']) if slope['ci95'] else ''} {name}".strip()
            for slope, name in (
                (found["shared_growth"], "on one curve"),
                (found["growth"], "on curves of their own"),
            )
            if slope
        ]
        if found["p_shared"] is not None:
            parts.append(
                f"p = {cell(found['p_shared'], 2)} that one curve describes all checkpoints "
                f"(it misses by {_percent(found['shared_residual'])} %)"
            )
        said.append(f"**{one['target']}**: {'; '.join(parts) or 'too few checkpoints and sizes'}")
    return ". ".join(said) + "." if said else "D0 is not known."


def equivalents(targets: Sequence[Target]) -> pd.DataFrame:
    """Further pairs that the least pre-trained start needs to be as good: a row a checkpoint."""
    rows: dict[tuple[str, int], dict[str, Any]] = {}
    for one in targets:
        for row in one["equivalents"]:
            line = rows.setdefault(
                (one["target"], row["p"]), {"target": one["target"], "p": row["p"]}
            )
            more = row["pairs"]
            line[f"f = {row['f']:,}"] = (
                f"{more:,.0f}" if more is not None else f"> {row['beyond']:,.0f}"
            )
    return pd.DataFrame(list(rows.values()))


def _percent(share: float | None) -> str:
    return "–" if share is None else cell(100 * share)
