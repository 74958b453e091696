"""`python -m rehearsal`, or `python -m rehearsal make FOLDER`."""

import signal
import sys
from pathlib import Path

from rehearsal.make import lay_out
from rehearsal.run import main

if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as an exception: children are ended
    if sys.argv[1:2] == ["make"]:
        print(lay_out(Path(sys.argv[2])))
        raise SystemExit
    raise SystemExit(main())
