"""The Spark session of a job; all of its settings stand in ``conf/``."""

from __future__ import annotations

import atexit
import gc

from pyspark.sql import SparkSession


def get_session(name: str) -> SparkSession:
    """Get the session that spark-submit configured, or the one that already runs.

    It ends with the process.
    """
    spark = SparkSession.builder.appName(name).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


@atexit.register
def _end() -> None:
    """Stop the session: PySpark would otherwise leave the file of its socket in the temporary folder."""
    spark = SparkSession.getActiveSession()
    if spark is not None:
        spark.stop()
    gc.freeze()  # Python's last collections would look through all that was imported, for nothing
