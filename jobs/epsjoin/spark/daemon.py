"""Spark's parent of the Python workers, with the package loaded: a worker is its fork, and begins at once.

``spark.python.daemon.module`` names it (``conf/spark-defaults.conf``). Without it each worker would import
NumPy, numba, pyarrow and the steps by itself, some two seconds of CPU.
"""

from __future__ import annotations

import gc
import importlib

from pyspark.daemon import manager

STEPS = (
    *("ingest.ingest", "join.replicate", "join.merge_join", "cluster.cluster", "neighbours.outliers"),
    "checks.verify",
)

if __name__ == "__main__":
    for step in STEPS:
        importlib.import_module(f"epsjoin.spark.{step}")
    gc.freeze()  # a worker collects garbage after every task: not through all that was loaded here
    manager()
