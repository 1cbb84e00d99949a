"""The pipeline: its jobs in their order."""

from __future__ import annotations

JOBS = (
    *("ingest", "quality_input", "fit_epsilon", "replicate", "merge_join", "cluster", "outliers"),
    *("quality_results", "report"),
)
"""As Airflow's tasks and ``job_metrics`` call them."""


WRITERS = {
    "snapshots": "ingest",
    "quarantine": "ingest",
    "points": "ingest",
    "epsilon": "fit_epsilon",
    "epsilon_curve": "fit_epsilon",
    "join_plan": "replicate",
    "replicas": "replicate",
    "pairs": "merge_join",
    "clusters": "cluster",
    "outliers": "outliers",
    "quality": "quality",
    "job_metrics": "any job",
}
"""The job that writes each table."""
