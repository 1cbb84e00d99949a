"""Tests whether a lake can be written: writes, reads and deletes one file and one tiny table.

``python -m epsjoin.lake.probe URI``: what was done on stdout, or the fault as the last line on stderr.
"""

from __future__ import annotations

import sys
import uuid

import pyarrow as pa
import pyarrow.fs as pafs
from deltalake import DeltaTable, write_deltalake

from epsjoin.lake.uris import filesystem_of, parse_lake_uri, uri_for


def probe(lake: str) -> str:
    """Try on a lake what jobs do to it; nothing stays behind.

    Raises
    ------
    ArgumentError
        The lake is named by a relative path.
    Exception
        Whatever pyarrow or deltalake raise when they are refused.
    """
    uri = parse_lake_uri(lake).rstrip("/")
    location = f"{uri}/probe-{uuid.uuid4().hex}"
    filesystem, folder = filesystem_of(location)
    root = filesystem_of(uri)[1]
    was_there = filesystem.get_file_info(root).type != pafs.FileType.NotFound
    filesystem.create_dir(folder, recursive=True)
    try:
        with filesystem.open_output_stream(f"{folder}/file") as out:
            out.write(b"epsjoin")
        with filesystem.open_input_stream(f"{folder}/file") as back:
            if back.read() != b"epsjoin":
                raise OSError(f"{uri} gave back other bytes than were written")
        table = uri_for("deltalake", f"{location}/table")
        for rows in (1, 2):
            write_deltalake(table, pa.table({"id": range(rows)}), mode="overwrite")
        if DeltaTable(table).count() != 2:
            raise OSError(f"{uri}: a Delta table was replaced, but gave back other rows")
    finally:
        if filesystem.get_file_info(folder).type != pafs.FileType.NotFound:
            filesystem.delete_dir(folder)
        if not was_there and not filesystem.get_file_info(pafs.FileSelector(root, allow_not_found=True)):
            filesystem.delete_dir(root)
    return f"a file and a Delta table written, read and deleted in {uri}"


if __name__ == "__main__":
    try:
        print(probe(sys.argv[1]))
    except Exception as error:  # noqa: BLE001  # whatever it is, it is the answer
        raise SystemExit(" ".join(str(error).split())) from None
