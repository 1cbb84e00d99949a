"""Which tables belong together: the stamp that the files of a join's tables bear."""

from __future__ import annotations

import hashlib

from epsjoin.spark import tables
from epsjoin.spark.tables import Lake


def stamp_of_plan(lake: Lake, run: str, plan_json: str) -> str:
    """The stamp of what is made from this plan and from the points as they are now.

    Replicas and pairs bear it in their file names. A job killed between two commits, a step run again
    without those after it, or two runs of one step at once cannot mix tables unnoticed: whoever reads
    files with another stamp stops and says what to run again.
    """
    digest = hashlib.blake2b(plan_json.encode(), digest_size=8)
    for file in tables.files_of(lake, "points", run):
        digest.update(file.path.encode())
    return f"{digest.hexdigest()}-"


def stamp_of_join(lake: Lake, run: str) -> str:
    """The stamp of the run's join, as its plan says."""
    return stamp_of_plan(lake, run, str(tables.read_row(lake, "join_plan", run)["plan"]))
