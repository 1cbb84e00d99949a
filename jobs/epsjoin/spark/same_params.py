"""Whether a job that only looks at the tables of a run has the parameters with which they were made."""

from __future__ import annotations

import json

from epsjoin.errors import ArgumentError
from epsjoin.lake import slices
from epsjoin.spark.job import Job


def check_same_params(job: Job, name: str) -> None:
    """Refuse other parameters than those that the jobs of the run had, which its tables do not have.

    Right tables would seem wrong, and the sentences of a report would be.

    Parameters
    ----------
    name : name of the job that looks at the tables.

    Raises
    ------
    ArgumentError
        The run was made with another ``min_pts`` or ``lof_k``.
    """
    counters = slices.read_counters(job.lake, job.run)
    of_run = {
        "min_pts": counters.get("cluster", {}).get("min_pts"),  # not counted by an older version
        "lof_k": counters.get("outliers", {}).get("k"),
    }
    known = {key: int(value) for key, value in of_run.items() if value is not None}
    ours = {"min_pts": job.params.min_pts, "lof_k": job.params.n_neighbours}
    if any(value != ours[key] for key, value in known.items()):
        words = " and ".join(f"{key} {value}" for key, value in known.items())
        raise ArgumentError(
            f"run {job.run} was made with {words}; give {name} the same: --params '{json.dumps(known)}'"
        )
