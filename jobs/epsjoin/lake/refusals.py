"""Why the last snapshot of a run did not come in: a sentence beside the run's report, until one does.

The guard held it, or a file was refused, or too many records were.
It is no table: a list of reports must be able to show it where no Delta table can be read.
"""

from __future__ import annotations

import pyarrow.fs as pafs

from epsjoin.errors import EpsjoinError, is_forbidden, to_one_line
from epsjoin.lake import uris
from epsjoin.lake.lake import Lake

FILE = "refused.txt"
"""Name of the file in the folder of the run's report."""


def write(lake: Lake, run: str, sentence: str) -> None:
    """Store why the run's snapshot did not come in."""
    filesystem, path = _place(lake, run)
    with uris.writing(path):
        filesystem.create_dir(path.rpartition("/")[0], recursive=True)
        with filesystem.open_output_stream(path) as file:
            file.write(sentence.encode())


def read(lake: Lake, run: str) -> str:
    """Read why the run's last snapshot did not come in; empty if it did.

    Raises
    ------
    EpsjoinError
        The folder of the reports, or the file, cannot be read.
    """
    filesystem, path = _place(lake, run)
    try:
        if not _is_there(filesystem, path):
            return ""
        with filesystem.open_input_stream(path) as file:
            return str(file.read().decode())
    except OSError as error:
        remedy = "let this user read it" if is_forbidden(error) else "try again"
        raise EpsjoinError(f"{path} cannot be read ({to_one_line(error)}); {remedy}") from error


def clear(lake: Lake, run: str) -> None:
    """Forget that a snapshot did not come in: another one has."""
    filesystem, path = _place(lake, run)
    if _is_there(filesystem, path):
        filesystem.delete_file(path)


def _place(lake: Lake, run: str) -> tuple[pafs.FileSystem, str]:
    return uris.filesystem_of(f"{lake.location('reports')}/run={run}/{FILE}")


def _is_there(filesystem: pafs.FileSystem, path: str) -> bool:
    return bool(filesystem.get_file_info(path).type == pafs.FileType.File)
