"""Every speed that is asked, beside its peer: training, encoding, evaluation, workers, search, starts.

    make bench [ARGS=--quick]      (long; wants an idle machine)

Installs the peer into build/peer if it is not there, then runs each script in a process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import peer

SCRIPTS = [
    ["train.py", "--threads", "1"],
    ["train.py", "--threads", "2"],
    ["dropout.py"],
    ["encode.py"],
    ["evaluate.py"],
    ["workers.py"],
    ["tokenise.py"],
    ["search.py"],
    ["start.py"],
    ["growth.py"],
    ["gpu.py"],
]


def main() -> None:
    """Run all; the exit code says whether all of them ended well (not whether figures were met)."""
    peer.install()
    folder = Path(__file__).parent
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    environment.pop("RAYON_NUM_THREADS", None)
    failed = [
        " ".join(script)
        for script in SCRIPTS
        if subprocess.run(
            [sys.executable, str(folder / script[0]), *script[1:], *sys.argv[1:]], env=environment
        ).returncode
    ]
    if failed:
        sys.exit(f"benchmarks: failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
