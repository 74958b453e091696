"""`repro stability`: do a study's verdicts hold under other root seeds?"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from repro.app.study import Study
    from repro.data.dataset import DatasetParams

RUN_STEPS = (
    1000,
    2000,
)  # added to the run seed: the seeds of a grid's cells take the small numbers
DATA_STEPS = (1, 2)  # added to the data seed
BASE = "base"


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "stability",
        help="ask which verdicts depend on the root seeds",
        description="Runs a study again under two other run seeds and two other data seeds, one "
        "changed at a time, and says which verdicts change.  Takes about four times the study.",
    )
    parser.add_argument("profile", nargs="?", default="mini", help="a profile; PROFILE:DATASET")
    parser.add_argument(
        "--others",
        type=int,
        choices=(1, 2),
        default=2,
        help="other run seeds, and as many other data seeds; with 1 it takes half the time",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Sweep, answer and compare; writes stability.json.  0 when all is there, 1 when runs failed."""
    from repro.app.study import Study
    from repro.files import write_json
    from repro.places import absolute
    from repro.progress import clock
    from repro.show import agreement
    from repro.store import VERSIONS

    studies = variants(Study.open(absolute(args.profile)), args.others)
    base = studies[BASE]
    budgets = [each.budget(later=True) for each in studies.values()]  # refuses what cannot run
    runs = budgets[0].total.runs - budgets[0].total.shared
    seconds = sum(found.wall_seconds for found in budgets)
    print(
        f"{len(studies)} studies of {runs} runs: about {clock(seconds)} to go ({budgets[0].source})"
    )
    found = [{"name": name, **measured(each)} for name, each in studies.items()]
    compared = agreement.compare({each["name"]: each["claims"] for each in found})
    record = {
        "study": base.name,
        "digests": base.digests(),
        "versions": VERSIONS,
        "variants": found,
        "claims": [
            {
                "id": row["id"],
                "kind": row["kind"],
                "outcome": row["outcome"],
                "verdicts": {name: each["verdict"] for name, each in row["rows"].items()},
            }
            for row in compared
        ],
    }
    base.build.mkdir(parents=True, exist_ok=True)
    write_json(base.build / "stability.json", record)
    print(agreement.divided(compared).replace("**", ""))
    print(f"record: {base.build / 'stability.json'}")
    return 1 if any(each["missing"] for each in found) else 0


def variants(study: Study, others: int = 2) -> dict[str, Study]:
    """The study as it is (`base`), and under others of either root seed, one changed at a time."""
    found = {BASE: study}
    for step in RUN_STEPS[:others]:
        seed = study.profile.seed + step
        profile = study.profile.model_copy(update={"seed": seed})
        found[f"run{seed}"] = study.changed(f"run{seed}", profile=profile)
    for step in DATA_STEPS[:others]:
        seed = study.dataset_params.seed + step
        name = f"data{seed}"
        found[name] = study.changed(name, dataset_params=_reseeded(study, seed, name))
    return found


def measured(study: Study) -> dict[str, Any]:
    """Root seeds, the number of missing runs, and the verdicts on runs, of a study; sweeps first."""
    from repro.errors import UserError
    from repro.show import claims

    for label, reason in study.sweep().items():
        print(f"missing: {label}: {reason.splitlines()[0]}", file=sys.stderr)
    if study.grid().empty:
        raise UserError("no run has finished", remedy=f"see {study.store.root}/train/.failed/")
    rows = claims.verdicts(study.answers(), comparable=study.comparable)
    return {
        "run_seed": study.profile.seed,
        "data_seed": study.dataset_params.seed,
        "missing": study.missing(),
        "claims": [
            {key: value for key, value in row.items() if key not in ("source", "notebook", "why")}
            for row in rows
            if row["kind"] != "calc"
        ],
    }


def _reseeded(study: Study, seed: int, name: str) -> DatasetParams:
    """The dataset under another data seed.

    A target that names the dataset itself follows it: drawn by the old seed it would not be apart from
    what the new one trains on.  So the changed dataset gets a file, beside the variant's other results.
    """
    from repro.data.dataset import find_dataset_file
    from repro.files import write_json

    own = study.dataset.params  # with the sizes that `splits: auto` chose
    file = study.build.with_name(f"{study.name}-{name}") / study.dataset_file.name
    targets = {
        target: asked.model_copy(update={"dataset": str(file)})
        if find_dataset_file(asked.dataset).resolve() == study.dataset_file.resolve()
        else asked
        for target, asked in own.targets.items()
    }
    changed = own.model_copy(update={"seed": seed, "targets": targets})
    file.parent.mkdir(parents=True, exist_ok=True)
    write_json(file, changed.model_dump(mode="json"))
    return changed
