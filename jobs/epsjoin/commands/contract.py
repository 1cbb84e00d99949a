"""The command ``epsjoin contract``: draft the contract of a data set, check and publish versions."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from epsjoin.contracts import versions
from epsjoin.errors import ArgumentError
from epsjoin.lake.arguments import add_contracts
from epsjoin.source.delimiters import parse_delimiter
from epsjoin.source.draft.contract import draft
from epsjoin.source.draft.path import name_of


def main(argv: Sequence[str]) -> int:
    """Draft a contract and write it, or print it; compare contracts with the published ones; publish them."""
    arguments = _parser().parse_args(argv)
    if arguments.what == "check":
        wrong = versions.check(arguments.contracts, arguments.names)
        for sentence in wrong:
            print(f"epsjoin contract: {sentence}", file=sys.stderr)
        return 1 if wrong else 0
    if arguments.what == "publish":
        print("\n".join(versions.publish(arguments.contracts, arguments.names)) or "nothing is new")
        return 0
    name = arguments.name or name_of(arguments.file)
    text = draft(arguments.file, name, parse_delimiter(arguments.delimiter))
    if arguments.to is None:
        print(text, end="")
    else:
        _write(text, arguments.to / f"{name}.odcs.yaml", name)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="epsjoin contract", description="Contracts of data sets and tables."
    )
    commands = parser.add_subparsers(dest="what", required=True)
    new = commands.add_parser(
        "new", help="draft a contract from a file", description="Draft a contract from a file."
    )
    new.add_argument("file", type=Path, help="CSV, JSON lines or Parquet, .gz allowed")
    new.add_argument(
        "--name", help="name of the data set: lower-case letters, digits, _ (default: from the file)"
    )
    new.add_argument(
        "--delimiter",
        metavar="SIGN",
        help="what separates the fields of CSV: ';', '|', tab (default: by header and first records)",
    )
    new.add_argument("--to", type=Path, help="folder to write <name>.odcs.yaml into (default: it is printed)")
    for name, what in (
        ("check", "check that the version of every contract fits its changes"),
        ("publish", "record the present contracts under their versions"),
    ):
        other = commands.add_parser(name, help=what, description=f"{what[0].upper()}{what[1:]}.")
        other.add_argument(
            "names", nargs="*", metavar="NAME", help="of a data set or a table (default: all contracts)"
        )
        add_contracts(other)
    return parser


def _write(text: str, file: Path, name: str) -> None:
    """Write a draft, never over a contract that is there."""
    try:
        with file.open("x", encoding="utf-8") as handle:
            handle.write(text)
    except FileExistsError as error:
        raise ArgumentError(
            f"--to: {file} is there already and is not written; remove it, or choose another --name"
        ) from error
    except OSError as error:
        raise ArgumentError(f"--to: {file} is not written: {error.strerror}") from error
    print(f"{file}: read it, correct what was guessed, then add dags/{name}.py", file=sys.stderr)
