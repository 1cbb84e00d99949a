"""Files of entries outside memory."""

from __future__ import annotations

import sys

import pytest

from epsjoin.errors import EpsjoinError
from epsjoin.local.differ.disk import Disk
from tests.local.differ.files import entries_of


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a device that is always full")
def test_file__on_a_full_disk_says_where_and_what_to_do() -> None:
    disk = Disk(memory_bytes=1)
    file = disk.file(disk.compressed)
    file._path.symlink_to("/dev/full")
    folder = file._path.parent
    try:
        with pytest.raises(EpsjoinError) as raised:
            file.append(next(entries_of([(1, 1), (2, 2)])))
    finally:
        disk.close()
    assert str(raised.value) == (
        f"the rows that memory does not hold cannot be written to {folder} (No space left on device); "
        "make room there, set TMPDIR to a folder on another disk, or allow more memory"
    )
