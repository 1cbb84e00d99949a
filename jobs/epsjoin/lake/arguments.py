"""The command-line arguments that name a run of a data set, and the lake that they name."""

from __future__ import annotations

import argparse
import os
from datetime import date
from pathlib import Path

from epsjoin.contracts.load_source import load_source
from epsjoin.errors import ArgumentError, EpsjoinError
from epsjoin.lake import uris
from epsjoin.lake.lake import Lake
from epsjoin.paths import CONTRACTS


def add_contracts(parser: argparse.ArgumentParser) -> None:
    """Add ``--contracts``."""
    text = "folder of the contracts, with those of the tables in its folder tables (default: the project's)"
    parser.add_argument("--contracts", type=Path, default=CONTRACTS, help=text)


def add_lake(
    parser: argparse.ArgumentParser, *, has_run: bool = True, instead_of_files: bool = False
) -> None:
    """Add ``--lake``, ``--dataset``, ``--contracts`` and, if the command is about one run, ``--run``.

    Parameters
    ----------
    has_run : whether the command is about one run.
    instead_of_files : whether files may be named instead of a lake, so that all arguments but the contracts
        are optional.
    """
    is_needed, beside = not instead_of_files, "with --lake: " if instead_of_files else ""
    text = (
        f"{'instead of files: ' if instead_of_files else ''}folder of all tables, a URI or an absolute path"
    )
    parser.add_argument("--lake", required=is_needed, help=text)
    text = f"{beside}name of a contract in the contracts' folder"
    parser.add_argument("--dataset", required=is_needed, help=text)
    if has_run:
        text = f"{beside}the run, named by the first day of its interval, YYYY-MM-DD"
        parser.add_argument("--run", required=is_needed, help=text)
    add_contracts(parser)


def parse_run(text: object, argument: str = "--run") -> str:
    """Make the name of a run, an ISO date, of what a person gave as ``argument``.

    Raises
    ------
    ArgumentError
        It is none.
    """
    try:
        run = date.fromisoformat(str(text))
    except ValueError as error:
        raise ArgumentError(f"{argument} must be a date like 2023-06-01, not {text!r}") from error
    if run.year == date.max.year:
        raise ArgumentError(f"{argument} must be a date before the year {date.max.year}, not {text!r}")
    return run.isoformat()


def open_stored(arguments: argparse.Namespace) -> Lake:
    """Return the lake that the parsed arguments name, only to read it; see :func:`open_lake`.

    Raises
    ------
    ArgumentError
        Its folder is not there, or is a file, too.
    """
    lake = open_lake(arguments)
    if lake.uri.startswith("file:"):
        folder = uris.filesystem_of(lake.uri)[1]
        if not os.path.exists(folder) and _may_look(folder):  # noqa: PTH110  # of Path, it raises
            raise ArgumentError(f"--lake: there is no folder {folder}")
        if os.path.isfile(folder):  # noqa: PTH113  # as above
            raise ArgumentError(f"--lake: {folder} is a file, not a folder")
    return lake


def open_lake(arguments: argparse.Namespace) -> Lake:
    """Return the lake that the parsed arguments name.

    Raises
    ------
    ContractError
        There is no contract of that name, or it is wrong.
    ArgumentError
        The lake is neither a URI nor an absolute path.
    """
    source = load_source(arguments.contracts, arguments.dataset)
    return Lake(uris.parse_lake_uri(arguments.lake), arguments.contracts, source)


def check_writable(lake: Lake) -> None:
    """Check that tables can be written to a lake on this machine; for others only a write can tell.

    Raises
    ------
    ArgumentError
        The folder of the data set, or the nearest one above it that is there, is a file; or this user may not
        write in the folder of the data set.
    EpsjoinError
        The folder of the data set is not there, and this user may not write in the nearest one above it; or a
        link leads to what is not there.
    """
    if not lake.uri.startswith("file:"):
        return
    folder = Path(uris.filesystem_of(lake.location(""))[1])
    place = next(each for each in (folder, *folder.parents) if os.path.lexists(each))
    if not os.path.exists(place):  # noqa: PTH110  # of Path, it raises
        # a disk that is not mounted at this moment may be there at the next try
        raise EpsjoinError(
            f"--lake: the link {place} leads to {os.path.realpath(place)}, where this user finds nothing; "
            "mount its disk, or make the folder"
        )
    if not place.is_dir():
        raise ArgumentError(f"--lake: {place} is a file, so {folder} cannot be a folder; name another one")
    if not os.access(place, os.W_OK | os.X_OK):
        why = f"this user may not write in {place}; allow it there"
        if os.statvfs(place).f_flag & os.ST_RDONLY:
            why = f"the file system of {place} is read-only; mount it for writing"
        sentence = f"--lake: {why}, or name another folder"
        # as a disk that is not mounted: it may be there at the next try
        raise ArgumentError(sentence) if place == folder else EpsjoinError(sentence)


def _may_look(folder: str) -> bool:
    """Whether this user may see what is there above a folder; otherwise nobody knows whether it is."""
    above = next(each for each in Path(folder).parents if os.path.exists(each))  # noqa: PTH110  # of Path, it raises
    return os.access(above, os.X_OK)
