"""The job ``report``: gathers a run's findings and writes the report's files next to the tables."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pyarrow.fs as pafs

from epsjoin.console import say
from epsjoin.lake import uris
from epsjoin.report.matches import write_matches
from epsjoin.report.page import write_report
from epsjoin.spark.job.job import Job
from epsjoin.spark.report.gather import gather
from epsjoin.spark.report.matches import gather_matches


def publish(job: Job) -> dict[str, float]:
    """Write the run's report page, pictures and ``run.json`` to ``reports/run=<run>``, next to the tables.

    Where the contract has a section ``match``, the page is about the matches.

    Raises
    ------
    TableError
        A table has no slice of this run.
    EpsjoinError
        The files cannot be written.
    """
    write = (
        partial(write_report, gather(job))
        if job.lake.source.match is None
        else partial(write_matches, gather_matches(job))
    )
    folder = f"{job.lake.location('reports')}/run={job.run}"
    filesystem, path = uris.filesystem_of(folder)
    with tempfile.TemporaryDirectory() as scratch:
        with uris.writing(scratch):
            written = write(Path(scratch))
        with uris.writing(path):
            _put(written, filesystem, path)
        size = sum(file.stat().st_size for file in written)
    for file in written:
        say(f"report: {path}/{file.name}")
    return {"files": len(written), "bytes": size}


def _put(files: Sequence[Path], filesystem: pafs.FileSystem, folder: str) -> None:
    """Put files into a folder; there each is the old one or the new one, never a part, as on a full disk."""
    filesystem.create_dir(folder, recursive=True)
    # an object store shows an object once it is whole
    is_local = isinstance(filesystem, pafs.LocalFileSystem)
    aside = f"{folder}/.{uuid.uuid4().hex}" if is_local else folder
    filesystem.create_dir(aside)
    try:
        for file in files:
            pafs.copy_files(
                str(file),
                f"{aside}/{file.name}",
                source_filesystem=pafs.LocalFileSystem(),
                destination_filesystem=filesystem,
            )
        if is_local:
            for file in files:
                filesystem.move(f"{aside}/{file.name}", f"{folder}/{file.name}")
    finally:
        if is_local:
            filesystem.delete_dir(aside)
