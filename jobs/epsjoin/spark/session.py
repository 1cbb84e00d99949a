"""The Spark session of a job; everything that can be set stands in ``conf/``."""

from __future__ import annotations

from pyspark.sql import SparkSession


def get_session(name: str) -> SparkSession:
    """The session that spark-submit configured, or the one that runs already."""
    spark = SparkSession.builder.appName(name).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark
