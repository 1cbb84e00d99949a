"""Large arrays in files without a name: zeros, room that is taken at once, and nothing left behind."""

from __future__ import annotations

import errno
import os

import numpy as np
import pytest

from epsjoin.errors import EpsjoinError
from epsjoin.local.scratch import ScratchFiles


def test_scratch_files__make_zeros_that_can_be_written_and_have_no_name(tmp_path):
    make = ScratchFiles(tmp_path, 1000)
    ids, places = make(5, np.int64), make((3, 4))
    assert (ids.dtype, ids.shape, places.dtype, places.shape) == (np.int64, (5,), np.float64, (3, 4))
    assert [int(ids.any()), int(places.any()), places.flags.c_contiguous] == [0, 0, True]
    assert type(places) is np.ndarray
    assert places.base.mode == "w+", "what is written goes to the file, not to memory of the process"
    places[1] = [1.0, 2.0, 3.0, 4.0]
    assert places.sum() == 10.0
    assert make((0, 4)).shape == (0, 4)
    assert list(tmp_path.iterdir()) == []


def test_scratch_files__make_arrays_in_memory_as_long_as_there_is_room(tmp_path):
    make = ScratchFiles(tmp_path, 1000, in_memory=100)
    is_in_memory = [make(n).base is None for n in (10, 3, 2, 1)]
    assert is_in_memory == [True, False, True, False], "80 bytes, 24 too many, 16, and 8 where 4 are left"


def test_scratch_files__refuse_what_the_disk_has_no_room_for_before_any_is_made(tmp_path):
    with pytest.raises(
        EpsjoinError, match="need 1,000,000,000,000,000,005 bytes in .* are free; .*SPARK_LOCAL_DIRS"
    ):
        ScratchFiles(tmp_path, 10**18 + 5)


def test_scratch_files__say_where_the_disk_became_full(tmp_path, monkeypatch):
    def full(file, begin, n_bytes):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    with pytest.raises(EpsjoinError, match="No space left on device.*SPARK_LOCAL_DIRS"):
        ScratchFiles(tmp_path, 100)(3)
