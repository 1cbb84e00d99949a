"""The command ``epsjoin``: what people ask of tables, files and machines."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from epsjoin.commands import doctor
from epsjoin.errors import EpsjoinError

USAGE = """usage: epsjoin COMMAND ...

  contract  new FILE: a first contract of a data set, from one of its files; check and publish: their versions
  estimate  what a join would give and cost, before it runs: pairs, memory, time, a suggested eps
  show      what a run found, as a few lines
  trend     what all runs found, as a table and a picture over time
  verify    whether a run's stored pairs and clusters are right, by brute force on random points (a Spark job)
  doctor    what this machine has and lacks, each with its remedy

epsjoin COMMAND --help says more.
"""
MODULES = {
    "contract": "epsjoin.commands.contract",
    "estimate": "epsjoin.commands.estimate",
    "show": "epsjoin.commands.show",
    "trend": "epsjoin.commands.trend",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code, see ``errors.py``."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    command = arguments[0] if arguments else ""
    if command in ("-h", "--help", "help"):
        print(USAGE, end="")
        return 0
    if command == "doctor":
        return doctor.main(arguments[1:])
    if command == "verify":
        print("epsjoin verify: it runs on Spark; start it as bin/epsjoin verify", file=sys.stderr)
        return 2
    if command not in MODULES:
        print(USAGE, end="", file=sys.stderr)
        return 2
    # only now: the doctor must run where what these import is missing
    run = importlib.import_module(MODULES[command]).main
    try:
        return int(run(arguments[1:]))
    except EpsjoinError as error:
        print(f"epsjoin {command}: {error}", file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    raise SystemExit(main())
