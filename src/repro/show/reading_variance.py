"""Words and table of notebook 03 on the components of MAEL's noise, from `experiments.variance`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from repro.show.page import cell

TITLES = {"subset": "draw of the pairs", "order": "batch order", "dropout": "dropout"}
NOT_RUN = (
    "**Not run**: this profile has no section `variance`, so what the noise of a cell is made of, and "
    "how much of it the draw of the pairs adds, is not known here."
)


def summary(found: Mapping[str, Any] | None) -> str:
    """Shares, what the re-seed noise leaves out, the sampling of validation pairs, and what is missing."""
    if not found:
        return NOT_RUN
    if not found["runs"]:
        return "No run of this experiment has finished."
    pooled = found["pooled"]
    said = [f"{found['model']}, {found['runs']} runs. {_shares(pooled)} {_understated(pooled)}"]
    if pooled["validation"]["relative"] is not None:
        said.append(
            f"Beside it stands the sampling of the validation pairs, which all cells share: standard error "
            f"{_percent(pooled['validation']['relative'])} of MAEL."
        )
    if found["sizes"]:
        most = found["sizes"][-1]["d"]
        said.append(
            f"Pairs are drawn from {found['pool']:,}: two draws of {most:,} share "
            f"{_percent(most / found['pool'])}, so that draws of fresh pairs differ by more."
        )
    lacking = [
        f"{TITLES.get(run['component'], 'own run')} at D = {run['d']:,} ({run['state']})"
        for run in found["lacking"]
    ]
    missed = f"Without a minimum, and left out: {'; '.join(lacking)}." if lacking else ""
    return " ".join([*said, missed or "Every run reached its minimum."])


def _shares(pooled: Mapping[str, Any]) -> str:
    known = [row for row in pooled["components"] if row["share"]["value"] is not None]
    if not known:
        return "The components cannot be told apart: a component has no two runs, or none varies."
    listed = "; ".join(f"{TITLES[row['component']]} {_share(row['share'])}" for row in known)
    return f"Shares in the variance of log MAEL: {listed}. Together: sd {_share(pooled['total'])} of MAEL."


def _understated(pooled: Mapping[str, Any]) -> str:
    factor = pooled["understated"]
    if factor["value"] is None:
        return "By how much the noise of re-seeding understates that of a cell is not known."
    ends = f" [{factor['ci95'][0]:.2f}, {factor['ci95'][1]:.2f}]" if factor["ci95"] else ""
    return (
        f"A seed of the grid keeps the pairs: **the sd between seeds is to be multiplied by "
        f"{factor['value']:.2f}{ends}** where cells on other pairs are meant."
    )


def components(found: Mapping[str, Any] | None) -> pd.DataFrame:
    """A row a component and size, and pooled: sd in nats and relative, share, df."""
    if not found or not found["runs"]:
        return pd.DataFrame()
    rows = []
    for own in [*found["sizes"], {"d": "pooled", **found["pooled"]}]:
        where = own["d"] if own["d"] == "pooled" else f"{own['d']:,}"
        rows += [
            {
                "D": where,
                "component": TITLES[row["component"]],
                "sd (nats) [95 %]": _with(row["sd"]),
                "of MAEL": _share(row["relative"]),
                "share": _share(row["share"]),
                "df": row["df"],
            }
            for row in own["components"]
        ]
        spread = own["validation"]
        shown = {"sd (nats) [95 %]": cell(spread["sd"]), "of MAEL": _percent(spread["relative"])}
        rows.append({"D": where, "component": "*sampling of validation pairs*", **shown})
    return pd.DataFrame(rows)


def _with(given: Mapping[str, Any]) -> str:
    return cell(given["value"]) + (f" {cell(given['ci95'])}" if given["ci95"] else "")


def _share(given: Mapping[str, Any]) -> str:
    if given["value"] is None:
        return "–"
    ends = [f"{100 * end:.3g}" for end in given["ci95"] or []]
    return _percent(given["value"]) + (f" [{', '.join(ends)}]" if ends else "")


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.3g} %"
