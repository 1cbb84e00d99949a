"""Benchmarks on Spark: joins of DataFrames and the steps of a run, each against its peers."""
