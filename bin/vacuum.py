"""Delete the files of a lake's tables that no newer version needs; rows stay as they are.

For the jobs' environment. ``bin/airflow housekeeping`` calls it.
"""

from __future__ import annotations

import signal
import sys

INTERRUPTED = 128 + signal.SIGINT
"""Exit code after Ctrl-C, as shells have it."""

try:
    import argparse
    import os
    import re
    from pathlib import Path
    from urllib.parse import unquote, urlsplit

    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError, TableNotFoundError
except KeyboardInterrupt:  # the imports take a moment
    print("vacuum: interrupted; nothing was begun", file=sys.stderr)
    raise SystemExit(INTERRUPTED) from None

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
    if not logs and any(lake.iterdir()):  # whoever wants a record gone must not take this for done
        raise SystemExit(
            f"vacuum: {lake} has no tables of data sets in it, so nothing was deleted; a lake is the folder "
            "of the data sets' folders"
        )
    kept = 0
    for log in logs:
        try:
            print(_vacuum_table(log.parent, hours), flush=True)
        except BrokenPipeError:
            raise
        except (DeltaError, OSError) as error:  # the others are none the worse
            kept += 1
            print(f"vacuum: {log.parent} is as it was: {_describe(error)}", file=sys.stderr)
    if kept:
        raise SystemExit(
            f"vacuum: {kept} of {_counted(len(logs), 'table')} could not be vacuumed, for the reasons above"
        )


def _vacuum_table(folder: Path, hours: int) -> str:
    table = DeltaTable(folder)
    rows, version = table.count(), table.version()
    gone = table.vacuum(hours, dry_run=False, enforce_retention_duration=hours > 0, full=True)
    if DeltaTable(folder, version=version).count() != rows:
        raise RuntimeError(f"{folder} had {rows:,} rows before the vacuum and has others now")
    return f"{folder}: {_counted(len(gone), 'file')} deleted, {_counted(rows, 'row')} as before"


def _describe(error: Exception) -> str:
    """Say on one line why a table was not vacuumed, and what to do."""
    if isinstance(error, TableNotFoundError):
        return (
            "its log is empty, as after a job that was killed while it made the table; run the job again, or "
            "delete the folder"
        )
    lines = [re.sub(r"\x1b\[\d*m|↳", "", line).strip() for line in str(error).splitlines()]
    why = ": ".join(line for line in lines if line).partition(": 0: ")[0]  # a trace of Rust's follows
    return f"{why}; mend that; where its log is broken, any job that writes it says what to do"


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
    if uri.netloc not in ("", "localhost"):
        parser.error(f"a file URI has three slashes, file:///..., not {arguments.lake}")
    if not arguments.now and not MIN_DAYS <= arguments.days <= MAX_DAYS:
        allowed = f"{MIN_DAYS} to {MAX_DAYS}"
        parser.error(f"DAYS must be {allowed}, not {arguments.days}; --now deletes files of any age")
    lake = Path(unquote(uri.path))
    if read_otherwise := re.search(r"%[0-9A-Fa-f]{2}", str(lake)):
        sign, letter = read_otherwise[0], unquote(read_otherwise[0])
        parser.error(
            f"{lake} has {sign} in its path, where deltalake reads {letter!r}, and might vacuum another "
            "lake; rename the folder, as no job works on such a lake"
        )
    vacuum(lake, 0 if arguments.now else 24 * arguments.days)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        print("vacuum: interrupted; the same command goes on", file=sys.stderr)
        raise SystemExit(INTERRUPTED) from None
    except BrokenPipeError:  # its reader has seen enough, as head has
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())  # or Python's last flush would complain
        raise SystemExit(128 + signal.SIGPIPE) from None
