"""Whether a job has the parameters with which the tables that it reads were made."""

from __future__ import annotations

import json
from collections.abc import Sequence

from epsjoin.errors import ArgumentError
from epsjoin.lake import slices
from epsjoin.spark.job.job import Job

_COUNTED = (("cluster", "min_pts", "min_pts"), ("outliers", "lof_k", "k"))
"""Job, parameter, and the job's counter with its value."""


def check_same_params(job: Job, name: str, *, of_jobs: Sequence[str] = ("cluster", "outliers")) -> None:
    """Refuse parameters other than those of the run's jobs, which tables do not hold.

    With others, right tables would seem wrong, sentences of a report would be wrong, and outliers would be
    ranked for another density than that of the clusters.

    Parameters
    ----------
    name : name of the job that looks at the tables.
    of_jobs : the jobs whose parameters it must have.

    Raises
    ------
    ArgumentError
        The run was made with another ``min_pts`` or ``lof_k``.
    """
    counters = slices.read_counters(job.lake, job.run)
    found = {key: counters.get(each, {}).get(counter) for each, key, counter in _COUNTED if each in of_jobs}
    known = {key: int(value) for key, value in found.items() if value is not None}  # older versions lack some
    ours = {"min_pts": job.params.min_pts, "lof_k": job.params.n_neighbours}
    if any(value != ours[key] for key, value in known.items()):
        words = " and ".join(f"{key} {value}" for key, value in known.items())
        raise ArgumentError(
            f"run {job.run} was made with {words}; give {name} the same: --params '{json.dumps(known)}', "
            f"or run it again from cluster"
        )
