"""The command ``epsjoin``: what people ask of tables and machines without starting a job."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from epsjoin import doctor
from epsjoin.errors import EpsjoinError


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    command = arguments[0] if arguments else ""
    if command == "doctor":
        return doctor.main(arguments[1:])
    if command != "show":
        print("usage: epsjoin show | doctor   (each with --help)", file=sys.stderr)
        return 2
    from epsjoin import show  # the doctor must run where what this imports is missing

    try:
        return show.main(arguments[1:])
    except EpsjoinError as error:
        print(f"epsjoin show: {error}", file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    raise SystemExit(main())
