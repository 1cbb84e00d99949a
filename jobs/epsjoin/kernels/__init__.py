"""Loops on arrays, compiled by numba; nothing here knows files, Spark or Airflow."""
