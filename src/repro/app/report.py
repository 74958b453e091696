"""report.json: what a study found, for machines and for the pages that are drawn from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from repro.files import write_bytes, write_json
from repro.show import claims, short
from repro.store import VERSIONS

if TYPE_CHECKING:
    from repro.app.study import Study

GRID_COLUMNS = [
    "model", "n_encoder", "n_encoder_pooler", "n_drscale", "n_total", "d", "seed", "lr", "batch",
    "negatives", "weight_decay", "zero_shot", "mael", "mael_se", "test_entropy", "steps", "lr_steps",
    "sum_lr", "flop", "tokens", "seconds", "state", "mrr10", "recall100", "ndcg10", "map10", "run",
]  # fmt: skip
RUN_COLUMNS = [
    "experiments", "dataset", "labels", "weights", *GRID_COLUMNS[:10], "decayed", "subset_seed",
    "dropout_seed", *GRID_COLUMNS[10:],
]  # fmt: skip


def write_report(study: Study) -> dict[str, Any]:
    """Write report.json, grid.csv and runs.csv into the build folder of `study`; returns the report."""
    table = study.grid()[GRID_COLUMNS]
    answers = study.answers()
    report = {
        "profile": study.profile_name,
        "dataset": study.dataset_params.name,
        "meaningless": study.profile.meaningless,
        "digests": study.digests(),
        "versions": VERSIONS,
        "provenance": study.provenance(),
        "grid": records(table),
        "missing": study.missing(),
        "in_short": short.law_answer(answers["law_choice"]),
        "laws": answers["law_choice"]["laws"],
        "claims": claims.verdicts(answers, comparable=study.comparable),
        "limits": [limit.model_dump() for limit in claims.load().limits],
    }
    study.build.mkdir(parents=True, exist_ok=True)
    write_bytes(study.build / "grid.csv", csv(table))
    write_bytes(study.build / "runs.csv", csv(every_run(study)))
    write_json(study.build / "report.json", report)
    return report


def every_run(study: Study) -> pd.DataFrame:
    """One row a finished run of any experiment: those it serves, data, labels, and the grid's columns."""
    rows: dict[str, dict[str, Any]] = {}
    for name, runs in study.experiments().items():
        for run in runs:
            row = study.runs.row(run)
            if row is None:
                continue
            kind = run.train.inputs.get("labels", {}).get("kind", {})
            about = {
                "experiments": name,
                "dataset": run.train.inputs["dataset"]["name"],
                "labels": " ".join(str(kind[key]) for key in ("kind", "share") if key in kind),
            }
            before = rows.get(row["run"])
            if before is None:
                rows[row["run"]] = {**about, **row}
            elif name not in before["experiments"].split():
                before["experiments"] += f" {name}"
    return pd.DataFrame(rows.values()).reindex(columns=RUN_COLUMNS)


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows as plain JSON values; None where there is no value."""
    rows = table.astype(object).where(table.notna(), None).to_dict(orient="records")
    return [{str(k): v.item() if hasattr(v, "item") else v for k, v in row.items()} for row in rows]


def csv(table: pd.DataFrame) -> bytes:
    """The table as CSV with enough digits to read every float back."""
    return table.to_csv(index=False, float_format="%.17g", lineterminator="\n").encode()
