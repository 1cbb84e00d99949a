"""Frames kept in memory for as long as they are needed."""

from __future__ import annotations

from contextlib import ExitStack

from pyspark.sql import DataFrame


def kept(frame: DataFrame, until: ExitStack) -> DataFrame:
    """The frame, persisted until the stack closes."""
    until.callback(frame.persist().unpersist)
    return frame


def computed(frame: DataFrame) -> DataFrame:
    """The frame, persisted and computed; it is not persisted where that fails."""
    with ExitStack() as failed:
        kept(frame, failed).count()
        failed.pop_all()
    return frame
