"""The command line: `repro COMMAND`.  Each command is one module with add_parser and run."""

from __future__ import annotations

import argparse
import importlib
import sys

COMMANDS = (
    "reproduce", "check", "tune", "fit", "plan", "design", "pretrain", "publish", "stability",
)  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    """Run one command; a fault in what the user gave is one screen and exit code 2."""
    parser = argparse.ArgumentParser(prog="repro", description="Scaling laws of dense retrieval.")
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in COMMANDS:
        importlib.import_module(f"repro.app.{name}").add_parser(subparsers)
    args = parser.parse_args(arguments)
    from repro.params import UserError

    try:
        return int(args.run(args))
    except UserError as error:
        print(f"repro {args.command}: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"repro {args.command}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nstopped; the same command goes on from here", file=sys.stderr)
        return 130


if __name__ == "__main__":
    raise SystemExit(main())
