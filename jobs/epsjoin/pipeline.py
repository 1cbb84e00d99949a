"""The pipeline: its jobs in their order."""

from __future__ import annotations

JOBS = (
    *("ingest", "quality_input", "fit_epsilon", "replicate", "merge_join", "cluster", "outliers"),
    *("quality_results", "report"),
)
"""As Airflow's tasks and ``job_metrics`` call them."""
