"""The snapshot of a run: the last one dated within the run's interval, as a list of files."""

from __future__ import annotations

import os
from datetime import date
from pathlib import Path
from urllib.parse import quote

import pyarrow.fs as pafs

from epsjoin.contracts.snapshot_names import SnapshotName
from epsjoin.contracts.times import interval_of
from epsjoin.errors import ArgumentError, DataRefusedError, NothingToDoError
from epsjoin.lake import slices, uris
from epsjoin.spark.ingest.read import unreadable
from epsjoin.spark.job.job import Job


def find_snapshot(job: Job) -> list[tuple[str, str]]:
    """Find the files of the run's snapshot.

    The snapshot is the last one dated within [run, run + interval). A source without a date in its
    path has one snapshot, which belongs to every run.

    Returns
    -------
    A name for people and the URI of each file, ordered by name.

    Raises
    ------
    NothingToDoError
        No snapshot is dated within the interval.
    DataRefusedError
        The folder of the snapshots does not exist or is not a folder; or the snapshot has no file, or has a
        folder in it, or a link that leads nowhere.
    ArgumentError
        The run's date is not the first day of an interval.
    EpsjoinError
        This user may not read the folder.
    """
    source = job.lake.source
    folder, _, leaf = source.path.rpartition("/")
    begin, end = interval_of(source.interval, date.fromisoformat(job.run))
    _check_begin(job)
    # a URI in a contract is already percent-encoded, a path is not
    is_uri = "://" in source.path
    if is_uri:
        place = f"{folder}/"
    else:
        place = f"{(job.project / (folder or '/' * source.path.startswith('/'))).as_uri().removesuffix('/')}/"
    dated_name = SnapshotName.in_path(source.path)
    if dated_name is None:
        return _list_files(f"{place}{leaf if is_uri else quote(leaf)}", source.path)
    filesystem, root = uris.filesystem_of(place if place.endswith(":///") else place.rstrip("/"))
    try:
        entries = _entries(filesystem, root)
    except FileNotFoundError as error:
        where = "" if is_uri or folder.startswith("/") else f" below {job.project}"
        raise DataRefusedError(f"the snapshots' folder {folder} does not exist{where}") from error
    except NotADirectoryError as error:
        raise DataRefusedError(f"the snapshots' folder {folder} is a file, or below one") from error
    except PermissionError as error:
        raise unreadable(f"the snapshots' folder {folder}", error) from error
    dated = sorted(
        (day, entry.base_name)
        for entry in entries
        if (day := dated_name.date_in(entry.base_name)) is not None
    )
    within = [name for day, name in dated if begin <= day < end]
    if not within:
        near = [
            *[f"the last one before is {day}" for day, _ in dated if day < begin][-1:],
            *[f"the first one after is {day}" for day, _ in dated if day >= end][:1],
        ]
        known = ", ".join(near) or "there is none at all"
        raise NothingToDoError(
            f"no snapshot of {source.name} is dated {begin} to {end} (end excluded); {known}"
        )
    return _list_files(f"{place}{quote(within[-1])}", within[-1])


def _check_begin(job: Job) -> None:
    """Refuse a run that is not named by the first day of its interval: it would read a snapshot once more."""
    interval, begin = job.lake.source.interval, slices.first_day(job.lake, job.run)
    if job.run != begin:
        raise ArgumentError(
            f"run {job.run} is not the first day of a {interval}, by which runs of {job.lake.source.name} "
            f"are named; that {interval} is run {begin}"
        )


def _entries(filesystem: pafs.FileSystem, folder: str) -> list[pafs.FileInfo]:
    """What is in a folder, with links that lead nowhere and names that are not UTF-8.

    pyarrow's own list lacks the former and fails on the latter, whose bytes are escaped here.
    """
    if isinstance(filesystem, pafs.LocalFileSystem):
        return [pafs.FileInfo(_to_text(path), _kind_of(path)) for path in sorted(Path(folder).iterdir())]
    found: list[pafs.FileInfo] = filesystem.get_file_info(pafs.FileSelector(folder))
    return found


def _to_text(path: Path) -> str:
    return os.fsencode(path).decode(errors="backslashreplace")


def _kind_of(path: Path) -> pafs.FileType:
    if _to_text(path) != str(path):
        return pafs.FileType.Unknown
    if path.is_file():
        return pafs.FileType.File
    if path.is_dir():
        return pafs.FileType.Directory
    return pafs.FileType.Unknown if path.exists() else pafs.FileType.NotFound


def _list_files(uri: str, name: str) -> list[tuple[str, str]]:
    filesystem, path = uris.filesystem_of(uri)
    info = filesystem.get_file_info(path)
    if info.type == pafs.FileType.File:
        return [(name, uri)]
    if info.type == pafs.FileType.Directory:
        try:
            inside = _entries(filesystem, path)
        except PermissionError as error:
            raise unreadable(f"the folder {name}", error) from error
        seen = [entry for entry in inside if not entry.base_name.startswith(("_", "."))]
        odd = sorted((entry for entry in seen if not entry.is_file), key=lambda entry: entry.base_name)
        if odd:
            what = "is not a file, or its name is not UTF-8"
            if odd[0].type == pafs.FileType.NotFound:
                what = "is a link that leads nowhere"
            raise DataRefusedError(
                f"{name}: {odd[0].base_name!r} in it {what}; a snapshot is one file, or a folder of files "
                "only"
            )
        if seen:
            names = sorted(entry.base_name for entry in seen)
            return [(f"{name}/{each}", f"{uri}/{quote(each)}") for each in names]
        raise DataRefusedError(
            f"{name} is a folder without a file in it; a snapshot is one file, or a folder of some"
        )
    raise DataRefusedError(f"there is no file {name}, or it is a link that leads nowhere")
