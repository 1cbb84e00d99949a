"""Frames that stay persisted for as long as they are needed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from pyspark.sql import DataFrame


def persist_until(frame: DataFrame, until: ExitStack) -> DataFrame:
    """Persist a frame until the stack closes; return the frame."""
    until.callback(frame.persist().unpersist)
    return frame


def materialize(frame: DataFrame, check: Callable[[int], None] | None = None) -> DataFrame:
    """Persist a frame and compute it now; if that fails, it is not persisted.

    Parameters
    ----------
    check : raises an error if the frame must not have so many rows.
    """
    with ExitStack() as failed:
        n = persist_until(frame, failed).count()
        if check is not None:
            check(n)
        failed.pop_all()
    return frame
