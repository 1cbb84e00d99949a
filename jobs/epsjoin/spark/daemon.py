"""Spark's parent process of the Python workers, with the package already imported.

Workers are forks of it, so they start at once. The setting ``spark.python.daemon.module`` in
``conf/spark-defaults.conf`` names this module. Without it each worker would import NumPy, numba, pyarrow and
the steps by itself, which takes some two seconds of CPU.
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
    gc.freeze()  # workers collect garbage after every task; this exempts what was imported here
    manager()
