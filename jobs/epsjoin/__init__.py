"""Exact similarity joins, density clusters and outliers, on arrays and on Spark."""
