"""spark-submit chain.py, with the arguments of a job: all jobs in one session; then what a worker sees."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

import pyarrow as pa

from epsjoin.report.publish import publish
from epsjoin.spark.cluster import find_clusters
from epsjoin.spark.fit_epsilon import choose_epsilon
from epsjoin.spark.ingest import ingest
from epsjoin.spark.job import run_job
from epsjoin.spark.merge_join import join_parts
from epsjoin.spark.outliers import score_outliers
from epsjoin.spark.replicate import write_replicas
from epsjoin.spark.session import get_session

STEPS = {
    "ingest": ingest,
    "fit_epsilon": choose_epsilon,
    "replicate": write_replicas,
    "merge_join": join_parts,
    "cluster": find_clusters,
    "outliers": score_outliers,
    "report": publish,
}


def look(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Run in a worker: its folder, its path, where epsjoin came from."""
    import os
    import sys

    import epsjoin

    list(batches)
    # not all of it: the cluster's secret is in there, too
    settings = {name: text for name, text in os.environ.items() if name.startswith(("NUMBA_", "OMP_"))}
    folder = os.getcwd()  # noqa: PTH109 - as the worker has it
    seen = {"folder": folder, "path": sys.path, "package": epsjoin.__file__, "settings": settings}
    yield pa.record_batch({"seen": [json.dumps(seen)]})


if __name__ == "__main__":
    for name, step in STEPS.items():
        if code := run_job(name, step):
            raise SystemExit(code)
    row = get_session("chain").range(0, 1, 1, 1).mapInArrow(look, "seen string").first()
    print(f"seen: {row['seen'] if row else None}")
