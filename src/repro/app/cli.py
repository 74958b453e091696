"""The command line: `repro COMMAND`.  Each command is one module with add_parser and run."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import signal
import sys
from collections.abc import Callable

from repro import __version__

COMMANDS = (
    "reproduce", "check", "tune", "fit", "plan", "design", "pretrain", "publish", "stability",
    "export", "site", "compare",
    "store",
)  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    """Run one command; a fault in what the user gave is one screen and exit code 2."""
    given = sys.argv[1:] if arguments is None else arguments

    def run() -> int:
        parser = argparse.ArgumentParser(
            prog="repro", description="Scaling laws of dense retrieval."
        )
        parser.add_argument("--version", action="version", version=f"repro {__version__}")
        subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
        for name in COMMANDS:
            importlib.import_module(f"repro.app.{name}").add_parser(subparsers)
        args = parser.parse_args(given)
        return int(args.run(args))

    return told(" ".join(["repro", *given[:1]]), run)


class Terminated(KeyboardInterrupt):
    """SIGTERM: taken like Ctrl-C."""


def told(name: str, run: Callable[[], int]) -> int:
    """What `run` returns, or its fault in words and the exit code: 2, or 130 and 143 for signals."""
    try:
        with contextlib.suppress(ValueError):  # not the main thread
            signal.signal(signal.SIGTERM, _terminate)
        code = run()
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # whoever read the output has seen enough: `repro ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt as stop:
        print("\nstopped; the same command goes on from here", file=sys.stderr)
        return 143 if isinstance(stop, Terminated) else 130
    except Exception as error:
        if not (words := _in_words(error)):
            raise
        print(f"{name}: {words}", file=sys.stderr)
        return 2


def _terminate(number: int, frame: object) -> None:
    raise Terminated


def _in_words(error: Exception) -> str:
    """A fault that is the user's, the machine's or the disk's; "" for one of the program."""
    from repro.errors import UserError, of_machine, printable
    from repro.store import Spoilt, Superseded

    if isinstance(error, UserError):
        return str(error)
    if isinstance(error, Spoilt | Superseded):
        return f"{error}\n  remedy: the same command again: it makes anew what is damaged"
    found = of_machine(error)
    if not found:
        return printable(str(error)) if isinstance(error, OSError) else ""
    said = printable(str(error)) or found[0]
    return f"{said}\n  remedy: {found[1]}, then the same command again"


if __name__ == "__main__":
    raise SystemExit(main())
