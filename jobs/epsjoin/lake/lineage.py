"""Which tables belong together: the stamp that a table's files bear says what they were made from.

A job killed between two commits, a step run again without those after it, or two runs at once cannot mix
tables unnoticed: whoever reads files with another stamp stops and says what to run again. A stamp is taken
before anything is read, so that what changes meanwhile shows as well.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Iterable
from typing import Any, NamedTuple

from epsjoin.errors import TableError
from epsjoin.lake import slices
from epsjoin.lake.lake import Lake
from epsjoin.lake.parquet import File


def stamp_of(files: Iterable[File], *texts: str) -> str:
    """The stamp of what is made from these files, whose names are never used twice, and these texts."""
    digest = hashlib.blake2b("".join(texts).encode(), digest_size=8)
    for file in files:
        digest.update(file.path.encode())
    return f"{digest.hexdigest()}-"


def new_stamp() -> str:
    """A stamp of its own, for tables that are made at once."""
    return f"{uuid.uuid4().hex[:16]}-"


def stamp_of_ingest(lake: Lake, run: str) -> str:
    """The stamp that the files of ``points`` bear, and of ``snapshots`` and ``quarantine``; may be empty.

    Points that an earlier version of epsjoin has stored bear none.
    """
    name = slices.files_of(lake, "points", run)[0].path.rpartition("/")[2]
    found = re.match("[0-9a-f]{16}-", name)
    return found[0] if found else ""


def stamp_of_points(lake: Lake, run: str) -> str:
    """The stamp that the files of ``epsilon`` bear."""
    return stamp_of(slices.files_of(lake, "points", run))


def stamp_of_epsilon(lake: Lake, run: str) -> str:
    """The stamp that the files of ``epsilon_curve`` bear."""
    return stamp_of(slices.files_of(lake, "epsilon", run, stamp_of_points(lake, run)))


class Join(NamedTuple):
    """A run's join.

    Parameters
    ----------
    plan : the row of ``join_plan``.
    stamp : what the files of ``replicas``, ``pairs`` and ``clusters`` bear.
    """

    plan: dict[str, Any]
    stamp: str


def read_join(lake: Lake, run: str) -> Join:
    """The run's plan, and the stamp of what is made from it and from the points as they are now.

    Raises
    ------
    TableError
        There is no plan of this run, or eps or the points have changed since it was made.
    """
    points = slices.files_of(lake, "points", run)
    plan = slices.read_row(lake, "join_plan", run)
    eps = slices.read_row(lake, "epsilon", run, stamp_of(points))["eps"]
    if plan["eps"] != eps:
        raise TableError(f"join_plan of run {run} has eps {plan['eps']}, epsilon {eps}; run replicate again")
    return Join(plan, stamp_of(points, str(plan["plan"])))


def stamp_for(lake: Lake, run: str, table: str) -> str:
    """The stamp that the table's files bear if it belongs to the others as they are now; may be empty.

    Of several tables take all stamps before any is read: what is replaced in between then shows.

    Raises
    ------
    TableError
        Those that it is made from do not belong together.
    """
    if table in ("snapshots", "quarantine", "points"):
        return stamp_of_ingest(lake, run)
    if table == "epsilon":
        return stamp_of_points(lake, run)
    if table == "epsilon_curve":
        return stamp_of_epsilon(lake, run)
    if table in ("replicas", "pairs", "clusters"):
        return read_join(lake, run).stamp
    if table == "outliers":
        return stamp_of_clusters(lake, run, read_join(lake, run))
    return ""


def stamp_of_clusters(lake: Lake, run: str, join: Join) -> str:
    """The stamp that the files of ``outliers`` bear."""
    return stamp_of(slices.files_of(lake, "clusters", run, join.stamp), join.stamp)
