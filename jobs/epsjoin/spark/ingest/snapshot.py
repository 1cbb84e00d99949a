"""The snapshot of a run: the last one dated within the run's interval, as a list of files."""

from __future__ import annotations

import re
from datetime import date
from urllib.parse import quote, unquote

import pyarrow.fs as pafs

from epsjoin.errors import DataRefusedError, NothingToDoError
from epsjoin.lake import uris
from epsjoin.spark.job import Job


def find_snapshot(job: Job) -> list[tuple[str, str]]:
    """Find the files of the run's snapshot.

    The snapshot is the last one dated within [run, run + interval). A source without ``{date}`` in its
    path has one snapshot, which belongs to every run.

    Returns
    -------
    A name for people and the URI of each file, ordered by name.

    Raises
    ------
    NothingToDoError
        No snapshot is dated within the interval.
    DataRefusedError
        The folder of the snapshots does not exist, or the snapshot has no file, or has a folder in it.
    """
    source = job.lake.source
    folder, _, leaf = source.path.rpartition("/")
    begin, end = interval_of(source.interval, date.fromisoformat(job.run))
    # a URI in a contract is already percent-encoded, a path is not
    is_uri = "://" in folder
    place = folder if is_uri else (job.project / folder).as_uri()
    if "{date}" not in source.path:
        return _list_files(f"{place}/{leaf if is_uri else quote(leaf)}", source.path)
    if "{date}" in folder:
        raise DataRefusedError(f"{source.path}: {{date}} may stand in the last part of the path only")
    filesystem, root = uris.filesystem_of(place)
    try:
        entries = filesystem.get_file_info(pafs.FileSelector(root))
    except FileNotFoundError as error:
        raise DataRefusedError(f"the snapshots' folder {folder} does not exist") from error
    before, _, after = (unquote(leaf) if is_uri else leaf).partition("{date}")
    pattern = re.compile(re.escape(before) + r"(\d{4}-\d{2}-\d{2})" + re.escape(after))
    dated = sorted(
        (match[1], entry.base_name) for entry in entries if (match := pattern.fullmatch(entry.base_name))
    )
    within = [(day, name) for day, name in dated if begin.isoformat() <= day < end.isoformat()]
    if not within:
        known = f"the nearest are {dated[0][0]} to {dated[-1][0]}" if dated else "there is none at all"
        raise NothingToDoError(
            f"no snapshot of {source.name} is dated {begin} to {end} (end excluded); {known}"
        )
    return _list_files(f"{place}/{quote(within[-1][1])}", within[-1][1])


def interval_of(interval: str, begin: date) -> tuple[date, date]:
    """First day of a run's interval and the first day after it."""
    if interval in ("day", "week"):
        return begin, date.fromordinal(begin.toordinal() + {"day": 1, "week": 7}[interval])
    months = begin.year * 12 + begin.month - 1 + {"month": 1, "quarter": 3, "year": 12}[interval]
    year, month = divmod(months, 12)
    last = (date(year + (month == 11), (month + 1) % 12 + 1, 1) - date(year, month + 1, 1)).days
    return begin, date(year, month + 1, min(begin.day, last))


def _list_files(uri: str, name: str) -> list[tuple[str, str]]:
    filesystem, path = uris.filesystem_of(uri)
    info = filesystem.get_file_info(path)
    if info.type == pafs.FileType.File:
        return [(name, uri)]
    if info.type == pafs.FileType.Directory:
        inside = filesystem.get_file_info(pafs.FileSelector(path))
        seen = [entry for entry in inside if not entry.base_name.startswith(("_", "."))]
        odd = sorted(entry.base_name for entry in seen if not entry.is_file)
        if odd:
            raise DataRefusedError(
                f"{name}: {odd[0]!r} in it is not a file; a snapshot is one file, or a folder of files only"
            )
        if seen:
            names = sorted(entry.base_name for entry in seen)
            return [(f"{name}/{each}", f"{uri}/{quote(each)}") for each in names]
    raise DataRefusedError(f"there is no file {name}")
