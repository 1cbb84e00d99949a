"""Delete the files of a lake's tables that no newer version needs; rows stay as they are.

For the jobs' environment. ``bin/airflow housekeeping`` calls it.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from urllib.parse import unquote, urlsplit

from deltalake import DeltaTable

MIN_DAYS = 7
"""Delta's own minimum."""

MAX_DAYS = 36_500
"""That of ``bin/airflow housekeeping``."""


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def vacuum(lake: Path, hours: int) -> None:
    """Delete files older than ``hours`` that replaced slices and killed jobs have left, and say how many."""
    if not lake.is_dir():
        raise SystemExit(f"vacuum: there is no lake {lake}")
    logs = sorted(lake.glob("*/*/_delta_log"))
    if not logs and any(lake.iterdir()):  # who wants a record gone must not take this for done
        raise SystemExit(
            f"vacuum: {lake} has no tables of data sets in it, so nothing was deleted; a lake is the folder "
            "of the data sets' folders"
        )
    for log in logs:
        table = DeltaTable(log.parent)
        rows, version = table.count(), table.version()
        gone = table.vacuum(hours, dry_run=False, enforce_retention_duration=hours > 0, full=True)
        if DeltaTable(log.parent, version=version).count() != rows:
            raise RuntimeError(f"{log.parent} had {rows:,} rows before the vacuum and has others now")
        print(f"{log.parent}: {_counted(len(gone), 'file')} deleted, {_counted(rows, 'row')} as before")


def main() -> None:
    """Delete the files of the lake that the command line names."""
    parser = argparse.ArgumentParser(prog="bin/vacuum.py", description=__doc__.partition("\n")[0])
    parser.add_argument("lake", metavar="LAKE", help="the lake: a folder, or its URI, file:///...")
    age = parser.add_mutually_exclusive_group(required=True)
    age.add_argument(
        "days",
        metavar="DAYS",
        type=int,
        nargs="?",
        help=f"age of the files, {MIN_DAYS} to {MAX_DAYS}; longer than any job takes",
    )
    age.add_argument(
        "--now",
        action="store_true",
        help="files of any age, to have records gone for good; only while no job runs",
    )
    arguments = parser.parse_args()
    uri = urlsplit(arguments.lake if ":/" in arguments.lake else Path(arguments.lake).absolute().as_uri())
    if uri.scheme != "file":
        parser.error(f"{arguments.lake} is not on this machine: vacuum its tables by deltalake")
    if not arguments.now and not MIN_DAYS <= arguments.days <= MAX_DAYS:
        allowed = f"{MIN_DAYS} to {MAX_DAYS}"
        parser.error(f"DAYS must be {allowed}, not {arguments.days}; --now deletes files of any age")
    vacuum(Path(unquote(uri.path)), 0 if arguments.now else 24 * arguments.days)


if __name__ == "__main__":
    main()
