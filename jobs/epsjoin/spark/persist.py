"""Frames that stay persisted for as long as they are needed."""

from __future__ import annotations

from contextlib import ExitStack

from pyspark.sql import DataFrame


def persist_until(frame: DataFrame, until: ExitStack) -> DataFrame:
    """Persist a frame until the stack closes; return the frame."""
    until.callback(frame.persist().unpersist)
    return frame


def materialize(frame: DataFrame) -> DataFrame:
    """Persist a frame and compute it now; if that fails, it is not persisted."""
    with ExitStack() as failed:
        persist_until(frame, failed).count()
        failed.pop_all()
    return frame
