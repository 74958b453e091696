"""The start of each command, beside that of Python alone, by turns; and what `repro fit` imports.

    python benchmarks/start.py [--quick]

Wall time from the start of a process to its end: `repro --help`, the help of every command, and `repro
fit` on a table of 16 rows.  `python -c pass` is Python itself, in the same round.
"""

from __future__ import annotations

import functools
import subprocess
import sys
from pathlib import Path

import common
import numpy as np
from common import Asked

from repro.app.cli import COMMANDS
from repro.seeds import stream

MOST_SECONDS = 0.3  # of `repro --help`
HEAVY = ("torch", "transformers", "matplotlib")
# The command, as `repro` runs it; then the names of what is loaded, the last line of its errors.
WATCHED = (
    "import sys; from repro.app.cli import main; code = main(sys.argv[1:]); "
    f"print(*({{*{HEAVY!r}}} & set(sys.modules)), file=sys.stderr); sys.exit(code)"
)


def main() -> None:
    """Start all by turns and print the table."""
    parser = common.options(__doc__)
    given = parser.parse_args()
    path = str(table(common.scratch() / "table.csv"))
    lines = {"repro --help": ["--help"]}
    chosen = ["fit"] if given.quick else COMMANDS
    lines |= {f"repro {name} --help": [name, "--help"] for name in chosen}
    lines |= {"repro fit TABLE.csv": ["fit", path]}
    python = "python -c pass"
    commands = {python: [sys.executable, "-c", "pass"]}
    commands |= {
        name: [sys.executable, "-m", "repro.app.cli", *arguments]
        for name, arguments in lines.items()
    }
    contenders = {
        name: functools.partial(common.seconds, functools.partial(ended, command))
        for name, command in commands.items()
    }
    common.alternate(contenders, 1)  # files are read into the cache
    found = common.alternate(contenders, common.rounds(given))
    rows = [
        [name, common.spread(values), common.spread(values / found[python])]
        for name, values in found.items()
    ]
    help_seconds = found["repro --help"]
    asked = [Asked("repro --help, seconds", MOST_SECONDS, help_seconds, at_most=True)]
    loaded = ended([sys.executable, "-c", WATCHED, "fit", path]).splitlines()[-1].split()
    asked.append(
        Asked("repro fit, imports of torch", 0, np.array([loaded.count("torch")]), at_most=True)
    )
    after = ", ".join(f"{name} {'yes' if name in loaded else 'no'}" for name in HEAVY)
    note = (
        "Seconds, and ratios within a round: median (least to greatest).  "
        f"Loaded after `repro fit TABLE.csv`: {after}."
    )
    common.show("Start", ["command", "seconds", "over python"], rows, asked, note)


def ended(command: list[str]) -> str:
    """Run a command to its end; what it wrote of errors.  Stops the benchmark where it fails."""
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"benchmarks: failed: {' '.join(command)}\n{done.stderr}")
    return done.stderr


def table(path: Path) -> Path:
    """Losses of 4 models and 4 sizes by a law, with 2 % noise."""
    n, d = (v.ravel() for v in np.meshgrid(np.geomspace(4e5, 8.5e7, 4), np.geomspace(5e3, 3e5, 4)))
    loss = 100 * n**-0.16 * d**-0.2 * np.exp(0.02 * stream(0, "benchmark").normal(size=len(n)))
    rows = [f"{a:.0f},{b:.0f},{c:.5f}\n" for a, b, c in zip(n, d, loss, strict=True)]
    path.write_text("n,d,loss\n" + "".join(rows), encoding="utf-8")
    return path


if __name__ == "__main__":
    main()
