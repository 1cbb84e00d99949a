"""The slice of the table pairs that a job reads.

It is apart from :mod:`epsjoin.spark.join.pairs`, since tasks import that and should not load the code of
jobs.
"""

from __future__ import annotations

from epsjoin.lake.lake import Slice
from epsjoin.spark.job.job import Job
from epsjoin.spark.join.pairs import PAIRS
from epsjoin.spark.rows.rows import StoredRows


def stored_pairs(job: Job, pairs: Slice) -> StoredRows:
    """The rows of a slice of the table ``pairs``, in splits of whole files.

    A file holds the pairs of one part. If several tasks read it, each would return the same points of the
    part to the driver.

    Raises
    ------
    TableError
        There is no slice, or it has another fingerprint.
    """
    return StoredRows.of(job, pairs, PAIRS, whole_files=True)
