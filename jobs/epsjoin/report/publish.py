"""The job ``report``: gathers a run's findings and writes the report's files next to the tables."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

import pyarrow.fs as pafs

from epsjoin.console import say
from epsjoin.lake import uris
from epsjoin.report.matches import make_matches
from epsjoin.report.page import make_report
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
    files = make_report(gather(job)) if job.lake.source.match is None else make_matches(gather_matches(job))
    filesystem, path = uris.filesystem_of(f"{job.lake.location('reports')}/run={job.run}")
    with uris.writing(path):
        _put(files, filesystem, path)
    for name in files:
        say(f"report: {path}/{name}")
    return {"files": len(files), "bytes": sum(map(len, files.values()))}


def _put(files: Mapping[str, bytes], filesystem: pafs.FileSystem, folder: str) -> None:
    """Put files into a folder; there each is the old one or the new one, never a part, as on a full disk.

    Parameters
    ----------
    files : the content of each, by name.
    """
    filesystem.create_dir(folder, recursive=True)
    # an object store shows an object once it is whole
    is_local = isinstance(filesystem, pafs.LocalFileSystem)
    aside = f"{folder}/.{uuid.uuid4().hex}" if is_local else folder
    filesystem.create_dir(aside)
    try:
        for name, content in files.items():
            with filesystem.open_output_stream(f"{aside}/{name}") as stream:
                stream.write(content)
        if is_local:
            for name in files:
                filesystem.move(f"{aside}/{name}", f"{folder}/{name}")
    finally:
        if is_local:
            filesystem.delete_dir(aside)
