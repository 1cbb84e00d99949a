"""Delete the files of a lake's tables that no newer version needs; rows stay as they are.

For the jobs' environment. ``bin/airflow housekeeping`` calls it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

from deltalake import DeltaTable


def vacuum(lake: Path, hours: int) -> None:
    """Delete files older than ``hours`` that replaced slices and killed jobs have left, and say how many."""
    if not lake.is_dir():
        raise SystemExit(f"vacuum: there is no lake {lake}")
    for log in sorted(lake.glob("*/*/_delta_log")):
        table = DeltaTable(log.parent)
        rows, version = table.count(), table.version()
        gone = table.vacuum(retention_hours=hours, dry_run=False, full=True)
        if DeltaTable(log.parent, version=version).count() != rows:
            raise RuntimeError(f"{log.parent} had {rows:,} rows before the vacuum and has others now")
        print(f"{log.parent}: {len(gone)} files deleted, {rows:,} rows as before")


if __name__ == "__main__":
    uri, days = urlsplit(sys.argv[1]), int(sys.argv[2])
    if uri.scheme != "file":
        raise SystemExit(f"vacuum: {sys.argv[1]} is not on this machine: vacuum its tables by deltalake")
    vacuum(Path(unquote(uri.path)), 24 * days)
