"""Several jobs in one Spark session: ``spark-submit several.py <jobs as JSON> <arguments of each>``."""

from __future__ import annotations

import json
import sys
from functools import partial

from epsjoin.report.publish import publish
from epsjoin.spark.cluster import find_clusters
from epsjoin.spark.fit_epsilon import choose_epsilon
from epsjoin.spark.ingest import ingest
from epsjoin.spark.job import run_job
from epsjoin.spark.merge_join import join_parts
from epsjoin.spark.outliers import score_outliers
from epsjoin.spark.quality import check_quality
from epsjoin.spark.replicate import write_replicas

STEPS = {
    "ingest": ingest,
    "quality_input": partial(check_quality, stage="input"),
    "fit_epsilon": choose_epsilon,
    "replicate": write_replicas,
    "merge_join": join_parts,
    "cluster": find_clusters,
    "outliers": score_outliers,
    "quality_results": partial(check_quality, stage="results"),
    "report": publish,
}


def main(jobs: str, *arguments: str) -> int:
    for job in json.loads(jobs):
        code = run_job(job, STEPS[job], arguments)
        if code:
            return code
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
