"""What saves every test work: files that lie in memory, and less garbage to look through."""

from __future__ import annotations

import gc
import os
import shutil
from pathlib import Path

MEMORY = Path("/dev/shm")
ROOM = 8 << 30
"""Bytes that must be free there; a run of all lanes has some hundred MB at any time."""


def pytest_configure() -> None:
    """Let tests write their lakes, of thousands of small files that are soon deleted, into memory."""
    gc.disable()  # what is imported stays
    runs_programs = MEMORY.is_dir() and not os.statvfs(MEMORY).f_flag & os.ST_NOEXEC
    if runs_programs and shutil.disk_usage(MEMORY).free > ROOM:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


def pytest_collection_finish() -> None:
    """What has been imported until now is no garbage: nobody looks at it again and again."""
    gc.collect()
    gc.freeze()
    # every 700 new objects, as Python does, are a tenth of the CPU of what makes many, as a compilation does
    gc.set_threshold(50_000, 20, 20)
    gc.enable()
